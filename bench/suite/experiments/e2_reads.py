"""Experiment 2: point lookups and range scans (Gurajada et al., figures 4 and 5)."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds
from . import e1_ingest, reads

ID, NAME = "2", "reads"
TITLE = "Point lookups by clients, range scans by length"
SOURCE = "Gurajada et al., as before: figures 4 and 5."


HERE = {reads.SMALL: "in memory", reads.LARGEST: "larger than memory"}
FRESH_CONDITIONS = """<i>Fresh</i> is the index as COPY left it: nothing merges it while it is read. <i>Settled</i> is the same
index after lsm_compact, or after REINDEX for other methods. VACUUM sets the visibility map before both; sequential and bitmap
scans are off. The small table fits into memory. The largest is what the largest load left, at the default size some 880 MB
without its index. If a load was stopped, its method has fewer rows here; see the tables."""


def _plots(name, metric, xlabel, unit, claim, **more):
    """A plot for the small table and one for the largest: lsm, fresh and settled, relative to a B-tree in the same state."""
    return [Plot(name + suffix, "lines", "%s, of those of a B-tree, %s" % (metric.capitalize(), HERE[case]),
                 [Part(case, "%s, %s" % (metric, state), state) for state in reads.STATES], unit, xlabel,
                 claim % HERE[case], relative=True, skip=("none",), **more)
            for suffix, case in (("", reads.SMALL), ("-large", reads.LARGEST))]


RANGE_CLAIM = "%%s, %s of {x} rows takes a fresh {a} index {as long} as {b}, a settled one {as long}"
RANGES = {"at": "first", "logx": True, "conditions": "one client, a range from a random key on; less is better"}
SECTIONS = [
    Section("How fast are lookups?", """A prepared statement reads the row of a random key that exists. """ + FRESH_CONDITIONS, _plots(
        "e2-lookups", "lookups/s", "clients", "lookups/s, B-tree = 1",
        "%s, a fresh {a} index answers {as many} lookups as {b}, a settled one {as many}",
        conditions="random keys that exist; more is better")),
    Section("How fast are ranges from the index alone?", """The first 10 to 10<sup>7</sup> rows from a random key on, in the
order of the key, by an index-only scan (count and sum of k). """ + FRESH_CONDITIONS, _plots(
        "e2-ranges", "range", "rows of the range", "time, B-tree = 1", RANGE_CLAIM % "a range", **RANGES)),
    Section("How fast are ranges that read the rows?", """The first 10 to 10<sup>4</sup> rows from a random key on, in the order
of the key (count of f). Fetching the rows from the table takes most of the time. """ + FRESH_CONDITIONS, _plots(
        "e2-ranges-rows", "range with rows", "rows of the range", "time, B-tree = 1", RANGE_CLAIM % "a fetch", **RANGES)),
]


def _in_memory(rows):
    def work(context):
        context.create_table("int4_random")
        loaded = context.load("int4_random", rows)
        reads.measure(context, loaded)
    return work


def plan(options):
    rows = min(options.rows // 10, 2_000_000)
    groups = interleave(ID, reads.SMALL, options.am, options.repeats,
                        lambda am: load_seconds(am, rows, options.limit) + reads.seconds(options, am, rows),
                        _in_memory(rows))
    if not any(m.ID == "1" for m in options.modules):
        groups = e1_ingest.largest(options) + groups
    return groups
