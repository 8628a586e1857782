"""Seeds that run the same inserts on twin tables.

The unique index of one table is lsm, that of the other is a B-tree. No second index on the same
columns can make up for what one of them does wrong. The same statements run on both tables. They
must return the same rows and the same command tag, or fail with the same SQLSTATE, and leave the
same rows.

The order in which a statement reaches its rows may decide about its result. So sources are sorted
by id, and an UPDATE that depends on the order scans the B-tree on id.
"""

import random
import re

from compare import DUPLICATE, Mismatch, SqlLog, difference, is_expected, shorten
from layout import BTREE, LSM, TABLE, Layout
from operations import Operations
from pgwire import PgError
from queries import FIXED_SETTINGS, LOOK_ALIKE

SETTINGS = (FIXED_SETTINGS + "SET enable_bitmapscan = off; SET enable_mergejoin = off; "
            "SET max_parallel_workers_per_gather = 0")
TWICE = "21000"                     # a statement would change a row a second time
# Errors of ON CONFLICT that only some layouts may raise.
DEFERRABLE_ARBITER = "55000"
OTHER_PARTITION = "0A000"
CHANGES = ("INSERT", "WITH", "COPY", "DO", "UPDATE", "MERGE", "DELETE")
# The table from which statements take their rows.
SOURCE = "s"
PARTITIONS = [f"{TABLE}{i}" for i in range(3)]
ROWS = f"SELECT count(*), md5(string_agg({TABLE}::text, ',' ORDER BY id)) FROM {TABLE}"
INDEXES = f"""
SELECT {{function}} FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
	JOIN pg_class r ON r.oid = x.indrelid
WHERE i.relkind = 'i' AND i.relam = (SELECT oid FROM pg_am WHERE amname = 'lsm')
	AND r.relname IN ('{"', '".join([TABLE] + PARTITIONS)}')
	AND r.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = '{TABLE}'::regclass)"""


def respell(datatype, value):
    """Perhaps an equal value that looks different."""
    if value is None:
        return None
    if datatype.sql in ("numeric", "numeric(12,2)", "jsonb") and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return value + ("0" if "." in value else ".0")
    if datatype.sql in ("float4", "float8") and float(value) == 0:
        return "0" if value.startswith("-") else "-0"
    if datatype.sql == "bpchar":
        return value + " "
    if datatype.sql == "citext" or datatype.collation == "caseless":
        swapped = value.swapcase() if datatype.sql in ("citext", "text", "char(8)") else value
        return swapped if len(swapped) == len(value) else value
    if datatype.sql == "interval":
        return {"1 mon": "30 days", "30 days": "720 hours", "1 day": "24 hours",
                "24 hours": "1 day", "1 year": "360 days"}.get(value, value)
    return value


