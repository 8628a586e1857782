"""The tables, the random statements and the sessions of the mode hostile (hostile.py)."""

import random
import re
import threading
import time

from pgwire import ConnectionLost, PgError

VALUES = 600
SLOW = ("sleep", "spin")
TIMEOUT = 0.4           # statement_timeout of a session, if it has one


class Variant:
    """What is indexed: the key of a value v, and where functions misbehave."""

    def __init__(self, column, index, key, plain, text, places, where="true", own="k"):
        self.column = column            # the type of column k
        self.index = index              # the index's key
        self.key = key                  # SQL of the key of value v
        self.plain = plain              # SQL of the value of a key
        self.text = text                # a key for COPY
        self.places = places
        self.where = where              # a partial index's condition
        self.own = own                  # what the index serves in conditions

    def fill(self, sql, table):
        sql = re.sub(r"<([^<>]+)>", lambda m: self.key.format(v=m.group(1)), sql)
        target = f"({self.own})" + (f" WHERE {self.where}" if self.where != "true" else "")
        return sql.format(t=table, k=self.own, where=self.where, plain=self.plain, target=target)

    def create(self, table, method, unique):
        where = f" WHERE {self.where}" if self.where != "true" else ""
        return (f"CREATE {'UNIQUE ' if unique else ''}INDEX {table}_k ON h.{table} USING {method} "
                f"({self.index}) INCLUDE (id){where}")


VARIANTS = {
    "int": Variant("int", "k h.int_ops", "({v})", "k", "{v}", ("cmp",)),
    "num": Variant("h.num", "k", "ROW({v})::h.num", "(k).v", "({v})", ("cmp", "hash", "op")),
    "array": Variant("h.num[]", "k", "ARRAY[ROW({v})::h.num]", "(k[1]).v", "{{({v})}}", ("cmp", "hash")),
    "expr": Variant("int", "h.expr(k)", "({v})", "k", "{v}", ("expr",), own="h.expr(k)"),
    "pred": Variant("int", "k", "({v})", "k", "{v}", ("pred",), where="h.pred(k)"),
}


def twin_of(variant):
    where = "k % 3 <> 1" if variant.where != "true" else "true"
    return Variant("int", "k", "({v})", "k", "{v}", (), where)


class Statements:
    """Random statements, with <v> for the key of v; see Variant.fill."""

    def __init__(self, rng, unique):
        self.rng = rng
        self.unique = unique

    def change(self):
        rng = self.rng
        x, n, number = rng.randrange(VALUES), rng.randint(50, 250), rng.randrange(10000)
        many = (f"INSERT INTO {{t}} (id, k) SELECT i, <(i * 7919 + {x}) % {VALUES}> "
                f"FROM generate_series(1, {n}) i")
        ignore = " ON CONFLICT DO NOTHING" if self.unique and rng.random() < 0.7 else ""
        update = " ON CONFLICT {target} DO UPDATE SET id = EXCLUDED.id" if self.unique else ""
        return rng.choice((
            f"INSERT INTO {{t}} (id, k) VALUES ({number}, <{x}>)" + ignore,
            f"INSERT INTO {{t}} (id, k) VALUES ({number}, <{x}>), (1, NULL), (2, <{(x + 1) % VALUES}>)" + update,
            many + ignore, many + ignore, many + update,
            f"UPDATE {{t}} SET k = <{(x + 7) % VALUES}> WHERE {{k}} = <{x}> AND {{where}}",
            f"UPDATE {{t}} SET id = id + 1 WHERE {{k}} >= <{x}> AND {{k}} < <{x + 20}> AND {{where}}",
            f"DELETE FROM {{t}} WHERE id % 3 = {x % 3}",
            f"DELETE FROM {{t}} WHERE {{k}} >= <{x}> AND {{k}} < <{x + 60}> AND {{where}}"))

    def question(self):
        rng = self.rng
        x, y = sorted(rng.randrange(VALUES) for _ in range(2))
        way = rng.choice(("", " DESC"))
        return rng.choice((
            f"SELECT count(*), sum({{plain}}) FROM {{t}} WHERE {{k}} >= <{x}> AND {{k}} < <{y}> AND {{where}}",
            f"SELECT {{plain}} FROM {{t}} WHERE {{k}} > <{x}> AND {{where}} ORDER BY {{k}}{way} LIMIT {y}",
            f"SELECT id, {{plain}} FROM {{t}} WHERE {{k}} = <{x}> AND {{where}} ORDER BY id",
            f"SELECT count(*) FROM {{t}} WHERE {{k}} IN (<{x}>, <{y}>, <{x + 1}>) AND {{where}}",
            f"SELECT count(*) FROM {{t}} WHERE {{k}} IS NULL AND {{where}}"))

    def maintenance(self):
        return self.rng.choice((
            "VACUUM {t}", "VACUUM (INDEX_CLEANUP ON, PARALLEL 2) {t}", "VACUUM FULL {t}", "ANALYZE {t}",
            "SELECT lsm_compact('h.t_k')", "SELECT lsm_compact('h.t_k')", "SELECT lsm_check('h.t_k')",
            "SELECT lsm_check('h.t_k', true)", "SELECT * FROM lsm_check_all('h', true)", "REINDEX INDEX h.t_k",
            "REINDEX INDEX CONCURRENTLY h.t_k", "REINDEX TABLE {t}", "CLUSTER {t} USING t_k",
            "CREATE INDEX CONCURRENTLY t_more ON {t} USING lsm ({k})", "DROP INDEX IF EXISTS h.t_more",
            "CREATE INDEX t_more ON {t} USING lsm ({k})"))

    def block(self, name):
        """A transaction, or one statement with an exception handler."""
        rng = self.rng
        if rng.random() < 0.3:
            return ["DO $x$ BEGIN FOR i IN 1..3 LOOP BEGIN " + self.change()
                    + "; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $x$"]
        if rng.random() < 0.2:
            return ["BEGIN", "DECLARE c CURSOR FOR SELECT {plain} FROM {t} WHERE {where} ORDER BY {k}",
                    "FETCH 5 FROM c", self.change(), "FETCH 50 FROM c", "COMMIT"]
        found = [rng.choice(("BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE")), self.change(), "SAVEPOINT s",
                 self.change(), rng.choice(("ROLLBACK TO s", "RELEASE s")), self.question(), self.change()]
        if rng.random() < 0.4:
            return found + [f"PREPARE TRANSACTION '{name}'", rng.choice(("COMMIT", "ROLLBACK")) + f" PREPARED '{name}'"]
        return found + [rng.choice(("COMMIT", "ROLLBACK"))]


