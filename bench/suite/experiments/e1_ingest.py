"""Experiment 1: ingest of sequential and random int4 keys (Gurajada et al., figures 2a to 2d, and 3)."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds
from . import reads

ID, NAME = "1", "ingest"
TITLE = "Ingest over table size, sequential and random keys"
SOURCE = "Gurajada et al., an LSM-like index (SplinterDB) within PostgreSQL: figures 2a to 2d, and figure 3."

RANDOM, SEQUENTIAL = "random keys, 1 client", "sequential keys, 1 client"
RANDOM_MANY, SEQUENTIAL_MANY = "random keys, many clients", "sequential keys, many clients"
BY_CLIENTS = "random keys, by clients"
TURNS = 3                   # of these loads, the most important ones
ONE_CORE = "load generator on one core"

GROWTH_CONDITIONS = """COPY fills t(k int4, f char(10)) with an index on k, 1000 rows to a transaction, %s. Each load
begins with an empty cluster and a checkpoint, and has no warm-up. A load that exceeds the limit is stopped, and its
line ends there. The dotted line marks where an index is larger than the cache: than shared_buffers, or the rest of
the server's memory if that is larger, since both keep the same blocks."""


def _growth(name, case, keys, clients):
    return Plot(name, "growth", "Rows loaded per second while a table grows", [Part(case)], "rows/s",
                "rows in the table", conditions="%s int4 keys, COPY of 1000 rows, %s" % (keys, clients))


SECTIONS = [
    Section("How fast is a load of random keys, by one client?", GROWTH_CONDITIONS % "by one client", [
        _growth("e1-table-size", RANDOM, "random", "one client")]),
    Section("How fast is a load of random keys, by many clients?",
            GROWTH_CONDITIONS % "by the largest number of clients", [
        _growth("e1-random-many", RANDOM_MANY, "random", "many clients")]),
    Section("How fast is a load of ascending keys?", GROWTH_CONDITIONS % "by one client, and by many", [
        _growth("e1-sequential", SEQUENTIAL, "ascending", "one client"),
        _growth("e1-sequential-many", SEQUENTIAL_MANY, "ascending", "many clients")]),
    Section("Do more clients load more rows?", """The average rates of the loads above, and of those by other numbers
of clients. The load generator alone on one core: loads without an index by a client that may use only one core, as
text and in binary format.""", [
        Plot("e1-clients", "lines", "Rows loaded per second by number of clients", [Part(BY_CLIENTS, "rows/s")],
             "rows/s", "clients", "With {x} clients, {a} loads {as many} rows a second as {b}",
             conditions="random int4 keys, average of the load; one that takes too long is stopped")]),
]


def _loader(kind, rows, clients, share=1.0):
    def work(context):
        context.create_table(kind)
        context.load(kind, rows, clients, limit_s=context.options.limit * share)
    return work


def _one_core(rows):
    """The client's speed when no index slows the server down."""
    def work(context):
        for x, clients, binary in (("1 client, text", 1, False), ("1 client, binary", 1, True),
                                   ("4 clients, binary", 4, True)):
            context.create_table("int4_random")
            context.load("int4_random", rows, clients, x=x, binary=binary, one_core=True)
    return work


def _random_case(clients, many):
    if clients == 1:
        return RANDOM
    return RANDOM_MANY if clients == many else "random keys, %d clients" % clients


def largest(options):
    """The loads of random keys, beyond memory. Experiment 2 reads the first table of one client."""
    many = max(options.clients)
    measures_reads = any(m.ID == "2" for m in options.modules) and not options.quick
    groups = []
    for clients in [1] + ([c for c in options.clients if c > 1] if not options.quick else []):
        def work(context, clients=clients):
            context.create_table("int4_random")
            loaded = context.load("int4_random", options.rows, clients)
            average = context.last("rows/s")
            context.record("rows/s", average.value, average.unit, clients, average.note, BY_CLIENTS)
            if measures_reads and clients == 1 and context.group.repeat == 1:
                context.experiment, context.case = "2", reads.LARGEST
                reads.measure(context, loaded)

        def estimate(am, clients=clients):
            with_reads = reads.seconds(options, am, options.rows) / TURNS if measures_reads and clients == 1 else 0
            return load_seconds(am, options.rows, options.limit) + with_reads
        groups += interleave(ID, _random_case(clients, many), options.am, 1 if options.quick else TURNS, estimate, work)
    return groups


def plan(options):
    many = max(options.clients)
    groups = largest(options)
    for case, clients in ((SEQUENTIAL, 1), (SEQUENTIAL_MANY, many)):
        if options.quick and clients > 1:
            continue
        groups += interleave(ID, case, options.am, 1,
                             lambda am: load_seconds(am, options.rows // 8, options.limit / 2),
                             _loader("int4_seq", options.rows // 8, clients, 0.5))
    if "none" in options.am and not options.quick:
        rows = options.rows // 10
        groups += interleave(ID, ONE_CORE, ["none"], options.repeats,
                             lambda am: 3 * load_seconds(am, rows, options.limit), _one_core(rows))
    return groups
