"""Experiment 6: Hwang et al., range queries on an unclustered index with cold caches."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "6", "flash"
TITLE = "Cold range queries on an unclustered index: plain and sorted index scans"
SOURCE = """Da-som Hwang, Woon-hak Kang, Gihwan Oh, Sang-won Lee, "Flash-aware index scan in PostgreSQL", ICDE
Workshops 2015 (<a href="https://doi.org/10.1109/icdew.2015.7129570">doi:10.1109/icdew.2015.7129570</a>): tables I and
II, figure 6."""

SELECTIVITIES = (0.05, 0.10, 0.20, 0.30, 0.40)
CORE = {"pg_lsm.enable_prefetch_scan": "off"}
CORE_INDEX = dict(CORE, enable_seqscan="off", enable_bitmapscan="off")
CORE_BITMAP = dict(CORE, enable_seqscan="off", enable_indexscan="off")
PREFETCH = dict(CORE_INDEX, **{"enable_sort": "off", "pg_lsm.enable_prefetch_scan": "all",
                               "pg_lsm.prefetch_depth": "128"})
BITMAP = "sorted scan, 128 reads ahead"
BY_PAGE = "by page, 128 ahead"
IN_ORDER = "in order, 128 ahead"
# The planner gets the costs of a real SSD.
PLANNER = {"pg_lsm.enable_prefetch_scan": "all", "random_page_cost": "15", "effective_io_concurrency": "128",
           "effective_cache_size": "700MB"}
# name, session settings
WAYS = (
    ("plain index scan", CORE_INDEX),
    ("sorted (bitmap) scan", dict(CORE_BITMAP, effective_io_concurrency="0")),
    ("sorted scan, 16 reads ahead", dict(CORE_BITMAP, effective_io_concurrency="16")),
    (BITMAP, dict(CORE_BITMAP, effective_io_concurrency="128")),
    (IN_ORDER, PREFETCH),
    (BY_PAGE, PREFETCH),
    ("the planner's choice", PLANNER),
)
SEQUENTIAL = ("sequential scan", dict(CORE, enable_indexscan="off", enable_bitmapscan="off"))
ONE, MANY = "1 user", "12 users"

def _plot(name, users, topic):
    return Plot(name, "lines", topic, [
        Part("%s, %s" % (SEQUENTIAL[0], users), "query", "sequential scan", "none"),
        Part("%s, %s" % (WAYS[0][0], users), "query", "B-tree, plain index scan", "btree", dashed=True),
        Part("%s, %s" % (BITMAP, users), "query", "B-tree, bitmap scan", "btree"),
        Part("%s, %s" % (BY_PAGE, users), "query", "lsm, prefetching scan", "lsm")], "ms", "percent of the rows",
        "Reading {x}% of a cold table takes {a}'s prefetching scan {as long} as a plain index scan", "20",
        pairs=((3, 1),), conditions="cold caches, range of random rows, %s; less is better" % users, logy=True)


SECTIONS = [Section("How fast are range queries with cold caches?", """2.5 million rows (or an eighth of the
largest table, if that is fewer) with 300 bytes of data each and an indexed int4 key, which is random. A query sums the
length of a column over 5% to 40% of the keys; each user has a range of its own. Before each measurement, the server is
restarted, and the operating system's cache is dropped if we have the right to do so. Each user runs one query, and the
time is that of the slowest. The tables list all ways, for each index. PostgreSQL's own are the plain index scan, and
the sorted scan, which is its bitmap scan, with effective_io_concurrency 0, 16 and 128. pg_lsm's prefetching scan looks
128 pages ahead, and returns rows in key order or by page. The last way is what the planner chooses with the settings of
an SSD: random_page_cost = 15, effective_io_concurrency = 128, effective_cache_size = 700MB. Parallel query is off.
"First row" is the time until the first row of such a range arrives, without a sum over the range.""", [
    _plot("e6-flash", ONE, "Time of cold range queries, one user"),
    _plot("e6-flash-users", MANY, "Time of cold range queries, twelve users")])]

SQL = "SELECT sum(length(f)) FROM %s WHERE k BETWEEN $1 AND $2"
# The LIMIT lets rows come by page. A cursor without LIMIT may move backward, which a scan by page cannot.
SQL_ROWS = "BEGIN; DECLARE c CURSOR FOR SELECT f FROM t WHERE %s LIMIT 1000000000;"
SQL_IN_ORDER = "SELECT sum(length(f)) FROM (SELECT f FROM %s WHERE k BETWEEN $1 AND $2 ORDER BY k OFFSET 0) q"

PATIENCE_S = 3600           # no query is canceled


def _cold_query(context, rows, users, selectivity, way, session):
    dropped = context.server.restart_cold(drop=not context.options.quick)
    report = context.run(["range:%d" % users], rows, kind="fat", warmup=0, seconds=PATIENCE_S,
                         session=dict(session, max_parallel_workers_per_gather="0"),
                         p=selectivity, q=SQL_IN_ORDER if way == IN_ORDER else SQL, o=1)
    notes = []
    if not dropped:
        notes.append("the operating system's cache was not dropped")
    return report.value("range", "max_us") / 1000, "; ".join(notes)


def _cold_first_row(context, selectivity, session):
    context.server.restart_cold(drop=not context.options.quick)
    low = -2 ** 31              # keys are spread evenly over all values of an int4
    return 1000 * context.server.timed(
        "FETCH 1 FROM c", before=SQL_ROWS % ("k BETWEEN %d AND %d" % (low, low + round(selectivity * 2 ** 32))),
        **dict(session, max_parallel_workers_per_gather="0"))


def plan(options):
    rows = min(options.rows // 8, 2_500_000)
    many = 12

    def measure(context, ways, users, name, selectivities):
        for way, session in ways:
            for selectivity in selectivities:
                context.case = "%s, %s" % (way, name)
                ms, note = _cold_query(context, rows, users, selectivity, way, session)
                context.record("query", ms, "ms", round(selectivity * 100), note)

    def work(context):
        context.case = "load"
        context.create_table("fat", table="t")
        context.load("fat", rows)
        context.freeze_heap()
        one = several = SELECTIVITIES
        ways = WAYS
        if context.am == "none":
            ways = (SEQUENTIAL,)
        if options.quick:
            one, several = (0.20,), ()
            ways = [way for way in ways if way[0] in (WAYS[0][0], BITMAP, BY_PAGE, SEQUENTIAL[0])]
        measure(context, ways, 1, ONE, one)
        measure(context, ways, many, MANY, several)
        for way, session in ways:
            if way in (BITMAP, BY_PAGE):
                context.case = "%s, %s" % (way, ONE)
                for selectivity in one:
                    context.record("first row", _cold_first_row(context, selectivity, session), "ms",
                                   round(selectivity * 100))

    def estimate(am):
        load = load_seconds(am, rows, options.limit, 3.0)
        if am == "none":
            return load + 6 * (2 + rows / 2.5e6 * 4)
        plain = sum(SELECTIVITIES) * rows * (1 / 25e3 + many / 75e3)
        in_order = sum(SELECTIVITIES) * rows * (1 / 1e5 + many / 150e3)
        others = 5 * len(SELECTIVITIES) * (1.5 + 4) * rows / 2.5e6
        return load + 2 * len(WAYS) * len(SELECTIVITIES) * 1.5 + plain + in_order + others

    return interleave(ID, "cold ranges", options.am, 1, estimate, work)
