"""Lookups and range scans on a table t(k int4, f char(10)) with random k: the measurements of experiment 2, also used
elsewhere."""

SMALL, LARGEST = "small table", "largest table"
STATES = ("fresh", "settled")

# All systems must use the plan of the index. A table without an index sorts.
SESSION = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
INDEX_ONLY = "SELECT count(*), sum(k) FROM (SELECT k FROM %s WHERE k >= $1 ORDER BY k LIMIT $2) s"
WITH_ROWS = "SELECT count(f) FROM (SELECT f FROM %s WHERE k >= $1 ORDER BY k LIMIT $2) s"
LONGEST_WITH_ROWS = 10000
RANGE_SHARE = 0.25          # part of the time of other measurements, because there are many lengths


def lengths(rows):
    return [10 ** e for e in range(1, 8) if 10 ** e <= rows]


def seconds(options, am, rows):
    """Estimates the time of measure()."""
    a_state = len(options.clients) * (options.seconds + options.warmup) + 11 * (options.seconds * RANGE_SHARE + 0.2)
    # Without an index each query scans and sorts the table.
    settle_and_overrun = rows / 1e6 * (11 * 0.3 if am == "none" else 3)
    return a_state * (1 if am == "none" else 2) + settle_and_overrun


def _warmup(context):
    """Without an index whole tables are scanned. Repeating such scans makes nothing faster and takes long."""
    return 0 if context.am == "none" else context.options.warmup


def _lookups(context, rows, state):
    for clients in context.options.clients:
        report = context.run(["lookup:%d" % clients], rows, session=SESSION, warmup=_warmup(context))
        context.record_latencies(report, "lookup", "lookups", clients, ", " + state)


def _ranges(context, rows, state):
    options = context.options
    for label, sql, longest in (("range", INDEX_ONLY, rows), ("range with rows", WITH_ROWS, LONGEST_WITH_ROWS)):
        plan = context.plan_nodes(sql.replace("%s", "t").replace("$1", "0").replace("$2", "1000"), **SESSION)
        for length in lengths(min(rows, longest))[:2 if options.quick else None]:
            report = context.run(["range:1"], rows, session=SESSION, seconds=options.seconds * RANGE_SHARE, l=length, q=sql,
                                 warmup=_warmup(context) / 10)
            rate = report.value("range", "rate")
            context.record("%s, %s" % (label, state), 1000 / rate, "ms", length, plan)


def _runs(context, when):
    """Records how fresh an lsm index was."""
    if context.am == "lsm":
        context.record("runs, " + when, context.lsm_state()["runs"])


def measure(context, rows):
    """Reads the freshly loaded table, settles its index, and reads again."""
    context.record("rows", rows, "rows")
    context.keep_fresh()
    context.freeze_heap()
    for state in STATES:
        if state == "settled":
            if context.am == "none":
                return
            context.keep_fresh(False)
            context.settle()
        paths = context.index_paths()
        if paths:
            context.record("index bytes/row, " + state, context.server.relation_bytes(paths) / rows, "bytes")
        _runs(context, state + ", before")
        _lookups(context, rows, state)
        _ranges(context, rows, state)
        _runs(context, state + ", afterwards")
