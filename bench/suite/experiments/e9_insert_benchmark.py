"""Experiment 9: the steps of the Insert Benchmark (Mark Callaghan)."""

from ..context import SizeSamples
from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "9", "insert-benchmark"
TITLE = "The Insert Benchmark: three indexes, inserts with as many deletes, queries beside them"
SOURCE = """The steps are those of Mark Callaghan's Insert Benchmark
(<a href="https://smalldatum.blogspot.com/2023/12/updates-for-insert-benchmark-december.html">description</a>), the
client and the table are ours."""

CASE = "insert benchmark"
INDEXES = ("(product, customer, price)", "(till, price, customer)", "(price, at, customer)")
MEMORY_SHARE = 0.25
BATCH = 50
RATES = (1000, 500, 100)
INSERTED = 15           # step l.i1 inserts this fraction of the table
MOST_SECONDS = 45       # of step l.i1, in units of --seconds
KEPT = 0.95
FIRST_S = 15            # just after the load
POINTS = 18             # samples of a long step

SECTIONS = [Section("How does the Insert Benchmark go?", """t(id bigserial primary key, at, till, customer, product,
price, data), a row of some 80 bytes, and three secondary indexes on (product, customer, price), (till, price,
customer) and (price, at, customer). The server has a quarter of the memory, a third of the size of three such B-trees
at the default size. The primary key is a B-tree in all systems, and autovacuum has its defaults. Steps: <b>l.i0</b>
loads without secondary indexes; <b>l.x</b> builds them, then VACUUM ANALYZE; <b>l.i1</b> inserts a fifteenth of the
table at full speed, 50 rows to a transaction, while another connection deletes as many of the oldest rows;
<b>qr1000</b>, at once after that, is one connection with range queries of ten rows at full speed, in turn on the three
indexes, beside 1000 inserts and 1000 deletes a second; then <b>qr500</b>, <b>qr100</b>; <b>qp1000</b>, <b>qp500</b>,
<b>qp100</b> are the same with lookups by primary key. A table without secondary indexes has no range queries. The time of an insert at a fixed rate
counts from when it was due, so a stall counts for all inserts that it delays. A rate is kept if at least 95% of the
inserts that were due are there. CPU is that of the whole server; by operation is by insert in the steps l, otherwise
by query, which includes what the inserts beside them cost.""", [
    Plot("e9-inserts", "series", "Inserts per second into three indexes", [Part(CASE, "inserts/s, l.i1")],
         "inserts/s", "seconds",
         "With three indexes beyond memory, {a} takes {as many} inserts as {b}", figure=("inserts/s", "l.i1"),
         conditions="step l.i1, at full speed, as many deletes beside them; more is better"),
    Plot("e9-queries", "series", "Range queries per second just after the inserts", [Part(CASE, "queries/s, qr1000")],
         "queries/s", "seconds since the inserts", "In the 90 s after the inserts, {a} answers {as many} range queries as {b}",
         figure=("queries/s", "qr1000"), skip=("none",),
         conditions="step qr1000, beside 1000 inserts and 1000 deletes a second; more is better"),
    Plot("e9-size", "series", "Size of the three indexes while rows come and go", [Part(CASE, "index MB")], "MB",
         "seconds since the start of l.i1", "After inserts and deletes, three {a} indexes are {as large} as B-trees",
         figure=("index size", "qr1000"), skip=("none",),
         conditions="index files, steps l.i1 and qr1000; growth is bloat")])]


