"""Experiment 7, first part: kinds of keys, and several indexes on a table."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "7", "keys"
TITLE = "Kinds of keys; several indexes on a table"
SOURCE = "Ours."

KEYS, SEVERAL = "kinds of keys", "several indexes"
KINDS = ("int8_seq", "uuid4", "uuid7", "text", "lowcard", "zipf")
INDEXES = (1, 2, 4, 8)

NAMES = {"int8_seq": "bigint, ascending", "uuid4": "UUID, random", "uuid7": "UUID version 7", "text": "text, random",
         "lowcard": "int4, 1000 values", "zipf": "int4, Zipf"}
SECTIONS = [
    Section("Which kinds of keys benefit?", """COPY, 1000 rows per transaction, one client, in memory. Each kind of key
has a table of its own, and one cluster loads these tables one after the other: ascending bigint; UUID version 4; UUID
version 7 (256 per millisecond); text of 12 random letters, C collation; 1000 distinct int4 values; int4 values with a
Zipf distribution (a million values, theta 0.99). The WAL includes that of the table; full_page_writes is on. "Peak
index size / live" is the largest size of the index files during the load, divided by the size of what is live at its
end: the runs of an lsm index, or the whole files of other indexes.""", [
        Plot("e7-keys", "bars", "Rows loaded per second, by kind of key", [Part(KEYS, "rows/s")], "rows/s",
             claim="In memory, {a} loads {as many} rows with random UUIDs as {b}", at="uuid4", names=NAMES,
             conditions="COPY of 1000 rows, one client, in memory"),
        Plot("e7-keys-size", "bars", "Size of the index after the load, by kind of key", [
            Part(KEYS, "index bytes/row")], "bytes a row",
             claim="With random UUIDs, the {a} index is {as large} as {b}", at="uuid4", names=NAMES,
             conditions="index files at the end of the load, in memory"),
        Plot("e7-keys-wal", "bars", "WAL of a load, by kind of key", [Part(KEYS, "WAL bytes/row")], "bytes a row",
             claim="With random UUIDs, {a} writes {as much} WAL as {b}", at="uuid4", names=NAMES,
             conditions="WAL of the whole load, the table's included, in memory")]),
    Section("What does each further index cost?", """t(k1 ... k8 int4), all random, with an index on each of the first
1, 2, 4 or 8 columns; COPY, 1000 rows per transaction, one client, in memory.""", [
        Plot("e7-several", "lines", "Rows loaded per second, by number of indexes", [Part(SEVERAL, "rows/s")],
             "rows/s", "indexes",
             "With {x} indexes, {a} loads {as many} rows per second as {b}",
             conditions="random int4 columns, one client, in memory"),
        Plot("e7-several-wal", "lines", "WAL of a load, by number of indexes", [Part(SEVERAL, "WAL bytes/row")],
             "bytes a row", "indexes",
             "With {x} indexes, {a} writes {as much} WAL as {b}",
             conditions="random int4 columns, one client, in memory")]),
]


def plan(options):
    rows, rows_several = options.rows // 20, options.rows // 40
    kinds = KINDS[1:2] if options.quick else KINDS

    def keys(context):
        for kind in kinds:
            context.create_table(kind)
            context.load(kind, rows, x=kind)

    def several(context):
        for count in INDEXES:
            context.create_table("wide", ["(k%d)" % i for i in range(1, count + 1)])
            context.load("wide", rows_several, x=count)

    groups = interleave(ID, KEYS, options.am, options.repeats,
                        lambda am: len(kinds) * load_seconds(am, rows, options.limit), keys)
    if not options.quick:
        groups += interleave(ID, SEVERAL, options.am, options.repeats,
                             lambda am: sum(load_seconds(am, rows_several, options.limit, 1.5, n) for n in INDEXES),
                             several)
    return groups
