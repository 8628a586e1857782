"""Seeds that change tables with ALTER TABLE.

The same commands change two tables. The keys of one are lsm, those of the
other are B-trees. Afterwards, both must have the same keys, with the same
properties, and the same rows, and must accept the same new rows. A command
must succeed for both or fail for both. The error may be another one, since
core and the extension check in another order.
"""

import random

from compare import Mismatch, SqlLog
from pgwire import PgError

COLUMNS = "abcd"
TYPES = ("int", "bigint", "numeric", "numeric(12,2)", "text", "varchar(20)",
         "varchar(30)")
# What the two tables write differently: the parameter that asks for lsm, and the access method.
SIDES = {"lsm": ("WITH (lsm = true)", "lsm"), "btree": ("", "btree")}

# The keys, without what must differ. Core chooses new names for keys of partitions, lsm keeps the
# old ones.
KEYS = """
SELECT c.conrelid::regclass, c.contype, c.condeferrable, c.condeferred,
	CASE WHEN parent.oid IS NULL THEN c.conname ELSE parent.conname END,
	c.conislocal, c.coninhcount, pg_get_constraintdef(c.oid),
	obj_description(CASE WHEN parent.oid IS NULL THEN c.oid END, 'pg_constraint'),
	x.indisprimary, x.indimmediate, x.indisunique, x.indisvalid,
	CASE WHEN parent.oid IS NULL THEN x.indisclustered END,
	CASE WHEN parent.oid IS NULL THEN x.indisreplident END
FROM pg_constraint c JOIN pg_index x ON x.indexrelid = c.conindid
	LEFT JOIN pg_constraint parent ON parent.oid = c.conparentid
WHERE c.contype IN ('p', 'u') AND c.connamespace = current_schema::regnamespace
ORDER BY 1, 5, 8"""
OTHERS = """
SELECT conrelid::regclass, conname, contype, conislocal, coninhcount, convalidated,
	pg_get_constraintdef(oid)
FROM pg_constraint
WHERE contype NOT IN ('p', 'u') AND connamespace = current_schema::regnamespace AND conparentid = 0
ORDER BY 1, 2"""
COLUMN_LIST = """
SELECT attrelid::regclass, attname, atttypid::regtype, atttypmod, attnotnull, attidentity
FROM pg_attribute JOIN pg_class r ON r.oid = attrelid
WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
	AND relnamespace = current_schema::regnamespace
ORDER BY 1, attnum"""
# Keys that are not lsm, or would not be after a restore, and indexes that have lost their key.
NOT_LSM = """
SELECT i.oid::regclass
FROM pg_class i JOIN pg_index x ON x.indexrelid = i.oid
	LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype IN ('p', 'u')
WHERE i.relnamespace = current_schema::regnamespace
	AND (c.oid IS NOT NULL) <>
		(i.relam = (SELECT oid FROM pg_am WHERE amname = 'lsm') AND coalesce(i.reloptions @> '{lsm=true}', false))"""
CHECK = """
SELECT lsm_check(i.oid::regclass, true) FROM pg_class i
WHERE i.relkind = 'i' AND i.relam = (SELECT oid FROM pg_am WHERE amname = 'lsm')
	AND i.relnamespace = current_schema::regnamespace"""


