"""Experiment 7, second part: single-row transactions, and ingest beside lookups."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "7", "sessions"
TITLE = "Single-row transactions; ingest beside lookups"
SOURCE = "Ours."

SINGLE, MIX = "single rows", "ingest and lookups"

SECTIONS = [
    Section("How fast are transactions of one row?", """Prepared INSERTs of random int4 keys into a table that has
rows already, a transaction each (synchronous_commit as the settings say), by number of clients.""", [
        Plot("e7-single", "lines", "Transactions of one row per second, by number of clients", [Part(SINGLE, "inserts/s")],
             "transactions/s", "clients", "With {x} clients, {a} commits {as many} single rows as {b}",
             conditions="INSERT of a random int4 key, one row to a transaction; more is better"),
        Plot("e7-single-p99", "lines", "99th percentile of transactions of one row", [Part(SINGLE, "inserts p99")],
             "ms", "clients", "With {x} clients, the 99th percentile of single rows is {as long} with {a} as with {b}",
             conditions="99 of 100 transactions of one row take no longer; less is better")]),
    Section("How fast are lookups beside a load?", """One client loads by COPY, 1000 rows to a transaction, as fast as
it can, while others look up keys that were there before. The table without an index does not take part: each lookup
would scan it. Stalls are peaks of the longest operation in each of 24 intervals.""", [
        Plot("e7-mix-load", "bars", "Transactions of a load beside lookups", [Part(MIX, "copies/s")],
             "transactions of 1000 rows/s", claim="Beside lookups, {a} loads {as many} rows as {b}", skip=("none",),
             conditions="one client loads at full speed, others look up keys"),
        Plot("e7-mix-lookups", "bars", "Lookups beside a load", [Part(MIX, "lookups/s")], "lookups/s",
             claim="Beside its own load, {a} answers {as many} lookups as {b}", skip=("none",),
             conditions="each index takes rows as fast as it can; the loads differ, see the plot before"),
        Plot("e7-mix-load-stalls", "series", "Longest transaction of a load beside lookups", [
            Part(MIX, "copy longest")], "ms", "seconds",
             "Beside lookups, the longest transaction of a load takes {a} {as long} as {b}", figure=("copies max", ""),
             conditions="the longest transaction of 1000 rows in each interval; less is better", logy=True,
             skip=("none",)),
        Plot("e7-mix-lookup-stalls", "series", "Longest lookup beside a load", [Part(MIX, "lookup longest")], "ms",
             "seconds", "Beside a load, the longest lookup takes {a} {as long} as {b}", figure=("lookups max", ""),
             conditions="the longest lookup in each interval; less is better", logy=True, skip=("none",))]),
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
