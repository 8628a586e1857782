"""Bars on CREATE INDEX, serial and parallel, on a parallel count, and on the size of small indexes."""

from .bench import INDEX, say
from .verdicts import at_least, at_most, information, median_or_none, number, of_repeats

WORKERS = 2
COUNT = "SELECT count(k) FROM t"
PARALLEL = {"enable_seqscan": "off", "enable_bitmapscan": "off", "parallel_setup_cost": 0, "parallel_tuple_cost": 0,
            "min_parallel_index_scan_size": 0, "min_parallel_table_scan_size": 0}
SMALL_ROWS = 1000


class Build:
    """Times CREATE INDEX on one table, serial and parallel, for each method in turn. Then times a count of all entries,
    serial and parallel."""

    name, title, methods, share = "build", "CREATE INDEX and a count of all entries, serial and parallel", ("btree", "lsm"), 0.2

    def __init__(self):
        self.builds, self.counts = {}, {}       # {workers: {method: {repeat: seconds}}}
        self.rows = 0

    def measure(self, bench):
        with bench.server:
            bench.turn(self.name, "none", "")
            bench.begin_fresh()
            bench.create_table()
            self.rows = bench.load(bench.rows(self.share), limit_s=0).total
            bench.server.query("VACUUM t; ANALYZE t;")
            for method, repeat in bench.turns(self, 3):
                for workers in (0, WORKERS):
                    bench.server.query("DROP INDEX IF EXISTS %s; CHECKPOINT;" % INDEX)
                    seconds = bench.timed("CREATE INDEX, %d workers" % workers,
                                          "CREATE INDEX %s ON t USING %s (k)" % (INDEX, method),
                                          max_parallel_maintenance_workers=workers, min_parallel_table_scan_size=0)
                    self._keep(bench, self.builds, "CREATE INDEX", workers, seconds)
                bench.figure("index bytes/row", bench.index_bytes() / self.rows, "bytes")
                bench.server.query("VACUUM (INDEX_CLEANUP OFF) t;")
                for workers in (0, WORKERS):
                    seconds = min(bench.timed("count, %d workers" % workers, COUNT,
                                              **dict(PARALLEL, max_parallel_workers_per_gather=workers))
                                  for _ in range(3))
                    self._keep(bench, self.counts, "count", workers, seconds)
                say("  %-6s CREATE INDEX %s s, count %s s, by one process and with %d workers; %.2f bytes/row" % (
                    method, self._of(self.builds, method, repeat), self._of(self.counts, method, repeat), WORKERS,
                    bench.index_bytes() / self.rows))
                bench.server.query("DROP INDEX %s;" % INDEX)

    @staticmethod
    def _keep(bench, results, what, workers, seconds):
        bench.figure("%s, %s" % (what, "%d workers" % workers if workers else "serial"), seconds, "s")
        results.setdefault(workers, {}).setdefault(bench.method, {})[bench.repeat] = seconds

    @staticmethod
    def _of(results, method, repeat):
        return " and ".join("%.2f" % results[workers][method][repeat] for workers in (0, WORKERS))

    def verdicts(self):
        for workers, how in ((0, "serial"), (WORKERS, "%d workers" % WORKERS)):
            pairs = list(of_repeats(self.builds.get(workers, {}), "lsm", "btree"))
            yield at_most(self.name, "time of CREATE INDEX, %s, of btree's" % how, [a / b for a, b in pairs], 1.0,
                          self._parts(pairs, "lsm %s, btree %s s"))
        for method, bound in (("lsm", 1.6), ("btree", None)):
            serial, parallel = (self.counts.get(workers, {}).get(method, {}) for workers in (0, WORKERS))
            pairs = list(of_repeats({"serial": serial, "parallel": parallel}, "serial", "parallel"))
            judge = (lambda *a: at_least(*a[:3], bound, a[3])) if bound else information
            yield judge(self.name, "count of %s, %d workers, of one process" % (method, WORKERS), [a / b for a, b in pairs],
                        self._parts(pairs, "serial %s, parallel %s s"))
        pairs = list(of_repeats(self.counts.get(0, {}), "lsm", "btree"))
        yield information(self.name, "time of the count, serial, of btree's", [a / b for a, b in pairs],
                          self._parts(pairs, "lsm %s, btree %s s"))

    def _parts(self, pairs, text):
        if not pairs:
            return ""
        return "%s, %s rows" % (text % tuple(number(median_or_none(p[i] for p in pairs)) for i in (0, 1)),
                                format(self.rows, ","))


class Small:
    """Compares the sizes of indexes on a thousand rows, created before and after the rows are inserted."""

    name, title, methods = "small", "size of indexes of %d rows" % SMALL_ROWS, ("lsm", "btree")

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        with bench.server:
            bench.turn(self.name, "", "")
            bench.begin_fresh()
            bench.server.query("CREATE TABLE keys AS SELECT hashint4(g) AS k FROM generate_series(1, %d) g;" % SMALL_ROWS)
            for method in self.methods:
                bench.turn(self.name, method, 1)
                sizes = [int(v) for v in bench.server.query("""
                    CREATE TABLE before_{m} (k int4, f char(10)); CREATE INDEX before_{m}_k ON before_{m} USING {m} (k);
                    INSERT INTO before_{m} SELECT k, 'x' FROM keys;
                    CREATE TABLE after_{m} (k int4, f char(10)); INSERT INTO after_{m} SELECT k, 'x' FROM keys;
                    CREATE INDEX after_{m}_k ON after_{m} USING {m} (k);
                    SELECT pg_relation_size('before_{m}_k'); SELECT pg_relation_size('after_{m}_k');
                    """.format(m=method)).split()]
                self.results[method] = sizes
                for when, size in zip(("before", "after"), sizes):
                    bench.figure("index made %s the rows" % when, size, "bytes")

    def verdicts(self):
        lsm, btree = self.results.get("lsm"), self.results.get("btree")
        for i, when in enumerate(("before", "after")):
            done = bool(lsm and btree)
            yield at_most(self.name, "size, made %s %d rows, of btree's" % (when, SMALL_ROWS),
                          lsm[i] / btree[i] if done else None, 2.0,
                          "lsm %s, btree %s bytes" % (format(lsm[i], ","), format(btree[i], ",")) if done else "")


EXPERIMENTS = [Build(), Small()]