class UpsertLayout(Layout):
    """A table with a unique index, and rows that often repeat the key of an earlier row."""

    def __init__(self, rng, options, version):
        super().__init__(rng, options.am, options.types, options.unavailable)
        self.unique = rng.choice(("UNIQUE", "UNIQUE NULLS NOT DISTINCT"))
        self.repeats = rng.choice((0.1, 0.3, 0.6, 0.9))
        self.values = []        # of earlier rows
        self.constraint = self._random_constraint()
        self.partition_column = self._random_partition_column() if version >= 180000 else None
        # A second unique index, lsm or a B-tree beside lsm.
        self.second = rng.choices(("", options.am, "btree"), (8, 1, 1))[0]

    def _random_constraint(self):
        """Perhaps a constraint instead of an index, if the index could belong to one."""
        names = [key.column.name for key in self.keys]
        if (self.predicate or len(set(names)) < len(names)
                or any(not key.is_column or key.type.opclass for key in self.keys)):
            return None
        return self.rng.choice((None, None, "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"))

    def _random_partition_column(self):
        names = [key.column.name for key in self.keys
                 if key.is_column and not key.type.opclass and key.type.name in LOOK_ALIKE]
        return self.rng.choice(names) if names and self.rng.random() < 0.25 else None

    @property
    def deferrable(self):
        return bool(self.constraint)

    def has_few_keys(self):
        keys = {tuple(key.column.value(self.rng) for key in self.keys) for _ in range(60)}
        return len(keys) < 8

    def row(self):
        row = super().row()
        if self.values and self.rng.random() < self.repeats:
            row[3:] = self.rng.choice(self.values)
            if self.rng.random() < 0.4:
                row[3:] = [respell(column.type, value)
                           for column, value in zip(self.columns, row[3:])]
        elif len(self.values) < 400:
            self.values.append(row[3:])
        else:
            self.values[self.rng.randrange(400)] = row[3:]
        return row

    def setup(self, method):
        """The statements that make one of the twins."""
        create = self.create_table()
        if self.partition_column:
            create = create.split("TABLE ", 1)[1].rsplit(" WITH (", 1)[0]
            yield f"CREATE TABLE {create} PARTITION BY HASH ({self.partition_column})"
            for number, name in enumerate(PARTITIONS):
                yield (f"CREATE TABLE {name} PARTITION OF {TABLE}"
                       f" FOR VALUES WITH (MODULUS {len(PARTITIONS)}, REMAINDER {number})")
        else:
            yield create
        yield f"CREATE INDEX {TABLE}_id ON {TABLE} (id)"
        yield self._create_constraint(method) if self.constraint is not None \
            else self.create_index(BTREE if method == "btree" else LSM)
        if self.second:
            second = self.second if method != "btree" else "btree"
            columns = ["sel", "note"] + ([self.partition_column] if self.partition_column else [])
            yield f"CREATE UNIQUE INDEX {TABLE}_two ON {TABLE} USING {second} ({', '.join(columns)})"
        yield f"CREATE TABLE {SOURCE} (LIKE {TABLE})"

    def _create_constraint(self, method):
        nulls = " NULLS NOT DISTINCT" if self.unique.endswith("DISTINCT") else ""
        columns = ", ".join(key.column.name for key in self.keys)
        include = f" INCLUDE ({', '.join(self.include)})" if self.include else ""
        parameter = " WITH (lsm = true)" if method == "lsm" else ""
        return (f"ALTER TABLE {TABLE} ADD CONSTRAINT {TABLE}_key UNIQUE{nulls} ({columns}){include}"
                f"{parameter}{self.constraint}")

    def target(self):
        """What infers the index in ON CONFLICT."""
        if self.second and self.rng.random() < 0.2 and not self.partition_column:
            return " (note, sel)"
        if self.constraint is not None and self.rng.random() < 0.5:
            return f" ON CONSTRAINT {TABLE}_key"
        items = ", ".join(key.sql() if key.is_column else f"({key.sql()})" for key in self.keys)
        return f" ({items})" + (f" WHERE {self.predicate}" if self.predicate else "")

    def same_key(self):
        """The join condition for MERGE. Finds at most one row of the table."""
        terms = [f"{key.sql(TABLE + '.')} {key.operator('=')} {key.sql(SOURCE + '.')}"
                 for key in self.keys]
        if self.predicate:
            terms += [f"{TABLE}.{self.predicate}", f"{SOURCE}.{self.predicate}"]
        return " AND ".join(terms)

    def describe(self):
        return (super().describe() + f"; {self.persistence}constraint {self.constraint}, partitioned by "
                f"{self.partition_column}, second {self.second or None}")