class AlterLayout:
    """The tables of a seed."""

    def __init__(self, rng, version):
        self.rng = rng
        self.version = version
        kinds = ["plain", "inherited"]
        if version >= 180000:       # lsm keys of partitioned tables, and foreign keys to lsm keys
            kinds += ["partitioned", "referenced"]
        self.kind = rng.choice(kinds)
        self.tables = ["t"]
        self.keys = []
        self.names = 0

    def describe(self):
        return f"{self.kind}, keys {', '.join(self.keys)}"

    def columns(self):
        """Some columns. A key of a partitioned table contains the partition key."""
        columns = self.rng.sample(COLUMNS, self.rng.choice((1, 1, 2, 2, 3)))
        if self.kind == "partitioned" and "a" not in columns:
            columns.insert(0, "a")
        return columns

    def key(self, kind):
        columns = self.columns()
        others = [c for c in COLUMNS if c not in columns]
        include = f" INCLUDE ({self.rng.choice(others)})" \
            if others and self.rng.random() < 0.2 else ""
        deferrable = self.rng.choice((" DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED")) \
            if self.rng.random() < 0.2 else ""
        return f"{kind} ({', '.join(columns)}){include} {{parameter}}{deferrable}"

    def new_name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def setup(self):
        """The statements that make the tables."""
        rng = self.rng
        constraints = []
        if rng.random() < 0.6:
            self.keys.append("pk")
            constraints.append(f"CONSTRAINT pk {self.key('PRIMARY KEY')}")
        for _ in range(rng.choice((0, 1, 2))):
            self.keys.append(self.new_name("u"))
            constraints.append(f"CONSTRAINT {self.keys[-1]} {self.key('UNIQUE')}")
        body = ", ".join([f"{c} int" for c in COLUMNS] + constraints)
        if self.kind == "partitioned":
            yield f"CREATE TABLE t ({body}) PARTITION BY RANGE (a)"
            yield "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (5)"
            yield "CREATE TABLE t2 PARTITION OF t DEFAULT PARTITION BY RANGE (a)"
            yield "CREATE TABLE t21 PARTITION OF t2 DEFAULT"
            self.tables += ["t1", "t21"]
        else:
            yield f"CREATE TABLE t ({body})"
        if self.kind == "inherited":
            yield f"CREATE TABLE t1 (CONSTRAINT {self.new_name('k')} {self.key('UNIQUE')}) INHERITS (t)"
            self.tables.append("t1")
        if self.kind != "partitioned":
            yield f"CREATE UNIQUE INDEX i ON t USING {{method}} ({', '.join(self.columns())})"
        for key in self.keys:
            if rng.random() < 0.4:
                yield f"COMMENT ON CONSTRAINT {key} ON t IS 'comment on {key}'"
        if self.keys and rng.random() < 0.3 and self.kind != "partitioned":
            yield f"ALTER TABLE t CLUSTER ON {rng.choice(self.keys)}"
        if self.kind == "referenced" and "pk" in self.keys:
            yield "CREATE TABLE r (LIKE t)"
        for _ in range(8):
            yield self.insert()

    def insert(self):
        values = ", ".join(str(self.rng.randint(1, 9)) for _ in COLUMNS)
        return f"INSERT INTO {self.rng.choice(self.tables)} (a, b, c, d) VALUES ({values})"

    def subcommand(self):
        rng = self.rng
        column = rng.choice(COLUMNS)
        if rng.random() < 0.5:
            new = rng.choice(TYPES)
            using = f" USING {column}::{new}" if rng.random() < 0.7 else ""
            return f"ALTER {column} TYPE {new}{using}"
        name = rng.choice(self.keys + ["pk", "u1"])
        choices = [
            f"ALTER {column} SET NOT NULL", f"ALTER {column} DROP NOT NULL",
            f"ALTER {column} SET DEFAULT 7", f"ALTER {column} DROP DEFAULT",
            f"ADD COLUMN {self.new_name('x')} int",
            f"ADD COLUMN {self.new_name('x')} int UNIQUE {{parameter}}",
            f"DROP COLUMN {column}", f"DROP CONSTRAINT {name}",
            f"DROP CONSTRAINT IF EXISTS {name}",
            f"ADD CONSTRAINT {self.new_name('n')} {self.key('UNIQUE')}",
            f"ADD CONSTRAINT pk {self.key('PRIMARY KEY')}",
            f"ADD CONSTRAINT {self.new_name('n')} CHECK ({column} IS DISTINCT FROM NULL)",
            "SET (fillfactor = 70)", "DISABLE ROW LEVEL SECURITY"]
        if self.kind != "partitioned":
            choices += [
                f"ADD CONSTRAINT {self.new_name('n')} UNIQUE USING INDEX i",
                f"ADD CONSTRAINT {self.new_name('n')} PRIMARY KEY USING INDEX i",
                f"CLUSTER ON {name}", f"REPLICA IDENTITY USING INDEX {name}",
                "REPLICA IDENTITY DEFAULT", "SET WITHOUT CLUSTER"]
        if self.kind == "referenced":
            choices += [f"ADD CONSTRAINT {self.new_name('f')} FOREIGN KEY ({column}) REFERENCES t NOT VALID"]
        return rng.choice(choices)

    def command(self):
        rng = self.rng
        count = rng.choice((1, 1, 2, 2, 3, 4))
        subcommands = ", ".join(self.subcommand() for _ in range(count))
        return f"ALTER TABLE {'ONLY ' if rng.random() < 0.1 else ''}t {subcommands}"


class AlterRound:
    def __init__(self, server, seed, options, statistics):
        self.rng = random.Random(seed)
        self.log = SqlLog()
        self.statistics = statistics
        self.lsm = options.am
        self.sides = [(side, server.connect(log=self.log.session(number)))
                      for number, side in enumerate((options.am, "btree"), 1)]
        version = int(self.sides[0][1].query("SHOW server_version_num").scalar())
        self.layout = AlterLayout(self.rng, version)

    def both(self, statement):
        """Run a statement on both sides. Returns whether it succeeded, which must be the same."""
        errors = []
        for side, connection in self.sides:
            parameter, method = SIDES[side]
            error = None
            try:
                connection.query(statement.format(parameter=parameter, method=method))
            except PgError as raised:
                error = raised
            errors.append(error)
        states = {error.sqlstate if error else "" for error in errors}
        # Core, too, gives XX000 to some errors.
        if len(states) > 1 and any(state == "" or state.startswith("XX") for state in states):
            raise Mismatch(f"{statement}\n{self.lsm}: {errors[0] or 'success'}\nbtree: {errors[1] or 'success'}")
        return errors[0] is None

    def compare(self, after):
        for query in (KEYS, OTHERS, COLUMN_LIST, "SELECT tableoid::regclass, t.* FROM t ORDER BY t::text, 1"):
            rows = [[tuple(v and v.replace("USING lsm", "USING btree") for v in row)
                     for row in connection.query(query).rows] for _, connection in self.sides]
            self.statistics.queries += 1
            if rows[0] != rows[1]:
                raise Mismatch(f"after {after}:\n{query}\n{self.lsm}: {rows[0]}\nbtree: {rows[1]}")
        if self.lsm == "lsm":
            lsm = self.sides[0][1]
            wrong = lsm.query(NOT_LSM).rows
            if wrong:
                raise Mismatch(f"after {after}: no lsm key, or no key, for {wrong}")
            lsm.query(CHECK)

    def run_all(self):
        for number, (_, connection) in enumerate(self.sides, 1):
            schema = f"alter_{number}"
            connection.query(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {schema} CASCADE;"
                             f" CREATE SCHEMA {schema}; SET search_path = {schema}, public")
        for statement in self.layout.setup():
            self.both(statement)
        for _ in range(6):
            command = self.layout.command()
            if self.rng.random() < 0.2:
                self.both("BEGIN")
                self.both(command)
                self.both("ROLLBACK")
            self.both(command)
            self.statistics.changes += 1
            self.compare(command)
            for _ in range(3):
                self.both(self.layout.insert())
        for _, connection in self.sides:
            connection.close()
