"""Experiment 2: point lookups and range scans (Gurajada et al., figures 4 and 5)."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds
from . import e1_ingest, reads

ID, NAME = "2", "reads"
TITLE = "Point lookups by clients, range scans by length"
SOURCE = "Gurajada et al., as before: figures 4 and 5."


HERE = {reads.SMALL: "in memory", reads.LARGEST: "beyond memory"}
FRESH_CONDITIONS = """<i>Fresh</i> is the index as COPY left it: nothing merges it while it is read. <i>Settled</i> is
the same index after lsm_compact, or after REINDEX for other methods. VACUUM sets the visibility map before both;
sequential and bitmap scans are off. The small table fits into memory. The largest is what the largest load left, at
the default size some 880 MB without its index. If a load was stopped, its method has fewer rows here; see the tables."""


def _plots(name, topic, metric, xlabel, unit, claim, **more):
    """A plot for the small table and one for the largest: lsm, fresh and settled, relative to a B-tree in the same
state."""
    return [Plot(name + suffix, "lines", "%s, compared with a B-tree, %s" % (topic, HERE[case]), [
                Part(case, "%s, %s" % (metric, state), state, dashed=state == "fresh") for state in reads.STATES],
                 unit, xlabel, claim % HERE[case].capitalize(), relative=True, skip=("none",), **more)
            for suffix, case in (("", reads.SMALL), ("-large", reads.LARGEST))]


RANGE_CLAIM = "%%s, %s takes fresh {a} {as long} as {b}, settled {as long}"
RANGES = {"at": "first", "logx": True, "conditions": "one client, a range from a random key on; less is better"}
SECTIONS = [
    Section("How fast are lookups?", """A prepared statement reads the row of a random key that exists. """ +
            FRESH_CONDITIONS, _plots(
        "e2-lookups", "Lookups", "lookups/s", "clients", "lookups/s",
        "%s, fresh {a} answers {as many} lookups as {b}, settled {as many}",
        conditions="random keys that exist; more is better")),
    Section("How fast are ranges from the index alone?", """The first 10 to 10<sup>7</sup> rows from a random key on,
in the order of the key, by an index-only scan (count and sum of k). """ + FRESH_CONDITIONS, _plots(
        "e2-ranges", "Ranges", "range", "rows of the range", "ms", RANGE_CLAIM % "a range of {x} rows", **RANGES)),
    Section("How fast are ranges that read the rows?", """The first 10 to 10<sup>4</sup> rows from a random key on, in
the order of the key (count of f). Fetching the rows from the table takes most of the time. """ + FRESH_CONDITIONS, _plots(
        "e2-ranges-rows", "Ranges that read the rows", "range with rows", "rows of the range", "ms",
        RANGE_CLAIM % "fetching {x} rows", **RANGES)),
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
