"""One seed: a table with random changes. Both indexes must return the same answers."""

import random
import re
import time

from layout import BTREE, LSM, TABLE, Layout
from operations import Operations
from pgwire import ConnectionLost, PgError
from queries import FIXED_SETTINGS, CursorScript, QueryMaker

# Errors of random statements that say nothing about the index.
EXPECTED = {
    "22003",        # numeric value out of range
    "22008",        # datetime field overflow
    "25P02",        # current transaction is aborted
    "42883",        # operator does not exist
    "42P22",        # indeterminate collation
    "23502", "22P02",
    "40001",        # serialization failure
}
# Errors that an access method may also raise where it should not.
EXPECTED_TEXTS = {
    "54000": re.compile(r"index row size (\d+) exceeds .*maximum (\d+) for|"
                        r"index row requires (\d+) bytes, .* is (\d+)"),
    "0A000": re.compile(r"cannot cluster on (invalid|partial) index"),
    # The rest of a canceled REINDEX CONCURRENTLY.
    "55000": re.compile(r"cannot check index"),
}


def is_expected(error, layout):
    """Does this error of a random statement say nothing about the index?"""
    if error.sqlstate not in EXPECTED_TEXTS:
        return error.sqlstate in EXPECTED
    match = EXPECTED_TEXTS[error.sqlstate].match(error.message)
    if not match or error.sqlstate != "54000":
        return bool(match)
    size, limit = (int(n) for n in match.groups() if n)
    return layout.long >= 400 and size > limit >= 2600


DUPLICATE = "23505"


class Mismatch(Exception):
    """The two indexes disagree, or something else is wrong."""


class Statistics:
    """Counts for the summary."""

    def __init__(self):
        self.queries = 0
        self.queries_compared = 0   # with btree and lsm; the others with the table
        self.fetches = 0
        self.changes = 0
        self.other_plans = 0
        self.without_index = 0
        self.btree_wrong = 0    # answers that the table itself refutes
        self.index_due = 0      # queries of several clients that should use the index
        self.index_missed = 0   # and those that did not use it
        self.counts = 0         # attempts to compare the manifest's counts
        self.counts_given_up = 0
        self.twin_changes = {}  # statements that ran on two tables, by verb and SQLSTATE
        self.errors = {}
        self.plan_samples = []
        self.shapes = []        # runs, deepest level, runs being built

    def too_little(self):
        """Was less compared than required? If so, return the part that fell short."""
        found = []

        def limit(what, count, total, percent):
            if total >= 200 and count * 100 > total * percent:
                found.append(f"{count} of {total} {what}, "
                             f"more than {percent} percent")
        limit("queries had no index in their plan", self.without_index,
              self.queries_compared, 12)
        limit("queries had other plans with the two indexes",
              self.other_plans, self.queries_compared, 4)
        limit("queries next to other clients did not use the index",
              self.index_missed, self.index_due, 5)
        limit("comparisons of the manifest's counts were abandoned",
              self.counts_given_up, self.counts, 50)
        count, failed = self.twins()
        limit("statements on twin tables failed", failed, count, 50)
        return found

    def twins(self):
        """The numbers of statements that ran on two tables, and of those that failed on both."""
        outcomes = [pair for counts in self.twin_changes.values() for pair in counts.items()]
        return (sum(count for _, count in outcomes),
                sum(count for outcome, count in outcomes if outcome != "good"))


class SqlLog:
    """All statements sent, as a script for psql."""

    def __init__(self):
        self.lines = []

    def session(self, number):
        def write(sql, data=None):
            mark = "" if number == 1 else f"-- session {number}:\n"
            self.lines.append(f"{mark}{sql};")
            if data is not None:
                self.lines.append(data + "\\.")
        return write

    def save(self, path):
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(self.lines) + "\n")