class Session(threading.Thread):
    """Runs random statements for the time of a mood."""

    def __init__(self, play, role, number):
        super().__init__(daemon=True)
        self.play = play
        self.role = role
        self.number = number
        self.rng = random.Random(play.rng.random())
        self.statements = Statements(self.rng, play.unique)
        self.timeout = play.deed in SLOW and number == 0
        self.failure = None
        self.serial = 0
        self.current = None             # serial, text and start of the running statement
        self.canceled = (0, 0)          # serial and time of the latest cancel
        self.connection = None
        self.connect()

    def connect(self):
        self.connection = self.play.connect(self.role)
        for sql in ("SET search_path = h, public",
                    f"SET enable_seqscan = {self.rng.choice(('on', 'off', 'off'))}",
                    f"SET pg_lsm.batch_inserts = {self.rng.choice(('on', 'on', 'off'))}",
                    f"SET statement_timeout = {int(1000 * TIMEOUT) if self.timeout else 0}"):
            self.send(sql)

    def send(self, sql, lines=None):
        """Run a statement. Return whether it succeeded."""
        self.serial += 1
        self.current = (self.serial, sql, time.monotonic())
        try:
            if lines is None:
                self.connection.query(sql)
            else:
                self.connection.copy_in(sql, lines)
            return True
        except PgError as error:
            self.play.judge(error)
            return False
        finally:
            self.current = None

    def run(self):
        try:
            while time.monotonic() < self.play.deadline and self.failure is None:
                try:
                    self.step()
                except ConnectionLost as error:
                    self.play.judge_lost(error, self.connection)
                    self.connect()
        except Exception as error:
            self.failure = error

    def step(self):
        kind = self.rng.random()
        play, statements = self.play, self.statements
        boss = self.role == "postgres"
        # A superuser's own statements run everybody's functions with a superuser's rights, as with a B-tree.
        if boss and (kind < 0.6 or play.deed == "rob"):
            self.send(play.fill(statements.maintenance()))
        elif kind < 0.3:
            self.send(play.fill(statements.question()))
        elif kind < 0.75:
            self.send(play.fill(statements.change()))
        elif kind < 0.85:
            keys = self.rng.sample(range(VALUES), self.rng.randint(1, 120))
            self.send(play.fill("COPY {t} (id, k) FROM STDIN"),
                      [f"{key}\t{play.variant.text.format(v=key)}" for key in keys])
        else:
            for sql in statements.block(f"p{self.number}"):
                if not self.send(play.fill(sql)):
                    break
            if self.connection.status != "I":
                self.send("ROLLBACK")
