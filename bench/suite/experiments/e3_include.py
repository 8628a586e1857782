"""Experiment 3: Knizhnik's table, a random bigint key with eight bigint columns included."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "3", "include"
TITLE = "A wide covering index: random bigint key, eight bigint columns included"
SOURCE = """Konstantin Knizhnik, "LSM tree for Postgres", pgsql-hackers, 4 August 2020
(<a href="https://www.postgresql.org/message-id/20200804151136.3utkewh4ydcngiui%40development">thread</a>)."""

CLIENTS = (1, 10)
SECTIONS = [Section("What does a wide covering index cost?", """t(k bigint, v1 ... v8 bigint) with an index on (k)
INCLUDE (v1, ..., v8), so that the index is as large as the table; all values are random. COPY, 1000 rows per
transaction, by 1 and by 10 clients; each load begins in an empty cluster. Then, with the index as the load left it,
lookups that the index alone answers.""", [
    Plot("e3-include", "growth", "Rows loaded per second into a wide covering index, one client", [Part("1 client")],
         "rows/s", "rows in the table", conditions="random bigint key, eight bigint columns included, one client"),
    Plot("e3-include-clients", "growth", "Rows loaded per second into a wide covering index, ten clients",
         [Part("10 clients")],
         "rows/s", "rows in the table", conditions="random bigint key, eight bigint columns included, ten clients"),
    Plot("e3-include-size", "bars", "Size of a wide covering index", [
        Part("1 client", "index bytes/row", "1 client"), Part("10 clients", "index bytes/row", "10 clients")],
        "bytes a row", claim="The wide covering {a} index is {as large} as {b}",
        conditions="random bigint key, eight bigint columns included, after the load")])]
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
    for clients in CLIENTS[:1] if options.quick else CLIENTS:
        groups += interleave(ID, "%d client%s" % (clients, "s" if clients > 1 else ""), options.am, options.repeats,
                             lambda am: load_seconds(am, rows, options.limit / 2, 2.0) + options.seconds,
                             _work(rows, clients))
    return groups