class _Table:
    """Which rows the table has, and the measurement of a step on it."""

    def __init__(self, context, rows):
        self.context, self.first, self.rows = context, 0, rows

    def step(self, name, classes, seconds, rate=0, rows=0):
        """Runs for these seconds, or until so many rows are inserted."""
        context, server = self.context, self.context.server
        flags = {"f": self.first, "b": BATCH, "i": seconds / POINTS}
        if rate:
            flags["a"] = rate
        if rows:
            flags.update(o=rows // BATCH, i=context.options.seconds / 4)
        cpu, io = server.cpu_seconds(), server.io_bytes()
        wal = server.query("SELECT pg_current_wal_insert_lsn();")
        report = context.run(classes + ["copy:1", "trim:1"], self.rows, kind="sales", seconds=seconds, warmup=0, **flags)
        wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % wal))
        cpu, io_end = server.cpu_seconds() - cpu, server.io_bytes()
        inserted, deleted = (int(report.value(kind, "ops")) * BATCH for kind in ("copy", "trim"))
        self.first += deleted
        self.rows += inserted - deleted

        wall = report.value("client", "wall_s")
        context.record("inserts/s", inserted / wall, "rows/s", name)
        context.record("deletes/s", deleted / wall, "rows/s", name)
        if rate:
            share = inserted / (rate * seconds)
            context.record("share of the rate", share, "", name, "" if share >= KEPT else "rate not kept")
        context.record("slowest insert", report.value("copy", "max_us") / 1000, "ms", name)
        context.record("insert p99", report.value("copy", "p99_us") / 1000, "ms", name)
        context.record("WAL bytes/insert", wal / inserted, "bytes", name)
        if io and io_end:
            context.record("KB read/insert", (io_end[0] - io[0]) / inserted / 1024, "KB", name)
            context.record("KB written/insert", (io_end[1] - io[1]) / inserted / 1024, "KB", name)
        operations = inserted
        if classes:
            kind = classes[0].partition(":")[0]
            operations = report.value(kind, "ops")
            context.record_latencies(report, kind, "queries", name)
        context.record("server CPU/operation", cpu / operations * 1e6, "us", name)
        return report


def _first_rate(report):
    """Queries per second in the first FIRST_S seconds, or in the first sample if that is longer."""
    samples = [(float(second), int(ops)) for name, second, ops in (words[:3] for words in report.samples) if name == "window"]
    chosen = [s for s in samples if s[0] <= FIRST_S + 0.5] or samples[:1]
    return sum(ops for _, ops in chosen) / chosen[-1][0]


def _build(context, rows):
    """Step l.x."""
    server = context.server
    wal = server.query("CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
    cpu, seconds = server.cpu_seconds(), 0
    for number, columns in enumerate(INDEXES if context.am != "none" else (), 1):
        seconds += server.timed("CREATE INDEX t_%d ON t USING %s %s" % (number, context.am, columns))
    if seconds:
        context.record("CREATE INDEX, all three", seconds, "s", "l.x")
        context.record("server CPU/operation", (server.cpu_seconds() - cpu) / rows * 1e6, "us", "l.x")
        wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % wal))
        context.record("WAL bytes/insert", wal / rows, "bytes", "l.x")
    server.query("VACUUM ANALYZE t; CHECKPOINT;")


def _work(rows):
    def work(context):
        seconds = context.options.seconds
        queries = ["window:1"] if context.am != "none" else []
        context.create_table("sales", (), with_options="")
        table = _Table(context, context.load("sales", rows, x="l.i0", limit_s=context.options.limit / 2))
        _build(context, table.rows)
        with SizeSamples(context, seconds * 0.5) as sizes:
            sizes.record("l.x")
            report = table.step("l.i1", [], seconds * MOST_SECONDS, rows=table.rows // INSERTED)
            context.sample_rate(report, "copy", "inserts/s, l.i1", BATCH)
            sizes.record("l.i1")
            if queries:
                report = table.step("qr1000", queries, seconds * 22.5, 1000)
                context.sample_rate(report, "window", "queries/s, qr1000")
                context.record("queries/s, first %d s after the load" % FIRST_S, _first_rate(report), "1/s", "qr1000")
                sizes.record("qr1000")
                for rate in RATES[1:]:
                    table.step("qr%d" % rate, queries, seconds * 1.75, rate)
            for rate in RATES:
                table.step("qp%d" % rate, ["point:1"], seconds, rate)
            sizes.record("end")
    return work


def plan(options):
    rows = options.rows * 3 // 10
    return interleave(ID, CASE, options.am, 1,
                      lambda am: load_seconds("none", rows, options.limit / 2, 2.0) + options.seconds * 40, _work(rows),
                      MEMORY_SHARE)