class Upserts(Operations):
    """Random statements. `status` returns that of the transaction: I, T or E."""

    def __init__(self, layout, run, copy, status, version):
        super().__init__(layout, None, run, copy)
        self.status = status
        self.version = version
        # Some seeds have statements of more rows than are batched or read ahead at once.
        self.many = self.rng.random() < 0.3

    def change(self, small=False):
        if self.status() == "E":
            return
        choices = [(self.upsert, 1 if self.layout.deferrable else 14), (self.insert_batch, 2),
                   (self.insert_source, 2), (self.insert_one_duplicate, 2), (self.insert_copy, 1),
                   (self.update_keys, 2), (self.update_from_source, 3), (self.rotate_keys, 2),
                   (self.take_key, 2), (self.update_note, 1), (self.delete, 3)]
        if not self.layout.deferrable:
            choices += [(self.handle_errors, 2), (self.insert_with, 1)]
        # The keys of a deferred constraint may match several rows.
        if not self.layout.deferrable or self.status() == "I":
            choices += [(self.merge, 4)]
        self.rng.choices([c for c, _ in choices], [w for _, w in choices])[0]()

    # -- the parts of a statement --------------------------------------------

    def values(self, counts=(1, 1, 2, 5, 20, 70)):
        return "VALUES " + ", ".join(self.layout.row_sql() for _ in range(self.rng.choice(counts)))

    def fill_source(self, counts):
        """New rows for the source table. Returns the first id and the number of rows."""
        first, count = self.layout.next_id, self.rng.choice(counts)
        self.run(f"TRUNCATE {SOURCE}")
        self.copy(f"COPY {SOURCE} FROM STDIN", [self.layout.row_copy() for _ in range(count)])
        return first, count

    def distinct_source(self, where=""):
        """Rows with different keys, and their order."""
        keys = ", ".join(key.sql() for key in self.layout.keys)
        return f"SELECT DISTINCT ON ({keys}) * FROM {SOURCE}{where} ORDER BY {keys}, id"

    def absent(self):
        """A condition for source rows with new keys."""
        return f" WHERE NOT EXISTS (SELECT FROM {TABLE} WHERE {self.layout.same_key()})"

    def source(self):
        """The rows of an INSERT."""
        kind = self.rng.random()
        if kind < 0.4:
            return self.values()
        self.fill_source((300, 1200, 2500) if self.many else (20, 70, 300))
        if kind < 0.75:
            return self.distinct_source()
        return f"SELECT * FROM {SOURCE} ORDER BY {self.rng.choice(('id', 'id DESC', 'id % 7, id'))}"

    def conflict(self):
        """ON CONFLICT and what to do."""
        rng = self.rng
        if rng.random() < 0.45:
            return f" ON CONFLICT{rng.choice(('', self.layout.target()))} DO NOTHING"
        items = ["note = left(EXCLUDED.note || '+', 30)", "id = EXCLUDED.id",
                 rng.choice(("sel = EXCLUDED.sel", f"sel = ({TABLE}.sel + 1) % 10"))]
        for column in self.layout.columns:
            value = (column.type.literal(column.value(rng)) if rng.random() < 0.1
                     else f"EXCLUDED.{column.name}")
            items.append(f"{column.name} = {value}")
        items = rng.sample(items, rng.randint(1, 3))
        where = rng.choice(("", "", f" WHERE {TABLE}.sel < EXCLUDED.sel", f" WHERE {TABLE}.id % 3 > 0"))
        return f" ON CONFLICT{self.layout.target()} DO UPDATE SET {', '.join(items)}{where}"

    def returning(self):
        choices = ["", " RETURNING *", f" RETURNING id, {TABLE}.note"]
        if not self.layout.partition_column:
            choices.append(f" RETURNING id, {TABLE}.xmax = 0")
        return self.rng.choice(choices)

    # -- statements ------------------------------------------------------------

    def upsert(self):
        self.run(f"INSERT INTO {TABLE} {self.source()}{self.conflict()}{self.returning()}")

    def insert_with(self):
        self.run(f"WITH i AS (INSERT INTO {TABLE} {self.values()}{self.conflict()} RETURNING id)"
                 " SELECT count(*), min(id), max(id) FROM i")

    def insert_batch(self):
        self.run(f"INSERT INTO {TABLE} {self.values((1, 1, 2, 5, 20))}{self.returning()}")

    def insert_source(self):
        """Rows that mostly have new keys and no duplicates among themselves."""
        self.fill_source((5, 20, 300))
        absent = self.absent() if self.rng.random() < 0.5 else ""
        source = (self.distinct_source(absent) if self.rng.random() < 0.8
                  else f"SELECT * FROM {SOURCE}{absent} ORDER BY id")
        self.run(f"INSERT INTO {TABLE} {source}{self.returning()}")

    def insert_one_duplicate(self):
        """Rows with new keys, then one with the key of an old row. Of a batch, only that one conflicts."""
        first, _ = self.fill_source((20, 70, 300))
        columns = ", ".join(self.layout.column_names()[1:])
        self.run(f"DELETE FROM {SOURCE} WHERE id = {first}")
        self.run(f"INSERT INTO {SOURCE} SELECT {first}, {columns} FROM {TABLE}"
                 f" WHERE id > {self.rng.randint(0, first // 2)} ORDER BY id LIMIT 1")
        source = self.distinct_source(f"{self.absent()} OR id = {first}")
        self.run(f"INSERT INTO {TABLE} SELECT * FROM ({source}) {SOURCE} ORDER BY id DESC"
                 f"{self.returning()}")

    def insert_copy(self, count=None):
        super().insert_copy(count or self.rng.choice((1, 2, 5, 20)))

    def handle_errors(self):
        """Subtransactions, each with several statements, of which some are rolled back."""
        blocks = ""
        for _ in range(self.rng.randint(1, 4)):
            parts = [f"INSERT INTO {TABLE} {self.values((1, 2, 6))}"
                     + self.rng.choice(("", self.conflict())) for _ in range(self.rng.randint(1, 3))]
            if self.rng.random() < 0.3:
                parts.append("RAISE division_by_zero")
            blocks += (f"BEGIN {'; '.join(parts)}; EXCEPTION WHEN division_by_zero OR unique_violation"
                       f" OR cardinality_violation THEN INSERT INTO {TABLE} {self.values((1, 5))}"
                       " ON CONFLICT DO NOTHING; END; ")
        self.run(f"DO $oracle$ BEGIN {blocks}END $oracle$")

    def some_ids(self):
        """A condition for which the B-tree on id is scanned."""
        low = self.rng.randint(0, self.layout.next_id)
        return f"id BETWEEN {low} AND {low + self.rng.choice((0, 3, 20, 100))}"

    def update_from_source(self):
        """Other keys for some rows."""
        first, count = self.fill_source((1, 20, 100))
        columns = ", ".join(c.name for c in self.layout.columns)
        self.run(f"UPDATE {TABLE} SET ({columns}) = (SELECT {columns} FROM {SOURCE} WHERE {SOURCE}.id ="
                 f" {first} + {TABLE}.id % {count}) WHERE {self.some_ids()}{self.returning()}")

    def rotate_keys(self):
        """Each row gets the key of a neighbor, which works if the constraint is deferrable."""
        where = self.some_ids()
        columns = ", ".join(c.name for c in self.layout.columns)
        other = f"SELECT id FROM {TABLE} p WHERE p.{where} AND p.id > {TABLE}.id ORDER BY id LIMIT 1"
        first = f"SELECT id FROM {TABLE} p WHERE p.{where} ORDER BY id LIMIT 1"
        self.run(f"UPDATE {TABLE} SET ({columns}) = (SELECT {columns} FROM {TABLE} o WHERE o.id ="
                 f" coalesce(({other}), ({first}))) WHERE {where}")

    def take_key(self):
        """A row gets the key of another row."""
        columns = ", ".join(c.name for c in self.layout.columns)
        middle = self.layout.next_id // 2
        other = f"id > {self.rng.randint(0, middle)} ORDER BY id LIMIT 1"
        own = f"id > {self.rng.randint(0, middle)} ORDER BY id LIMIT 1"
        self.run(f"UPDATE {TABLE} SET ({columns}) = (SELECT {columns} FROM {TABLE} p WHERE p.{other})"
                 f" WHERE id = (SELECT id FROM {TABLE} p WHERE p.{own})")

    def merge(self):
        rng = self.rng
        names = self.layout.column_names()
        self.fill_source((1, 2, 5, 20, 70))
        source = (self.distinct_source() if rng.random() < 0.8
                  else f"SELECT * FROM {SOURCE} ORDER BY id")
        items = ", ".join(f"{name} = {SOURCE}.{name}"
                          for name in rng.sample(names, rng.randint(1, len(names))))
        delete = rng.choice(("", f" WHEN MATCHED AND {TABLE}.sel < {rng.randint(0, 9)} THEN DELETE"))
        update = rng.choice(("DO NOTHING", f"UPDATE SET {items}", f"UPDATE SET {items}"))
        returning = f" RETURNING merge_action(), {TABLE}.id" if self.version >= 170000 else ""
        inserted = ", ".join(f"{SOURCE}.{name}" for name in names)
        # WHEN NOT MATCHED makes the source the outer side of the join, which keeps its order.
        self.run(f"MERGE INTO {TABLE} USING ({source}) {SOURCE} ON {self.layout.same_key()}{delete}"
                 f" WHEN MATCHED THEN {update} WHEN NOT MATCHED THEN INSERT VALUES ({inserted})"
                 f"{rng.choice(('', returning))}")

    # -- maintenance -----------------------------------------------------------

    def maintain(self):
        choices = ((self.vacuum, 5), (self.delete_most, 2), (self.reindex, 1), (self.truncate, 0.5))
        self.rng.choices([c for c, _ in choices], [w for _, w in choices])[0]()

    def reindex(self):
        self.run(f"REINDEX TABLE {TABLE}")

    def truncate(self):
        self.run(f"TRUNCATE {TABLE}")


