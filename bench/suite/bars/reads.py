"""Bars on reads: an lsm index, as a load left it and once settled, against a btree that CREATE INDEX built from the
same rows."""

from ..experiments.reads import INDEX_ONLY, WITH_ROWS
from .bench import INDEX, say
from .verdicts import at_least, at_most, information, median_or_none, number, of_repeats

# A key that most likely does not exist: rows use few of the four billion keys.
MISSING = "SELECT count(*) FROM (SELECT k FROM %s WHERE k = $1::int4 # 1431655765 LIMIT $2) s"
# (name, client's class, connections, rows of a range, statement)
READS = [
    ("key there, 1 client", "lookup", 1, 1, None), ("key there, 8 clients", "lookup", 8, 1, None),
    ("key not there, 1 client", "range", 1, 1, MISSING), ("key not there, 8 clients", "range", 8, 1, MISSING),
    ("index-only, 10 rows, 1 client", "range", 1, 10, INDEX_ONLY),
    ("index-only, 10 rows, 8 clients", "range", 8, 10, INDEX_ONLY),
    ("index-only, 1000 rows", "range", 1, 1000, INDEX_ONLY),
    ("index-only, 100000 rows", "range", 1, 100000, INDEX_ONLY),
    ("10 rows of the table", "range", 1, 10, WITH_ROWS)]
FRESH = [0.90, 0.85, 0.90, 0.85, 0.90, 0.80, 1.0, 1.0, 1.0]
SETTLED_BEYOND = [1.1, 1.1, 1.1, 1.1, 1.2, 1.2, 1.2, 1.3, None]
SETTLED_IN_MEMORY = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.3, None]


STATES = ("held", "fresh", "settled")


class Reads:
    """Each turn fills a table by COPY. The lsm index exists before the load; the btree is built after it. The lsm index
    is first "held": nothing merges it. Then it is "fresh": reads cause merges as usual, perhaps even during the first
    measurement. It is "settled" after lsm_compact. Merges of idle indexes are off throughout."""

    methods = ("lsm", "btree")

    def __init__(self, name, title, share, settled_bounds):
        self.name, self.title, self.share = name, title, share
        self.bounds = {"held": [None] * len(READS), "fresh": FRESH, "settled": settled_bounds}
        self.results = {}

    def measure(self, bench):
        for method, repeat in bench.turns(self, 3):
            with bench.server:
                bench.begin_fresh()
                bench.change_settings({"pg_lsm.idle_delay": "-1"})
                bench.create_table(index="(k)" if method == "lsm" else None)
                rows = bench.fill(bench.rows(self.share))
                rates = {}
                if method == "btree":
                    bench.create_index()
                    bench.server.query("VACUUM (ANALYZE, TRUNCATE OFF) t; CHECKPOINT;")
                    rates = dict.fromkeys(STATES, self._read(bench, rows, ""))
                else:
                    bench.change_settings({"pg_lsm.max_workers": "0"})
                    bench.server.query("VACUUM (ANALYZE, TRUNCATE OFF) t; CHECKPOINT;")
                    rates["held"] = self._read(bench, rows, "held")
                    bench.change_settings({"pg_lsm.max_workers": None})
                    rates["fresh"] = self._read(bench, rows, "fresh")
                    bench.server.query("SELECT lsm_compact('%s'); CHECKPOINT;" % INDEX)
                    rates["settled"] = self._read(bench, rows, "settled")
                self.results.setdefault(method, {})[repeat] = rates

    def _read(self, bench, rows, state):
        """Returns the operations per second for each entry of READS."""
        rates, runs = [], []
        for name, kind, clients, length, sql in READS:
            flags = {"l": length}
            if sql:
                flags["q"] = sql
            runs.append(self._runs(bench, state, "before " + name))
            # The label tells this entry's figures from those of other entries with the same class.
            report = bench.run(["%s:%d" % (kind, clients)], rows, ", ".join(t for t in (name, state) if t), **flags)
            rates.append(report.value(kind, "rate"))
        runs.append(self._runs(bench, state, "afterwards"))
        say("  %-6s %-8s %s%s" % (
            bench.method, state, ", ".join(number(rate) for rate in rates),
            "; runs before each, and afterwards: %s" % ", ".join(map(str, runs)) if bench.method == "lsm" else ""))
        return rates

    @staticmethod
    def _runs(bench, state, when):
        """Returns the number of runs of an lsm index, or 0 for a btree. The number falls when reads cause merges."""
        if bench.method != "lsm":
            return 0
        runs = int(bench.server.query("SELECT count(*) FROM lsm_runs('%s');" % INDEX))
        bench.figure("runs, " + state, runs, x=when)
        return runs

    def verdicts(self):
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        for state in STATES:
            for i, (name, *_) in enumerate(READS):
                value = [lsm[state][i] / btree[state][i] for lsm, btree in pairs]
                parts = "lsm %s, btree %s a second" % tuple(
                    number(median_or_none(pair[m][state][i] for pair in pairs)) for m in (0, 1))
                bound = self.bounds[state][i]
                text = "%s, %s, of btree" % (name, state)
                if bound is None:
                    yield information(self.name, text, value, parts)
                else:
                    yield at_least(self.name, text, value, bound, parts)


