"""Experiment 11: upserts, updates and retention, beyond memory."""

from ..context import SizeSamples
from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds
from .e9_insert_benchmark import INDEXES

ID, NAME = "11", "updates"
TITLE = "Upserts, updates of three indexes, and retention"
SOURCE = "Ours."

UPSERTS, UPDATES = "upserts", "updates and retention"
UPSERTS_SHARE, UPDATES_SHARE = 1 / 6, 0.25
BATCH = 50
ROUNDS = 3
POINTS = 20

SECTIONS = [
    Section("How fast are upserts beyond memory?", """INSERT ... ON CONFLICT DO UPDATE of 50 random UUIDs, half of
which are there, into a unique index, by one client in a server with a sixth of the memory. CREATE INDEX builds the
index over a filled table, a B-tree with fillfactor 70. Autovacuum has its defaults. At the default size, the B-tree
is two and a half times as large as the memory.""", [
        Plot("e11-upserts", "series", "Upserts per second into a unique index", [Part(UPSERTS, "rows/s")], "rows/s",
             "seconds", "Beyond memory, {a} takes {as many} upserts as {b}", figure=("upserts/s", ""),
             conditions="random UUIDs, half of which exist at first, 50 to a transaction; more is better")]),
    Section("How fast are updates and retention beyond memory?", """The table and the indexes of the Insert Benchmark
and a quarter of the memory; CREATE INDEX builds the indexes over a filled table. One client gives 50 random rows to a
transaction another price, a column of all three indexes, so each update is a new entry in each. Retention, on the
same table: three times DELETE of the oldest tenth, VACUUM, and a load of as many new rows. At the default size, the
B-trees are three times as large as the memory.""", [
        Plot("e11-updates", "series", "Updates per second with three indexes", [Part(UPDATES, "rows/s")], "rows/s",
             "seconds",
             "With three indexes beyond memory, {a} takes {as many} updates as {b}", figure=("updates/s", ""),
             conditions="random rows, each update is a new entry in each index; more is better"),
        Plot("e11-size", "series", "Size of three indexes under updates, DELETE and VACUUM", [
            Part(UPDATES, "index MB")], "MB", "seconds",
             "After updates and retention, three {a} indexes are {as large} as B-trees", figure=("index size", "VACUUM 3"),
             skip=("none",), conditions="index files: updates, then three rounds of DELETE, VACUUM, new rows"),
        Plot("e11-retention", "lines", "Time of VACUUM after a tenth was deleted", [Part(UPDATES, "VACUUM")],
             "seconds", "round",
             "VACUUM after DELETE of a tenth takes {a} {as long} as {b}",
             conditions="three indexes beyond memory; less is better")]),
]


def _build(context, definitions, unique=""):
    if context.am == "none":
        return
    options = " WITH (fillfactor = 70)" if context.am == "btree" and unique else ""
    for number, columns in enumerate(definitions, 1):
        context.server.query("CREATE %s INDEX t_%d ON t USING %s %s%s;" % (unique, number, context.am, columns, options))


def _fill(context, kind, rows):
    context.client.call("load", {"k": kind, "r": rows, "s": context.seed}, context.server.conninfo(), "t")


def _measure(context, kind, op, rows, label, seconds):
    """Runs transactions of class op, and records rate, longest one, CPU and WAL by row, and the size of the indexes."""
    server = context.server
    cpu, wal = server.cpu_seconds(), server.query("SELECT pg_current_wal_insert_lsn();")
    report = context.run([op + ":1"], rows, kind=kind, seconds=seconds, warmup=0, b=BATCH, i=seconds / POINTS)
    wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % wal))
    cpu = server.cpu_seconds() - cpu
    changed = report.value(op, "ops") * BATCH
    context.record("%s/s" % label, changed / report.value("client", "wall_s"), "rows/s")
    context.record("longest transaction of %s" % label, report.value(op, "max_us") / 1000, "ms")
    context.record("server CPU/row of %s" % label, cpu / changed * 1e6, "us")
    context.record("WAL bytes/row of %s" % label, wal / changed, "bytes")
    context.sample_rate(report, op, "rows/s", BATCH)


def _upserts(rows):
    def work(context):
        context.create_table("uuid4", (), with_options="")
        _fill(context, "uuid4", rows)
        _build(context, ("(k)",), "UNIQUE")
        context.server.query("VACUUM ANALYZE t; CHECKPOINT;")
        with SizeSamples(context, context.options.seconds / 2) as sizes:
            sizes.record("before")
            _measure(context, "uuid4", "upsert", rows, "upserts", context.options.seconds * 7.5)
            sizes.record("after")
    return work


def _updates(rows):
    def work(context):
        server = context.server
        context.create_table("sales", (), with_options="")
        _fill(context, "sales", rows)
        _build(context, INDEXES)
        server.query("VACUUM ANALYZE t; CHECKPOINT;")
        with SizeSamples(context, context.options.seconds / 2) as sizes:
            sizes.record("before")
            _measure(context, "sales", "reprice", rows, "updates", context.options.seconds * 5)
            sizes.record("updates")
            _retention(context, rows, sizes)
    return work


def _retention(context, rows, sizes):
    server, tenth = context.server, rows // 10
    for number in range(1, ROUNDS + 1):
        context.record("DELETE of a tenth", server.timed("DELETE FROM t WHERE id <= %d" % (tenth * number)), "s", number)
        context.record("VACUUM", server.timed("VACUUM t"), "s", number)
        sizes.record("VACUUM %d" % number)
        report = context.client.call("load", {"k": "sales", "r": tenth, "f": rows + tenth * (number - 1), "s": context.seed,
                                              "t": context.options.seconds * 5}, server.conninfo(), "t")
        context.record("new rows/s", report.value("load", "rows") / report.value("load", "seconds"), "rows/s", number)


def plan(options):
    upserts, updates = options.rows * 2 // 5, options.rows * 3 // 10
    with_index = [am for am in options.am if am != "none"]
    return (interleave(ID, UPSERTS, with_index, 1,
                       lambda am: load_seconds("none", upserts, options.limit) + options.seconds * 10, _upserts(upserts),
                       UPSERTS_SHARE) +
            interleave(ID, UPDATES, options.am, 1,
                       lambda am: load_seconds("none", updates, options.limit, 2.0) + options.seconds * 20, _updates(updates),
                       UPDATES_SHARE))
