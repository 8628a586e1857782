"""Experiment 7, second part: single-row transactions, and ingest beside lookups."""

from ..figures import Figure, Panel
from ..plan import interleave, load_seconds

ID, NAME = "7", "sessions"
TITLE = "Single-row transactions; ingest beside lookups"
SOURCE = "Ours."
WHAT = """Single rows: prepared INSERTs of random int4 keys into a table that has rows already, a transaction each
(synchronous_commit as the settings say), by number of clients. Mixture: one client loads by COPY, 1000 rows to a
transaction, as fast as it can, while the others look up keys that were there before; latencies of both, also in each
of 24 intervals. The table without an index does not take part in the mixture: each lookup would scan it. Warm-up
before each as set."""
READ = """Percentiles: half, 95% and 99% of operations take no longer. The lower diagrams show stalls, as peaks of the
longest operation within an interval."""

SINGLE, MIX = "single rows", "ingest and lookups"

FIGURES = [
    Figure("e7-single", "Single-row transactions", [
        Panel("lines", "throughput by number of clients", [SINGLE], "inserts/s", "clients", "transactions/s"),
        Panel("lines", "99th percentile", [SINGLE], "inserts p99", "clients", "ms")]),
    Figure("e7-mix", "Ingest beside lookups", [
        Panel("bars", "ingest, transactions of 1000 rows", [MIX], "copies/s", ylabel="transactions/s", skip=("none",)),
        Panel("bars", "lookups", [MIX], "lookups/s", ylabel="lookups/s", skip=("none",)),
        Panel("bars", "99th percentile of lookups", [MIX], "lookups p99", ylabel="ms", skip=("none",)),
        Panel("bars", "99th percentile of ingest", [MIX], "copies p99", ylabel="ms", skip=("none",)),
        Panel("series", "longest ingest transaction in each interval", [MIX], "copy longest", "seconds", "ms", logy=True,
              skip=("none",)),
        Panel("series", "longest lookup in each interval", [MIX], "lookup longest", "seconds", "ms", logy=True,
              skip=("none",))]),
]


def plan(options):
    rows = options.rows // 20
    seconds = options.seconds * 3
    readers = max(max(options.clients) // 2, 1)

    def single(context):
        context.create_table("int4_random")
        loaded = context.load("int4_random", rows)
        for clients in options.clients:
            # Each measurement continues with keys that do not exist yet.
            report = context.run(["insert:%d" % clients], loaded)
            context.record_latencies(report, "insert", "inserts", clients)
            loaded = int(context.server.query("SELECT count(*) FROM t;"))

    def mix(context):
        context.create_table("int4_random")
        loaded = context.load("int4_random", rows)
        context.freeze_heap()
        report = context.run(["lookup:%d" % readers, "copy:1"], loaded, seconds=seconds, i=seconds / 24)
        context.record_latencies(report, "lookup", "lookups")
        context.record_latencies(report, "copy", "copies")
        for name, second, ops, _, p99_us, max_us in report.samples:
            context.sample(name + " longest", second, float(max_us) / 1000, "%s ops, p99 %s us" % (ops, p99_us))

    with_index = [am for am in options.am if am != "none"]
    groups = interleave(ID, SINGLE, options.am, options.repeats,
                        lambda am: load_seconds(am, rows, options.limit)
                        + len(options.clients) * (options.seconds + options.warmup + 0.5), single)
    if with_index:
        groups += interleave(ID, MIX, with_index, options.repeats,
                             lambda am: load_seconds(am, rows, options.limit) + seconds + 2, mix)
    return groups