class Round:
    """Runs one seed.  `sides` names the index to trust and the one to test."""

    def __init__(self, server, seed, options, statistics):
        self.server = server
        self.rng = random.Random(seed)
        self.options = options
        self.statistics = statistics
        self.log = SqlLog()
        self.connection = server.connect(log=self.log.session(1))
        self.other = server.connect(log=self.log.session(2))
        self.version = int(self.query("SHOW server_version_num").scalar())
        self.layout = Layout(self.rng, options.am, options.types,
                             options.unavailable)
        self.maker = QueryMaker(self.layout)
        self.operations = Operations(self.layout, self.maker, self.run,
                                     self.copy)
        self.settings = {}
        self.vacuuming = False
        # A few rounds have many rows and full pages.
        self.bulk = self.rng.random() < 0.06

    # -- statements ---------------------------------------------------------

    def query(self, sql):
        return self.connection.query(sql)

    def run(self, sql, connection=None):
        """A change. Return whether it succeeded. Unknown errors are faults."""
        connection = connection or self.connection
        # This rolls back a failed transaction and raises no error.
        futile = connection.status == "E" and sql.startswith("PREPARE")
        self.statistics.changes += 1
        try:
            connection.query(sql)
            return not futile
        except PgError as error:
            self.note_error(error)
            return False

    def copy(self, sql, lines):
        self.statistics.changes += 1
        try:
            self.connection.copy_in(sql, lines)
            return True
        except PgError as error:
            self.note_error(error)
            return False

    def note_error(self, error):
        if error.sqlstate == DUPLICATE and self.layout.unique:
            self.check_first(error)
        elif not is_expected(error, self.layout):
            raise Mismatch(f"unexpected error: {error}\n"
                           f"statement: {shorten(error.sql)}") from error
        key = f"{error.sqlstate} {error.message[:60]}"
        self.statistics.errors[key] = self.statistics.errors.get(key, 0) + 1

    def check_first(self, error):
        """Is this index asked first, before the other one?

        Core inserts rows into the indexes in the order of their OIDs. An error of the second index means that the first
        one has missed a duplicate, or that the second one reports a duplicate that does not exist.
        """
        if self.connection.status == "E" or "could not create" in error.message:
            return
        # Our entries may wait until the statement ends.
        if (f'"{BTREE}"' in error.message and self.options.am == "lsm"
                and self.query("SHOW pg_lsm.batch_inserts").scalar() == "on"):
            return
        first = self.query(
            "SELECT relname FROM pg_class WHERE oid IN "
            f"('{BTREE}'::regclass, '{LSM}'::regclass) ORDER BY oid").scalar()
        if f'"{first}"' not in error.message:
            raise Mismatch(f"{error}, but \"{first}\" is asked before\n"
                           f"statement: {shorten(error.sql)}") from error

    def use(self, index):
        """Let the planner see only one of the two indexes, or both (None)."""
        valid = "true" if index is None else f"indexrelid = '{index}'::regclass"
        self.query(f"UPDATE pg_index SET indisvalid = {valid} WHERE indexrelid"
                   f" IN ('{BTREE}'::regclass, '{LSM}'::regclass)")

    # -- the life of a table ------------------------------------------------

    def run_all(self):
        rng = self.rng
        try:
            self.create()
            for phase in range(rng.randint(3, 6)):
                self.change_phase()
                if rng.random() < 0.15:
                    self.set_limits()
                self.query_phase(rng.randint(8, 30))
                if rng.random() < 0.5:
                    self.transaction_phase()
                if rng.random() < 0.7:
                    self.cursor_phase()
                if phase and rng.random() < 0.05:
                    self.restart()
                self.check()
            self.query(f"DROP TABLE {TABLE}")
            self.connection.close()
            self.other.close()
        except ConnectionLost as error:
            raise Mismatch(f"connection lost: {error}\nlast statement: "
                           f"{shorten(self.log.lines[-1])}\n"
                           f"{self.server.log_tail()}") from error

    def create(self):
        self.query(f"DROP TABLE IF EXISTS {TABLE}")
        self.query(self.layout.create_table())
        self.set_limits()
        if self.layout.unique:
            self.create_indexes()
        if self.rng.random() < 0.5:
            for _ in range(self.rng.randint(1, 4)):
                self.operations.change()
        elif self.rng.random() < 0.2:
            self.operations.insert_copy(self.rng.randint(2000, 8000))
        if self.bulk:
            self.operations.insert_copy(self.rng.randint(5000, 25000))
        if not self.layout.unique:
            self.create_indexes()

    def create_indexes(self):
        names = [BTREE, LSM]
        if self.layout.unique and self.rng.random() < 0.5:
            names.reverse()
        for name in names:
            self.query(self.layout.create_index(name))

    def set_limits(self):
        if self.bulk:
            return
        for statement in self.layout.limits:
            self.query(statement)
            self.other.query(statement)

    def restart(self):
        if self.layout.persistence.startswith("TEMP"):
            return
        self.connection.close()
        self.other.close()
        self.server.stop()
        self.server.start()
        self.log.lines.append("-- the server was restarted here")
        self.connection = self.server.connect(log=self.log.session(1))
        self.other = self.server.connect(log=self.log.session(2))
        self.settings = {}
        self.set_limits()

    def change_phase(self):
        rng = self.rng
        self.use(rng.choice((None, BTREE, LSM)))
        for _ in range(rng.randint(3, 18)):
            kind = rng.random()
            if kind < 0.65:
                self.operations.change()
            elif kind < 0.85:
                self.operations.block(prepared=lambda: self.query_phase(3))
            else:
                self.operations.maintain()

    def check(self):
        if self.options.am != "lsm":
            return
        try:
            self.query(f"SELECT lsm_check('{LSM}'::regclass, true)")
            runs = self.query("SELECT count(*), coalesce(max(level), 0), "
                              "count(*) FILTER (WHERE state = 'merging') "
                              f"FROM lsm_runs('{LSM}'::regclass)").rows[0]
            self.statistics.shapes.append([int(value) for value in runs])
            if self.rng.random() < 0.5:
                self.check_counts()
        except PgError as error:
            raise Mismatch(f"lsm_check: {error}") from error

    def check_counts(self):
        """Nothing was interrupted here, so the manifest's counts are exact.

        Merges under way during VACUUM are the exception. An entry that a step has read and that VACUUM or a scan then
        removes is subtracted twice or not at all. And VACUUM looks only if it has something to remove.
        """
        if self.layout.unique:
            return          # the row to be rolled back may be rejected
        self.use(LSM)
        self.settings = {}
        self.statistics.counts += 1
        for _ in range(5):
            self.query("BEGIN")
            inserted = self.run(
                f"INSERT INTO {TABLE} VALUES {self.layout.row_sql()}")
            self.query("ROLLBACK")
            if not inserted:
                continue        # too long
            before = self.runs()
            entries = check_no_stale_entries(self.connection, self.layout)
            after = self.runs()
            if before is None or after is None or before.keys() != after.keys():
                continue        # a worker was merging
            told = sum(after.values())
            if told != entries:
                raise Mismatch(f"the index has {entries} entries, but lsm_runs "
                               f"tells of {told}")
            return
        self.statistics.counts_given_up += 1

    def runs(self):
        """Entries by run according to the manifest; None while some are merged."""
        rows = self.query("SELECT run_id, entries, state FROM "
                          f"lsm_runs('{LSM}'::regclass)").rows
        if any(state == "merging" for _, _, state in rows):
            return None
        return {run_id: int(entries) for run_id, entries, _ in rows}

    # -- queries ------------------------------------------------------------

    def query_phase(self, count):
        """The same queries through one index, then through the other."""
        queries = [self.maker.make() for _ in range(count)]
        self.query(FIXED_SETTINGS)
        answers = []
        for index in (BTREE, LSM):
            self.use(index)
            answers.append([self.answer(query, index) for query in queries])
            if self.connection.status == "E":
                break
        for query, trusted, tested in zip(queries, *answers):
            self.compare(query, trusted, tested)
        if self.connection.status != "E":
            self.use(None)

    def apply(self, query, index=None):
        prefetch = query.prefetch == "both" or (query.prefetch == "lsm"
                                                and index == LSM)
        settings = query.settings | {
            "pg_lsm.debug_prefetch_scan": "on" if prefetch else "off"}
        changed = [f"SET {name} = {value}"
                   for name, value in settings.items()
                   if self.settings.get(name) != value]
        if changed:
            self.query("; ".join(changed))
            # A rollback restores settings, so remember them only outside.
            if self.connection.status == "I":
                self.settings.update(settings)
            else:
                self.settings = {}

    def answer(self, query, index):
        """The plan and the rows, or the error, of one query."""
        if self.connection.status == "E":
            return None, None
        self.apply(query, index)
        try:
            plan = self.query(f"EXPLAIN (COSTS OFF) {query.sql}").rows
            rows = self.query(query.sql).rows
        except PgError as error:
            if not is_expected(error, self.layout):
                rows = f"error {error}".replace(index, "INDEX")
            else:
                rows = f"error {error.sqlstate}"
            plan = []
        return shape_of(plan, index), rows

    def compare(self, query, trusted, tested):
        self.statistics.queries += 1
        self.statistics.queries_compared += 1
        plan, expected = trusted
        other_plan, got = tested
        if expected is None or got is None:
            return
        if "INDEX" not in "".join(other_plan):
            self.statistics.without_index += 1
        same_plan = flat(plan) == flat(other_plan)
        # With one index only, the plans need not be alike.
        if not same_plan and query.prefetch != "lsm":
            self.statistics.other_plans += 1
            if len(self.statistics.plan_samples) < 5:
                self.statistics.plan_samples.append(
                    (query.sql, plan, other_plan))
        if expected == got:
            return
        loose = not same_plan or self.loose(query.sql, plan)
        if (loose and not isinstance(expected, str)
                and not isinstance(got, str) and self.alike(query, expected, got)):
            return
        if self.btree_is_wrong(query, expected, got):
            self.statistics.btree_wrong += 1
            return
        raise Mismatch(
            f"query: {query.sql}\nsettings: {query.settings}\n"
            f"prefetch: {query.prefetch}\n"
            f"plan of btree: {plan}\nplan of {self.options.am}: {other_plan}\n"
            + difference(expected, got))

    @staticmethod
    def alike(query, expected, got):
        """May different plans return these rows?

        With a LIMIT, or among equal values, two plans may show different rows. But the number of rows is the same, and
        so are the ordering columns, row by row.
        """
        if not query.limited and not query.lossy:
            return sorted(expected, key=str) == sorted(got, key=str)
        if len(expected) != len(got):
            return False
        return all([row[i] for i in query.ordered] == [other[i] for i in query.ordered]
                   for row, other in zip(expected, got))

    def btree_is_wrong(self, query, expected, got):
        """Does the table itself agree with lsm and not with btree?

        17 returns rows with a null k1 from a btree on (k0, k1 NULLS FIRST) for k0 = ANY (...) AND k1 < x. 18 fails
        where it skips over timestamps that it compares with timestamptz: it computes the successor of -infinity, which
        is out of range.
        """
        failed = expected == "error 22008" and self.version >= 180000
        if (isinstance(got, str) or self.connection.status == "E"
                or not failed and (isinstance(expected, str) or query.limited or query.lossy)):
            return False
        self.query("UPDATE pg_index SET indisvalid = false WHERE indexrelid"
                   f" IN ('{BTREE}'::regclass, '{LSM}'::regclass)")
        try:
            rows = self.query(query.sql).rows
        except PgError:
            return False
        finally:
            self.use(None)
        return (self.alike(query, rows, got)
                and (failed or not self.alike(query, rows, expected)))

    def loose(self, sql, plan):
        """May equal rows of two btrees come in different orders here?

        Before 17 btree processes the elements of an array one by one, and so out of index order if the array is not on
        the first column. The planner knows this and sorts where order matters, but the order of ties remains. Processes
        of a parallel plan vary in speed. A scan by page takes a fixed number of TIDs at a time, including those of dead
        rows, and one index may have removed these while the other has not.
        """
        text = "".join(plan)
        if "Gather" in text or "by page" in text:
            return True
        return (self.version < 170000 and " ANY (" in sql
                and ("ORDER BY" not in sql or "Sort" in text))

    def transaction_phase(self):
        """Queries between the changes of an open transaction."""
        def inside():
            if self.connection.status in "IT":
                self.query_phase(4)
        self.operations.block(inside=inside)
        if self.connection.status != "I":
            self.query("ROLLBACK")

    # -- cursors ------------------------------------------------------------

    def cursor_phase(self):
        """Two cursors over the same query, stepped in turn, under changes."""
        rng = self.rng
        self.query(FIXED_SETTINGS)
        self.query("BEGIN" + rng.choice(
            ("", " ISOLATION LEVEL REPEATABLE READ",
             " ISOLATION LEVEL SERIALIZABLE")))
        try:
            for number in range(rng.randint(1, 3)):
                self.step_cursors(f"c{number}", CursorScript(self.maker))
            self.query(rng.choice(("COMMIT", "ROLLBACK")))
        except PgError as error:
            self.note_error(error)
            self.query("ROLLBACK")
        self.end_vacuum()
        self.use(None)

    def step_cursors(self, name, script):
        self.apply(script.query)
        plans = []
        for index in (BTREE, LSM):
            declare = f"DECLARE {name}_{index} SCROLL CURSOR FOR {script.sql}"
            self.use(index)
            # A cursor's plan may differ from the plan of its query.
            plans.append(shape_of(self.query(
                f"EXPLAIN (COSTS OFF) {declare}").rows, index))
            self.query(declare)
        for step in script.steps:
            if step == "change":
                self.change_under_cursor()
                continue
            verb, what = step.split(" ", 1)
            answers = []
            for index in (BTREE, LSM):
                result = self.query(f"{verb} {what} FROM {name}_{index}")
                answers.append((result.tag, result.rows))
            self.statistics.fetches += 1
            if plans[0] != plans[1]:
                self.statistics.other_plans += 1
                break
            if self.loose(script.sql, plans[0]):
                break
            if answers[0] != answers[1]:
                raise Mismatch(f"cursor: {script.sql}\nsteps: {script.steps}\n"
                               f"at: {step}\nplan: {plans[1]}\n"
                               f"tags: {answers[0][0]}, {answers[1][0]}\n"
                               + difference(answers[0][1], answers[1][1]))
        if self.rng.random() < 0.5:
            for index in (BTREE, LSM):
                self.query(f"CLOSE {name}_{index}")

    def change_under_cursor(self):
        """Changes by this session, and by another one that commits them."""
        rng = self.rng
        self.end_vacuum(0.03)
        if (rng.random() < 0.4 or self.vacuuming
                or self.layout.persistence.startswith("TEMP")):
            self.query("SAVEPOINT under")
            self.operations.change(small=True)
            self.query(rng.choice(("ROLLBACK TO under", "RELEASE under"))
                       if self.connection.status == "T"
                       else "ROLLBACK TO under")
            return
        kind = rng.random()
        # A key that this session has inserted would make the other one wait.
        if kind < 0.35 and not self.layout.unique:
            rows = [self.layout.row_sql() for _ in range(rng.randint(1, 40))]
            self.run(f"INSERT INTO {TABLE} VALUES {', '.join(rows)}",
                     self.other)
        elif kind < 0.65:
            # The other session must not wait for rows that this session has locked.
            self.run(f"DELETE FROM {TABLE} WHERE ctid = ANY (ARRAY(SELECT ctid"
                     f" FROM {TABLE} WHERE {self.operations.some_rows()}"
                     f" FOR UPDATE SKIP LOCKED))", self.other)
        else:
            # VACUUM has to wait for the pages on which our cursors stand, so continue while it runs.
            self.statistics.changes += 1
            self.other.start(f"VACUUM (INDEX_CLEANUP ON) {TABLE}")
            self.vacuuming = True
            self.end_vacuum(0.03)

    def end_vacuum(self, seconds=None):
        """Take the result of the running VACUUM, or note that it is still running."""
        if not self.vacuuming:
            return
        if seconds is not None and self.other.busy(seconds):
            return
        self.vacuuming = False
        self.other.finish()


