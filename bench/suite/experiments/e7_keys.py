"""Experiment 7, first part: kinds of keys, and several indexes on a table."""

from ..figures import Figure, Panel
from ..plan import interleave, load_seconds

ID, NAME = "7", "keys"
TITLE = "Kinds of keys; several indexes on a table"
SOURCE = "Ours."
WHAT = """Loads by COPY, 1000 rows to a transaction, one client, in memory, each key type in a table of its own, one
after the other in one cluster: bigint ascending; UUID version 4; version 7 (256 a millisecond); text of 12 random
letters, C collation; 1000 distinct int4 values; int4 values with a Zipf distribution (a million values, theta 0.99).
Then t(k1 ... k8 int4), all random, with an index on each of the first 1, 2, 4 and 8 columns. WAL is what the whole
load wrote, the table's included; full_page_writes is on. The peak is the largest size of the index files during the
load, of what is live at its end: of the runs of an lsm index, of the files of others."""
READ = """Averages of whole loads, with the spread over the repeats. What no index does is the cost of the table
itself."""

KEYS, SEVERAL = "kinds of keys", "several indexes"
KINDS = ("int8_seq", "uuid4", "uuid7", "text", "lowcard", "zipf")
INDEXES = (1, 2, 4, 8)

FIGURES = [
    Figure("e7-keys", "Kinds of keys", [
        Panel("bars", "throughput", [KEYS], "rows/s", ylabel="rows/s"),
        Panel("bars", "index size after the load", [KEYS], "index bytes/row", ylabel="bytes a row"),
        Panel("bars", "WAL", [KEYS], "WAL bytes/row", ylabel="bytes a row"),
        Panel("bars", "largest size during the load / live at its end", [KEYS], "peak index size / live")]),
    Figure("e7-several", "Several indexes on a table", [
        Panel("lines", "throughput by number of indexes", [SEVERAL], "rows/s", "indexes", "rows/s"),
        Panel("lines", "WAL by number of indexes", [SEVERAL], "WAL bytes/row", "indexes", "bytes a row")]),
]


def plan(options):
    rows, rows_several = options.rows // 20, options.rows // 40
    kinds = KINDS[1:4:2] + KINDS[5:] if options.quick else KINDS
    counts = INDEXES[1:3] if options.quick else INDEXES

    def keys(context):
        for kind in kinds:
            context.create_table(kind)
            context.load(kind, rows, x=kind)

    def several(context):
        for count in counts:
            context.create_table("wide", ["(k%d)" % i for i in range(1, count + 1)])
            context.load("wide", rows_several, x=count)

    return (interleave(ID, KEYS, options.am, options.repeats,
                       lambda am: len(kinds) * load_seconds(am, rows, options.limit), keys) +
            interleave(ID, SEVERAL, options.am, options.repeats,
                       lambda am: sum(load_seconds(am, rows_several, options.limit, 1.5, n) for n in counts), several))