# (name, statement, upper bound as a multiple of btree's time)
STATEMENTS = [
    ("nested loop with 1 M inner lookups",
     "SELECT count(i.k) FROM (SELECT k FROM t ORDER BY f, k LIMIT 1000000) o JOIN t i ON i.k = o.k", 1 / 0.95),
    ("ORDER BY k LIMIT 1, 10,000 times",
     "SELECT count(x.k) FROM generate_series(1, 10000) g, LATERAL "
     "(SELECT k FROM t WHERE k > g ORDER BY k LIMIT 1) x", 1 / 0.95),
    ("all rows, index-only", "SELECT count(k) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s", 1 / 1.5),
    ("two arrays of 1000",
     "SELECT count(*) FROM pairs WHERE a = ANY (ARRAY(SELECT generate_series(1, 2000, 2))) "
     "AND b = ANY (ARRAY(SELECT generate_series(1, 2000, 2)))", 1.0)]
SESSION = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
           "enable_memoize": "off", "enable_material": "off", "max_parallel_workers_per_gather": 0, "work_mem": "256MB"}


class Statements:
    """Statements in memory, settled: the fastest of three executions."""

    name, title, methods, share = "loops", "nested loops, LIMIT 1, arrays, whole index: settled, in memory", ("lsm", "btree"), 0.02

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        for method, repeat in bench.turns(self, 3):
            with bench.server:
                bench.begin_fresh()
                bench.server.query(
                    "CREATE TABLE t AS SELECT hashint4(i) AS k, 'x'::char(10) AS f FROM generate_series(1, {rows}) i; "
                    "CREATE TABLE pairs AS SELECT 1 + i % 3000 AS a, (1 + i * 7919::int8 % 2999)::int4 AS b "
                    "FROM generate_series(1, {half}) i; "
                    "CREATE INDEX t_1 ON t USING {am} (k); CREATE INDEX pairs_1 ON pairs USING {am} (a, b);".format(
                        rows=bench.rows(self.share), half=bench.rows(self.share) // 2, am=method))
                bench.server.query("VACUUM ANALYZE t; VACUUM ANALYZE pairs; CHECKPOINT;")
                times = []
                for name, sql, _ in STATEMENTS:
                    times.append(min(bench.timed(name, sql, **SESSION) for _ in range(3)))
                    bench.figure(name, times[-1], "s")
                say("  %-6s %s s" % (method, ", ".join("%.3f" % seconds for seconds in times)))
                self.results.setdefault(method, {})[repeat] = times

    def verdicts(self):
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        for i, (name, _, bound) in enumerate(STATEMENTS):
            yield at_most(self.name, "%s: time, of btree's" % name, [a[i] / b[i] for a, b in pairs], bound,
                          "lsm %s, btree %s ms" % tuple(number(median_or_none(1000 * pair[m][i] for pair in pairs))
                                                        for m in (0, 1)))


class Updates:
    """A small table with an indexed column that is updated repeatedly, with normal autovacuum."""

    name, title, methods = "updates", "100,000 rows, 5 M updates of an indexed column", ("lsm", "btree")
    ROWS, UPDATES, BATCH = 100_000, 0.05, 1000

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        updates = bench.rows(self.UPDATES)
        for method, repeat in bench.turns(self):
            with bench.server:
                bench.begin_fresh()
                bench.server.query(
                    "CREATE TABLE t (id int4, k int4, f char(10)); CREATE INDEX t_id ON t (id); "
                    "CREATE INDEX %s ON t USING %s (k); "
                    "INSERT INTO t SELECT i, hashint4(i), 'x' FROM generate_series(1, %d) i; "
                    "VACUUM ANALYZE t;" % (INDEX, method, self.ROWS))
                seconds = bench.timed(
                    "updates", "DO $$ BEGIN FOR b IN 1 .. %d LOOP UPDATE t SET k = hashint8(k::int8 + b) "
                    "WHERE id BETWEEN b * %d %% %d + 1 AND b * %d %% %d + %d; COMMIT; END LOOP; END $$" % (
                        updates // self.BATCH, self.BATCH, self.ROWS, self.BATCH, self.ROWS, self.BATCH))
                size = bench.index_bytes()
                lookups = min(bench.timed(
                    "100,000 lookups", "SELECT count(i.k) FROM (SELECT k FROM t ORDER BY f, k LIMIT 100000) o JOIN t i ON i.k = o.k",
                    **SESSION) for _ in range(3))
                for name, value, unit in (("updates/s", updates / seconds, "1/s"), ("index bytes", size, "bytes"),
                                          ("100,000 lookups", lookups, "s")):
                    bench.figure(name, value, unit)
                say("  %-6s %s updates/s, index %s MB, 100,000 lookups in %.3f s" % (
                    method, number(updates / seconds), number(size / 1e6), lookups))
                self.results.setdefault(method, {})[repeat] = (updates / seconds, size, lookups)

    def verdicts(self):
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        yield at_least(self.name, "lookups at the end, of btree", [b[2] / a[2] for a, b in pairs], 0.9)
        yield at_most(self.name, "size of the index, of btree", [a[1] / b[1] for a, b in pairs], 0.5)
        yield information(self.name, "updates/s, of btree", [a[0] / b[0] for a, b in pairs])


class Queue:
    """A queue: each turn inserts one row and deletes the first. Also measures, in a second table, the time to the first
    row after a DELETE of the older half."""

    name, title, methods = "queue", "insert and delete the first row; the first row after a DELETE", ("lsm", "btree")
    TURNS, PARTS = 0.002, 4

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        turns = bench.rows(self.TURNS)
        for method, repeat in bench.turns(self):
            with bench.server:
                bench.begin_fresh()
                bench.server.query(
                    "CREATE TABLE q (id int8, at int8); CREATE INDEX q_at ON q USING %s (at); "
                    "INSERT INTO q SELECT i, i FROM generate_series(1, 1000) i; "
                    "CREATE TABLE t (k int8, f char(10)); CREATE INDEX %s ON t USING %s (k); "
                    "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 2000000) i; VACUUM ANALYZE q, t;" % (
                        method, INDEX, method))
                rates = []
                for part in range(self.PARTS):
                    seconds = bench.timed(
                        "turns", "DO $$ BEGIN FOR i IN %d .. %d LOOP INSERT INTO q VALUES (i, i); DELETE FROM q WHERE ctid = "
                        "(SELECT ctid FROM q ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED); COMMIT; END LOOP; END $$" % (
                            1001 + part * turns, 1000 + (part + 1) * turns), **{"enable_seqscan": "off"})
                    rates.append(turns / seconds)
                    bench.figure("turns/s", rates[-1], "1/s", part)
                bench.server.query("DELETE FROM t WHERE k <= 1000000;")
                first, second = (bench.server.timed("SELECT k FROM t ORDER BY k LIMIT 1", **SESSION) for _ in range(2))
                bench.figure("first row after DELETE", first, "s")
                bench.figure("first row after DELETE, again", second, "s")
                say("  %-6s %s turns/s; first row after DELETE %.1f ms, again %.1f ms" % (
                    method, ", ".join(number(rate) for rate in rates), 1000 * first, 1000 * second))
                self.results.setdefault(method, {})[repeat] = (rates, second)

    def verdicts(self):
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        yield at_least(self.name, "turns/s at the end, of btree", [a[0][-1] / b[0][-1] for a, b in pairs], 0.8)
        yield at_least(self.name, "turns/s at the end, of those at first",
                       [a[0][-1] / a[0][0] for a, _ in pairs], 0.9)
        yield at_most(self.name, "first row after DELETE, again, ms",
                      [1000 * a[1] for a, _ in pairs], 10)


EXPERIMENTS = [
    Reads("fresh", "reads beyond memory: as loaded, and settled", 0.2, SETTLED_BEYOND),
    Reads("memory", "reads in memory: as loaded, and settled", 0.02, SETTLED_IN_MEMORY),
    Statements(), Updates(), Queue(),
]