def vacuum_all(connection):
    """VACUUM until no dead row is left.

    A worker that looks at the index holds a snapshot for some milliseconds. VACUUM must keep the dead rows that it
    meets meanwhile.
    """
    for _ in range(200):
        connection.query("SELECT pg_stat_force_next_flush()")
        connection.query(f"VACUUM (INDEX_CLEANUP ON) {TABLE}")
        if connection.query(
                f"SELECT pg_stat_get_dead_tuples('{TABLE}'::regclass)"
        ).scalar() == "0":
            return
        time.sleep(0.01)


def check_no_stale_entries(connection, layout):
    """After VACUUM, with no other session active, each row has exactly one entry.

    An additional entry is one that some VACUUM has missed. Its TID will one day belong to another row.
    """
    query = connection.query
    vacuum_all(connection)
    query("SET enable_seqscan = off; SET enable_bitmapscan = off; "
          "SET enable_indexscan = on; SET enable_sort = off; "
          "SET max_parallel_workers_per_gather = 0")
    where = f" WHERE {layout.predicate}" if layout.predicate else ""
    order = ", ".join(key.order() for key in layout.keys)
    count = f"SELECT pg_stat_get_tuples_returned('{LSM}'::regclass)"
    query("SELECT pg_stat_force_next_flush()")
    before = int(query(count).scalar())
    rows = len(query(f"SELECT id FROM {TABLE}{where} ORDER BY {order}").rows)
    query("SELECT pg_stat_force_next_flush()")
    entries = int(query(count).scalar()) - before
    if entries != rows:
        raise Mismatch(f"after VACUUM the table has {rows} rows and the index "
                       f"{entries} entries")
    return entries


