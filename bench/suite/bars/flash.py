"""Bars for the prefetching scan: cold, compared with core's ways to read a range; in memory, with core's plan."""

from statistics import median

from ..experiments import e6_flash as e6
from .bench import INDEX, say
from .verdicts import at_least, at_most, information, median_or_none, number

SELECTIVITIES = (5, 10, 20, 30, 40)     # percent of the rows
PLAIN, BITMAP_0, SEQUENTIAL = "plain index scan", "bitmap scan, 0 ahead", "sequential scan"
# (way, settings); the planner may choose any way except BITMAP_0
WAYS = ((PLAIN, e6.CORE_INDEX), (BITMAP_0, dict(e6.CORE_BITMAP, effective_io_concurrency="0")),
        (e6.BITMAP, dict(e6.CORE_BITMAP, effective_io_concurrency="128")),
        (SEQUENTIAL, e6.SEQUENTIAL[1]), (e6.IN_ORDER, e6.PREFETCH), (e6.BY_PAGE, e6.PREFETCH))
SUM = "SELECT sum(length(f)) FROM t WHERE %s"
SUM_IN_ORDER = "SELECT sum(length(f)) FROM (SELECT f FROM t WHERE %s ORDER BY k OFFSET 0) q"
SERIAL = {"max_parallel_workers_per_gather": "0"}
PLANNER = dict(e6.PLANNER, **SERIAL)
# The text in EXPLAIN that shows the planner's choice.
SHOWN = (("Mode: by page", e6.BY_PAGE), ("Mode: in index order", e6.IN_ORDER), ("Bitmap Heap Scan", e6.BITMAP),
         ("Seq Scan", SEQUENTIAL), ("Index Scan", PLAIN))
NEAR = 1.1                              # times the fastest way; turns vary by about as much
METHODS = ("lsm", "btree")


def fill(bench, rows):
    """Creates and loads experiment 6's table, with the index in place."""
    bench.begin_fresh()
    bench.create_table("fat")
    bench.fill(rows, "fat")
    bench.server.query("VACUUM (FREEZE, ANALYZE, TRUNCATE OFF) t; CHECKPOINT;")


def condition(percent, place=0):
    """A condition on k for a share of the rows; `place` selects the range."""
    low = -2 ** 31 + place % 10 * 2 ** 28
    return "k BETWEEN %d AND %d" % (low, low + round(percent / 100 * 2 ** 32))


class Cold:
    """One user, with cold caches before each query. The ways take turns. The plain index scan takes minutes, so it runs
    only in the first repeat."""

    name, title = "flash", "cold ranges: prefetching scan, core's ways, the planner's choice"
    methods, share = METHODS, 0.025

    def __init__(self):
        self.times = {}         # (method, way, percent): [ms]
        self.first = {}         # (method, way, percent): [ms until the first row]
        self.chosen = {}        # (method, percent): [way]

    def measure(self, bench):
        for method, repeat in bench.turns(self, 3):
            with bench.server:
                fill(bench, bench.rows(self.share))
                for percent in SELECTIVITIES:
                    self._measure_ways(bench, percent, repeat)
                for way, session in WAYS:
                    if way in (e6.BITMAP, e6.BY_PAGE):
                        self._measure_first(bench, way, session)

    def _measure_ways(self, bench, percent, repeat):
        where = condition(percent, repeat - 1)
        said = []
        for way, session in WAYS:
            if way == PLAIN and repeat > 1:
                continue
            bench.server.restart_cold()
            sql = SUM_IN_ORDER if way == e6.IN_ORDER else SUM
            ms = 1000 * bench.server.timed(sql % where, **dict(session, **SERIAL))
            bench.figure(way, ms, "ms", percent)
            self.times.setdefault((bench.method, way, percent), []).append(ms)
            said.append("%s %s" % (way, number(ms)))
        plan = bench.server.query("EXPLAIN " + SUM % where, **PLANNER)
        chosen = next(way for text, way in SHOWN if text in plan)
        bench.raw.add("sample", "the planner's choice", percent, chosen)
        self.chosen.setdefault((bench.method, percent), []).append(chosen)
        say("  %-6s %2d%%: %s ms; the planner takes: %s" % (bench.method, percent, ", ".join(said), chosen))

    def _measure_first(self, bench, way, session):
        for percent in (SELECTIVITIES[0], SELECTIVITIES[-1]):
            bench.server.restart_cold()
            ms = 1000 * bench.server.timed(
                "FETCH 1 FROM c", before=e6.SQL_ROWS % condition(percent), **dict(session, **SERIAL))
            bench.figure("first row, " + way, ms, "ms", percent)
            self.first.setdefault((bench.method, way, percent), []).append(ms)

    def _least(self, way, other):
        """The smallest factor by which this way is faster than the other one, and where it occurs."""
        rates = {(m, p): median(self.times[m, other, p]) / median(self.times[m, way, p])
                 for m in METHODS for p in SELECTIVITIES if (m, way, p) in self.times and (m, other, p) in self.times}
        if not rates:
            return None, ""
        point = min(rates, key=rates.get)
        return rates[point], "%s, %d percent; greatest %s" % (*point, number(max(rates.values())))

    def _standing(self):
        """[(time of the planner's choice / time of the fastest way, description)] for each point."""
        result = []
        for (method, percent), chosen in sorted(self.chosen.items()):
            way = max(set(chosen), key=chosen.count)
            medians = {w: median(self.times[method, w, percent]) for w, _ in WAYS if w != BITMAP_0}
            fastest = min(medians, key=medians.get)
            result.append((medians[way] / medians[fastest],
                           "%s %d%%: %s, fastest %s" % (method, percent, way, fastest)))
        return result

    def verdicts(self):
        for way, other, bound in ((e6.IN_ORDER, PLAIN, 4), (e6.BY_PAGE, e6.BITMAP, 1), (e6.BY_PAGE, BITMAP_0, 3)):
            least, where = self._least(way, other)
            yield at_least(self.name, "%s: times %s" % (way, other), least, bound, where)
        first = [median(ms) / median(self.times[key]) for key, ms in self.first.items() if key[1] == e6.BY_PAGE]
        yield at_most(self.name, "by page: first row, of the time of all", max(first, default=None), 0.05)
        standing = self._standing()
        if standing:
            yield at_least(self.name, "the planner takes the fastest way, share of points",
                           sum(ratio == 1 for ratio, _ in standing) / len(standing), 0.9,
                           "; ".join("%s (%.2f)" % (text, ratio) for ratio, text in standing if ratio > 1))
            yield information(self.name, "the same, or within a tenth of it",
                              sum(ratio <= NEAR for ratio, _ in standing) / len(standing))


