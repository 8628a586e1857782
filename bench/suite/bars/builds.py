"""Bars on CREATE INDEX and on the size of small indexes."""

from .bench import INDEX, say
from .verdicts import at_most, median_or_none, number, of_repeats

SMALL_ROWS = 1000


class Build:
    """CREATE INDEX on one table, in turns."""

    name, title, methods, share = "build", "CREATE INDEX, serial", ("btree", "lsm"), 0.2

    def __init__(self):
        self.results = {}
        self.rows = 0

    def measure(self, bench):
        with bench.server:
            bench.turn(self.name, "none", "")
            bench.begin_fresh()
            bench.create_table()
            self.rows = bench.load(bench.rows(self.share), limit_s=0).total
            bench.server.query("VACUUM t; ANALYZE t;")
            for method, repeat in bench.turns(self, 3):
                bench.server.query("CHECKPOINT;")
                seconds = bench.server.timed("CREATE INDEX %s ON t USING %s (k)" % (INDEX, method),
                                             max_parallel_maintenance_workers=0)
                bench.figure("CREATE INDEX", seconds, "s")
                bench.figure("index bytes/row", bench.index_bytes() / self.rows, "bytes")
                say("  %-6s %8.2f s, %.2f bytes/row" % (method, seconds, bench.index_bytes() / self.rows))
                self.results.setdefault(method, {})[repeat] = seconds
                bench.server.query("DROP INDEX %s;" % INDEX)

    def verdicts(self):
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        parts = ""
        if pairs:
            parts = "lsm %s, btree %s s, %s rows" % (
                number(median_or_none(p[0] for p in pairs)), number(median_or_none(p[1] for p in pairs)),
                format(self.rows, ","))
        yield at_most(self.name, "time of CREATE INDEX, of btree's", [a / b for a, b in pairs], 1.0, parts)


class Small:
    """Indexes of a thousand rows, that were made before the rows came, and after."""

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
