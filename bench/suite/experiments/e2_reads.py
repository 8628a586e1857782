"""Experiment 2: point lookups and range scans (Gurajada et al., figures 4 and 5)."""

from ..figures import Figure, Panel
from ..plan import interleave, load_seconds
from . import e1_ingest, reads

ID, NAME = "2", "reads"
TITLE = "Point lookups by clients, range scans by length"
SOURCE = "Gurajada et al., as before: figures 4 and 5."
WHAT = """Lookups of keys that exist, uniformly chosen, by a prepared statement that reads the row. Range scans from a
random key on: the first 10 to 10<sup>7</sup> rows in the order of the key, as far as the table has so many;
index-only (count and sum of k), and with the rows (count of f) up to 10<sup>4</sup>. "Fresh" is the index as a load
by COPY left it: nothing merges it while it is read, not even what was due or what its readers have paid for, since that
may be done within a second; the tables have the runs before and afterwards. "Settled" is the same after lsm_compact, where the server
has it, or else REINDEX, for every system. Before both the visibility map is set by VACUUM with INDEX_CLEANUP OFF. Sequential and bitmap scans are switched off
for all. The small table fits into memory. The largest is what the largest load of experiment 1 left, at the default
size some 880 MB without its index, so that it does not fit into the control group's 768 MB; a system that was stopped
there has fewer rows here, see the table. Warm-up before each measurement as set; it is a tenth of that for ranges. A
table without an index has no settled state and scans the whole table for each query; it has no warm-up."""
READ = """Lookups: higher is better. Ranges: milliseconds a scan on logarithmic axes, lower is better; where a line
bends up is where the length begins to matter more than the search for the first key."""


def _panels(metric, **axes):
    """Returns a panel for each size and state."""
    return [Panel("lines", "%s, %s" % (case, state), [case], "%s, %s" % (metric, state), **axes)
            for case in (reads.SMALL, reads.LARGEST) for state in reads.STATES]


RANGE_AXES = {"xlabel": "rows of the range", "ylabel": "ms", "logx": True, "logy": True}


FIGURES = [
    Figure("e2-lookups", "Point lookups by number of clients (no index: see the table)",
           _panels("lookups/s", xlabel="clients", ylabel="lookups/s", skip=("none",))),
    Figure("e2-ranges", "Index-only range scans by length", _panels("range", **RANGE_AXES)),
    Figure("e2-ranges-rows", "Range scans that read the rows, by length", _panels("range with rows", **RANGE_AXES)),
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