# (name, statement with a condition to fill in, percent of the rows, times it is run, bound)
WARM = (
    ("in order, 5 percent", SUM_IN_ORDER, 5, 1, 1.05), ("in order, 0.5 percent", SUM_IN_ORDER, 0.5, 4, 1.05),
    ("in order, 0.05 percent", SUM_IN_ORDER, 0.05, 20, 1.05), ("by page, 0.5 percent", SUM, 0.5, 4, 1.05),
    ("ORDER BY LIMIT 1", "SELECT f FROM t WHERE %s ORDER BY k LIMIT 1", 10, 400, 1.02),
    ("nested loop, 1000 inner scans of a row",
     "SELECT count(i.f) FROM (SELECT k FROM t WHERE %s LIMIT 1000) o JOIN t i ON i.k = o.k", 1, 20, 1.02))
WARM_SESSION = dict(PLANNER, enable_hashjoin="off", enable_mergejoin="off", enable_memoize="off", enable_material="off")


class Warm:
    """All in shared buffers, but planned as for a disk. Executions with and without the node alternate within a session."""

    name, title = "flash-memory", "ranges in memory: with the prefetching scan, and without"
    methods, share = METHODS, 0.008
    PAIRS = 31

    def __init__(self):
        self.ratios = {}        # (method, name): [ratio]

    def measure(self, bench):
        for method, _ in bench.turns(self):
            with bench.server:
                fill(bench, bench.rows(self.share))
                bench.server.query("CREATE EXTENSION pg_prewarm; SELECT pg_prewarm('t'), pg_prewarm('%s');" % INDEX)
                for name, sql, percent, times, _ in WARM:
                    ratios = self._pairs(bench, sql % condition(percent, 3), times)
                    self.ratios[method, name] = ratios
                    bench.figure(name, median(ratios), "")
                    say("  %-6s %s: %.3f of the time without the node" % (method, name, median(ratios)))

    def _pairs(self, bench, sql, times):
        """The time with the node divided by the time without it, for each pair."""
        part = "SET pg_lsm.enable_prefetch_scan = %%s;\n\\timing on\nDO $$ BEGIN FOR i IN 1 .. %d LOOP EXECUTE '%s'; " \
            "END LOOP; END $$;\n\\timing off\n" % (times, sql)
        answer = bench.server.query((part % "'all'" + part % "off") * (self.PAIRS + 1), **WARM_SESSION)
        ms = [float(text.split(" ms")[0]) for text in answer.split("Time: ")[1:]]
        return [ms[i] / ms[i + 1] for i in range(2, len(ms), 2)]        # the first pair warms up

    def verdicts(self):
        for method in METHODS:
            for name, _, _, _, bound in WARM:
                yield at_most(self.name, "%s: %s, time of core's" % (method, name), median_or_none(
                    self.ratios.get((method, name), ())), bound)


EXPERIMENTS = [Cold(), Warm()]