def shape_of(plan, index):
    """The nodes of a plan, without conditions and the index's name.

    A prefetching scan equals a plain scan if it keeps the order.
    """
    shape = []
    for number, (line,) in enumerate(plan):
        if "Custom Scan (Prefetch)" in line:
            continue
        if number == 0 or "->" in line:
            shape.append(line.replace(index, "INDEX"))
        elif "Mode: by page" in line:
            shape.append("by page")
    return shape


def flat(shape):
    """The depth of a node does not matter."""
    return [line.strip().removeprefix("->").strip() for line in shape]


def shorten(text, limit=600):
    return text if len(text) <= limit else text[:limit] + " ..."


def difference(expected, got):
    """The place where two answers differ."""
    if isinstance(expected, str) or isinstance(got, str):
        return (f"btree: {expected if isinstance(expected, str) else 'rows'}\n"
                f"tested: {got if isinstance(got, str) else 'rows'}")
    position = 0
    while (position < len(expected) and position < len(got)
           and expected[position] == got[position]):
        position += 1
    rows = set(got)
    missing = [row for row in expected if row not in rows]
    rows = set(expected)
    extra = [row for row in got if row not in rows]
    near = slice(max(position - 1, 0), position + 3)

    def show(rows):
        return ", ".join(shorten(str(row), 200) for row in rows)

    return (f"btree gives {len(expected)} rows, tested gives {len(got)}; "
            f"first difference at row {position}\n"
            f"btree:  {show(expected[near])}\ntested: {show(got[near])}\n"
            f"missing {len(missing)}: {show(missing[:3])}\n"
            f"extra {len(extra)}: {show(extra[:3])}")