class UpsertRound:
    def __init__(self, server, seed, options, statistics):
        self.rng = random.Random(seed)
        self.log = SqlLog()
        self.options = options
        self.statistics = statistics
        self.methods = (options.am, "btree")
        self.connections = [server.connect(log=self.log.session(number)) for number in (1, 2)]
        version = int(self.connections[0].query("SHOW server_version_num").scalar())
        self.layout = self.make_layout(version)
        self.operations = Upserts(self.layout, self.run, self.copy, lambda: self.connections[0].status,
                                  version)

    def make_layout(self, version):
        """A layout that promises collisions as well as rows. The longest values exceed lsm's limit
        before that of B-trees."""
        for _ in range(50):
            layout = UpsertLayout(self.rng, self.options, version)
            if layout.long <= 1600 and not layout.has_few_keys():
                break
        return layout

    # -- statements ------------------------------------------------------------

    def run(self, sql):
        return self.both(sql, lambda connection: connection.query(sql))

    def copy(self, sql, lines):
        return self.both(sql, lambda connection: connection.copy_in(sql, lines))

    def both(self, sql, execute):
        """Run a statement on both tables. Returns whether it succeeded, which must be the same."""
        answers, errors = [], []
        for connection in self.connections:
            try:
                result = execute(connection)
                answers.append((result.tag, result.rows))
                errors.append(None)
            except PgError as error:
                answers.append((f"error {error.sqlstate}", []))
                errors.append(error)
                self.check_expected(error)
        self.count(sql, errors[0])
        if answers[0] != answers[1]:
            raise Mismatch(f"statement: {shorten(sql)}\n"
                           f"{self.methods[0]}: {errors[0] or answers[0][0]}\n"
                           f"btree: {errors[1] or answers[1][0]}\n"
                           + difference(answers[1][1], answers[0][1]))
        return errors[0] is None

    def count(self, sql, error):
        verb = sql.split(" ", 1)[0]
        if verb not in CHANGES or SOURCE in sql.split(" ")[1:3]:
            return
        counts = self.statistics.twin_changes.setdefault(verb, {})
        outcome = error.sqlstate if error else "good"
        counts[outcome] = counts.get(outcome, 0) + 1

    def check_expected(self, error):
        expected = (error.sqlstate in (DUPLICATE, TWICE) or is_expected(error, self.layout)
                    or error.sqlstate == DEFERRABLE_ARBITER and self.layout.deferrable
                    or error.sqlstate == OTHER_PARTITION and self.layout.partition_column)
        if not expected:
            raise Mismatch(f"unexpected error: {error}\nstatement: {shorten(error.sql)}") from error

    # -- the life of the tables --------------------------------------------------

    def compare_rows(self):
        if self.connections[0].status == "E":
            return
        self.statistics.queries += 1
        answers = [connection.query(ROWS).rows for connection in self.connections]
        if answers[0] != answers[1]:
            lsm, btree = (connection.query(f"SELECT * FROM {TABLE} ORDER BY id").rows
                          for connection in self.connections)
            raise Mismatch("the tables have different rows\n" + difference(btree, lsm))

    def on_indexes(self, function):
        if self.options.am == "lsm":
            self.connections[0].query(INDEXES.format(function=function))

    def set_limits(self):
        settings = self.layout.limits + [
            f"SET pg_lsm.debug_prefetch_scan = {self.rng.choice(('on', 'off'))}",
            f"SET work_mem = {self.rng.choice((64, 4096))}"]
        for connection in self.connections:
            connection.query("; ".join(settings))

    def create(self):
        for method, connection, schema in zip(self.methods, self.connections, ("twin_1", "twin_2")):
            connection.query(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {schema} CASCADE;"
                             f" CREATE SCHEMA {schema}; SET search_path = {schema}, public; {SETTINGS}")
            for statement in self.layout.setup(method):
                connection.query(statement)

    def change_phase(self):
        rng = self.rng
        for _ in range(rng.randint(5, 15)):
            kind = rng.random()
            if kind < 0.5:
                self.operations.change()
            elif kind < 0.8:
                self.operations.block(inside=self.compare_rows)
                if self.connections[0].status != "I":
                    self.run("ROLLBACK")
            elif kind < 0.88:
                self.on_indexes("lsm_compact(i.oid::regclass)")
            else:
                self.operations.maintain()
            if rng.random() < 0.4:
                self.compare_rows()

    def run_all(self):
        self.create()
        for _ in range(self.rng.randint(3, 6)):
            self.set_limits()
            self.change_phase()
            self.compare_rows()
            self.on_indexes("lsm_check(i.oid::regclass, true)")
        for connection in self.connections:
            connection.close()
