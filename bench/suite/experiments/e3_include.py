"""Experiment 3: Knizhnik's table, a random bigint key with eight bigint columns included."""

from ..figures import Figure, Panel
from ..plan import interleave, load_seconds

ID, NAME = "3", "include"
TITLE = "A wide covering index: random bigint key, eight bigint columns included"
SOURCE = """Konstantin Knizhnik, "LSM tree for Postgres", pgsql-hackers, 4 August 2020
(<a href="https://www.postgresql.org/message-id/20200804151136.3utkewh4ydcngiui%40development">thread</a>)."""
WHAT = """t(k bigint, v1 ... v8 bigint) with an index on (k) INCLUDE (v1, ..., v8), so that the index is as large as
the table; all values are random. Loaded by COPY, 1000 rows to a transaction, by 1 and by 10 clients, each into an
empty cluster. Then, with the index as the load left it, lookups that are answered from the index alone."""
READ = "Rows a second over table size; bars: the average and its spread over the repeats."

CLIENTS = (1, 10)
FIGURES = [Figure("e3-include", "Random bigint key, eight bigint columns included",
                  [Panel("throughput", "over table size, 1 client", ["1 client"], xlabel="rows in the table",
                         ylabel="rows/s"),
                   Panel("throughput", "over table size, 10 clients", ["10 clients"], xlabel="rows in the table",
                         ylabel="rows/s"),
                   Panel("bars", "average, by clients", ["1 client", "10 clients"], "rows/s", ylabel="rows/s"),
                   Panel("bars", "index size", ["1 client", "10 clients"], "index bytes/row", ylabel="bytes a row")])]
COLUMNS = ", ".join("v%d" % i for i in range(1, 9))


def _work(rows, clients):
    def work(context):
        context.create_table("include8", ["(k) INCLUDE (%s)" % COLUMNS])
        loaded = context.load("include8", rows, clients, limit_s=context.options.limit / 2)
        context.keep_fresh()
        context.freeze_heap()
        if context.am != "none":
            report = context.run(["lookup:1"], loaded, kind="include8")
            context.record_latencies(report, "lookup", "covered lookups")
    return work


def plan(options):
    rows = options.rows // 20
    groups = []
    for clients in CLIENTS:
        groups += interleave(ID, "%d client%s" % (clients, "s" if clients > 1 else ""), options.am, options.repeats,
                             lambda am: load_seconds(am, rows, options.limit / 2, 2.0) + options.seconds,
                             _work(rows, clients))
    return groups
