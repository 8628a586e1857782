"""Experiment 10: what to try before another index method."""

from collections import namedtuple

from ..figures import Part, Plot, Section
from ..plan import interleave

ID, NAME = "10", "alternatives"
TITLE = "The alternatives: UUIDv7, hash, BRIN, partitions"
SOURCE = "Ours."

CASE = "alternatives"
MEMORY_SHARE = 1 / 6
DAYS = 20
ROW_S = 0.216               # seconds from one row to the next, in the data that the client makes
FIRST = 0.8                 # share of the rows loaded before the measurement
SPAN = 1000
BY_KEY, DATED, BY_TIME = "lookups", "lookups by key and time", "spans of %d rows" % SPAN

Variant = namedtuple("Variant", "name method kind column late queries days", defaults=(False,))
# A variant is measured if its method is among those of the run. late: CREATE INDEX builds the index over the first
# rows.
VARIANTS = (
    Variant("none", "none", "event4", None, False, ()),
    Variant("lsm", "lsm", "event4", "k", False, (BY_KEY,)),
    Variant("btree", "btree", "event4", "k", True, (BY_KEY,)),
    Variant("hash", "btree", "event4", "k", True, (BY_KEY,)),
    Variant("btree, days", "btree", "event4", "k", False, (BY_KEY, DATED), True),
    Variant("btree, UUIDv7", "btree", "event7", "k", False, (BY_KEY,)),
    Variant("brin, time", "btree", "event4", "at", False, (BY_TIME,)),
    Variant("btree, time", "btree", "event4", "at", False, (BY_TIME,)),
    Variant("lsm, time", "lsm", "event4", "at", False, (BY_TIME,)),
)
QUICK = ("none", "lsm", "btree", "btree, days", "brin, time")
LATE_OPTIONS = {"btree": " WITH (fillfactor = 70)"}

SECTIONS = [Section("What to try first: UUIDv7, hash, BRIN, partitions?", """t(k uuid, at timestamptz, f char(10)),
whose rows arrive in time order, and one index. On k, random UUIDs (version 4): lsm, B-tree, hash, and a local B-tree
in each of 20 partitions (a day each, at the default size). On k, UUIDs of version 7, which ascend: B-tree. On the
time: BRIN, B-tree, lsm. The server has a sixth of the memory; at the default size, the B-tree on random UUIDs is about
two and a half times as large as this memory. The first four fifths of the rows are there before the measurement;
CREATE INDEX builds B-trees on random UUIDs (with fillfactor 70, since random inserts leave a B-tree about 70 percent
full) and hash indexes over them, because inserting these rows would take too long. Then COPY, one client, 1000 rows
per transaction, loads the last fifth with the index in place; a load that takes too long is stopped. Then VACUUM
ANALYZE, and queries by one client: rows by their key, rows by their key and time, 1000 consecutive rows by time, as
far as the index supports the query.""", [
    Plot("e10-load", "bars", "Rows loaded per second into a table with one index, beyond memory", [Part(CASE, "rows/s")],
         "rows/s", claim="Beyond memory, {a} loads {as many} random UUIDs as {b}",
         conditions="the last fifth of a load, with one index: on random UUIDs, unless the label says otherwise"),
    Plot("e10-size", "bars", "Size of the index", [Part(CASE, "index bytes/row")], "bytes a row", skip=("none",),
         claim="On random UUIDs, the {a} index is {as large} as {b}", conditions="index files at the end of the load"),
    Plot("e10-lookups", "bars", "Lookups by key per second, beyond memory", [Part(CASE, BY_KEY + "/s")], "lookups/s",
         claim="Beyond memory, {a} answers {as many} lookups as {b}",
         conditions="one client, random keys that exist, the table larger than memory")])]


def _make_table(context, variant, rows):
    server = context.server
    server.query("DROP TABLE IF EXISTS t; CREATE TABLE t (k uuid, at timestamptz, f char(10))%s;" % (
        " PARTITION BY RANGE (at)" if variant.days else ""))
    if variant.days:
        server.query("SELECT format('CREATE TABLE day_%s PARTITION OF t FOR VALUES FROM (%L) TO (%L);', d, f + d * day, f + "
                     "(d + 1) * day) FROM (SELECT timestamptz '2026-01-01' AS f, {} * interval '1 second' AS day) s, "
                     "generate_series(0, {}) d\n\\gexec".format(rows * ROW_S / DAYS, DAYS - 1))


def _make_index(context, variant):
    if variant.column:
        method = variant.name.partition(",")[0]
        context.server.query("CREATE INDEX t_1 ON t USING %s (%s)%s;" % (
            method, variant.column, LATE_OPTIONS.get(method, "") if variant.late else ""))


def _work(variant, rows):
    def work(context):
        server, options = context.server, context.options
        first = int(rows * FIRST)
        _make_table(context, variant, rows)
        if not variant.late:
            _make_index(context, variant)
        common = {"k": variant.kind, "s": context.seed}
        context.client.call("load", dict(common, r=first), server.conninfo(), "t")
        if variant.late:
            _make_index(context, variant)
        loaded = first + context.load(variant.kind, rows - first, limit_s=options.seconds * 7.5, first_row=first)
        paths = context.index_paths()
        if paths:
            context.record("index bytes/row", server.relation_bytes(paths) / loaded, "bytes")
        server.query("VACUUM ANALYZE t; CHECKPOINT;")
        for label in variant.queries:
            kind = {BY_KEY: "lookup", DATED: "dated", BY_TIME: "span"}[label]
            report = context.run([kind + ":1"], loaded, kind=variant.kind, l=SPAN)
            context.record_latencies(report, kind, label)
    return work


def plan(options):
    rows = options.rows * 2 // 5
    groups = []
    for variant in VARIANTS:
        if variant.method in options.am and not (options.quick and variant.name not in QUICK):
            groups += interleave(ID, CASE, [variant.name], 1, lambda am: rows / 300e3 + 3 * options.seconds,
                                 _work(variant, rows), MEMORY_SHARE)
    return groups
