"""Bars on key types, beyond memory: the rate at which random keys go into a large unique index.

CREATE INDEX makes the index of either method over rows with random keys. It makes the B-tree as full as random inserts
would leave it. The B-tree is three times as large as memory, if --rows allows that. Then one session adds rows with
other random keys, in transactions of --batch rows. The time for making the keys counts for both methods.
"""

from .bench import INDEX, LATE_FILLFACTOR, MB, say
from .types import TYPES
from .verdicts import at_least, median_or_none, number, of_repeats

SHARE = 0.3                 # of --rows, at most
OF_MEMORY = 3.0             # the B-tree's size
ADDED = 0.25                # of the rows that are there, at most
LIMIT_S = 30                # for adding them
BAR = 10.0
# Approximate bytes per entry of a B-tree, at LATE_FILLFACTOR.
ENTRY_BYTES = {"int4": 29, "uuid": 46, "numeric": 46, "inet": 46}
TEXT_BYTES = 80

FILL = "INSERT INTO t SELECT {keys}, 'x' FROM generate_series(1, {rows}::int8) g;"
ADD = """
DO $$ DECLARE began timestamptz := clock_timestamp(); BEGIN
    FOR i IN 0..{pieces} - 1 LOOP
        INSERT INTO t SELECT {keys}, 'x' FROM generate_series({rows} + i * {batch} + 1, {rows} + (i + 1) * {batch}::int8) g;
        INSERT INTO progress VALUES ({batch});
        COMMIT;
        EXIT WHEN clock_timestamp() > began + interval '{limit} s';
    END LOOP;
END $$"""


class LargeKeyTypeBars:
    """One type: each turn is one method, in a cluster of its own."""

    methods = ("lsm", "btree")

    def __init__(self, key):
        self.key = key
        self.name, self.title = "large-" + key.name, "keys of %s, beyond memory" % key.columns
        self.rates, self.btree_bytes, self.missing, self.doubt = {}, 0, "", ""

    def measure(self, bench):
        for _, repeat in bench.turns(self):
            if not self.missing:
                with bench.server:
                    bench.begin_fresh()
                    self._measure_method(bench, repeat)

    def _measure_method(self, bench, repeat):
        self.missing = self.key.why_missing(bench.server)
        if self.missing:
            say("  left out: %s" % self.missing)
            return
        options, names = bench.options, ", ".join(self.key.names)
        rows = bench.rows(SHARE)
        if options.memory:
            rows = min(rows, int(OF_MEMORY * options.memory * MB / ENTRY_BYTES.get(self.key.name, TEXT_BYTES)))
        values = {"keys": self.key.keys, "rows": rows, "batch": options.batch, "limit": LIMIT_S,
                  "pieces": max(int(rows * ADDED) // options.batch, 1)}
        bench.server.query(self.key.before)
        bench.create_table(columns=self.key.columns + ", f char(10)", index=None)
        bench.server.query("CREATE TABLE progress (added int8);" + FILL.format(**values))
        bench.create_index("(%s)%s" % (names, " WITH (fillfactor = %d)" % LATE_FILLFACTOR
                                       if bench.method == "btree" else ""), unique=True)
        bench.freeze_heap()
        if bench.method == "btree":
            self.btree_bytes = bench.index_bytes()
        seconds = bench.server.timed(ADD.format(**values))
        rate = int(bench.server.query("SELECT sum(added) FROM progress;")) / seconds
        bench.figure("rows/s", rate, "rows/s")
        self.rates.setdefault(bench.method, {})[repeat] = rate
        say("  %-6s %10s rows/s into an index of %s MB" % (
            bench.method, number(rate), number(int(bench.server.query("SELECT pg_relation_size('%s');" % INDEX)) / MB)))
        self.doubt = bench.doubt_beyond_memory(self.btree_bytes)

    def verdicts(self):
        if self.missing:
            return
        pairs = list(of_repeats(self.rates, "lsm", "btree"))
        parts = "lsm %s, btree %s rows/s" % tuple(
            number(median_or_none(pair[i] for pair in pairs)) for i in (0, 1)) if pairs else ""
        yield at_least(self.name, "rows/s, unique, of btree", [a / b for a, b in pairs], BAR, parts, self.doubt)


EXPERIMENTS = [LargeKeyTypeBars(key) for key in TYPES]
