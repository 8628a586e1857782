"""Bars on key types: the cost in memory of a unique index on each type, and of lookups in it.

For each type a table of random keys is made once per cluster. Each step loads a table of its own from it, in
transactions of --batch rows, and counts the CPU time of the whole server until the last commit.
"""

from dataclasses import dataclass

from .bench import INDEX, say
from .verdicts import at_least, at_most, median_or_none, number, of_repeats

ROWS = 200_000              # at most: the index stays in memory
SHARE = 0.1                 # of --rows
EXISTING = 0.1              # of the rows of a statement with ON CONFLICT
TICK_S = 0.01               # resolution of CPU times
HEX = "md5(g::text)"

# Bars: CPU time relative to btree; rows a second relative to no index; lookups a second relative to btree.
COPY, INSERT, RATE = {True: 1.0, False: 1.2}, {True: 1.0, False: 1.3}, {True: 0.85, False: 0.75}
SETTLED, FRESH = 1.0, 0.9
# Segments that a lookup searches: filters rule out all but one, with few errors.
SEARCHED = 1.2


@dataclass(frozen=True)
class KeyType:
    name: str
    columns: str                # of the table, without f
    keys: str                   # their values, from g
    is_bytes: bool              # compares as bytes
    before: str = ""            # setup that the type needs; if it fails, the type is left out

    @property
    def names(self):
        return [column.split()[0] for column in self.columns.split(", ")]

    def why_missing(self, server):
        """Why the type cannot be measured on this server; "" if it can."""
        collation = self.columns.partition('COLLATE "')[2].rstrip('"')
        if collation and server.query("SELECT count(*) FROM pg_collation WHERE collname = '%s';" % collation) == "0":
            return "there is no collation \"%s\"" % collation
        return ""


def collated(name, collation, is_bytes, before=""):
    return KeyType(name, 'k text COLLATE "%s"' % collation, HEX, is_bytes, before)


TYPES = [
    KeyType("int4", "k int4", "(g * 1000003 % 2147483629)::int4", True),
    KeyType("uuid", "k uuid", HEX + "::uuid", True),
    collated("C", "C", True),
    collated("icu", "en-x-icu", False),
    collated("libc", "en_US.utf8", False),
    collated("libc-utf8", "C.utf8", True),
    collated("builtin", "pg_c_utf8", True),
    KeyType("numeric", "k numeric", "(g * 1000003 % 2147483629)::numeric / 100", True),
    KeyType("citext", "k citext", HEX, False, "CREATE EXTENSION citext; SELECT lsm_create_opclass('citext_ops');"),
    KeyType("inet", "k inet", "'0.0.0.0'::inet + (g * 1000003 % 4294967291)", True),
    KeyType("int-icu", 'a int4, k text COLLATE "en-x-icu"', "(g % 50)::int4, " + HEX, False),
]

SETUP = """
{before}
CREATE TABLE source (id int8 PRIMARY KEY, {columns}, f char(10));
INSERT INTO source SELECT g, {keys}, 'x' FROM generate_series(1::int8, {all}) g;
VACUUM ANALYZE source;
DO $$ BEGIN
    FOR i IN 0..{pieces} - 1 LOOP
        EXECUTE format('COPY (SELECT {names}, f FROM source WHERE id > %s AND id <= %s) TO %L',
                       i * {batch}, (i + 1) * {batch}, '{folder}/{name}.' || i);
    END LOOP;
END $$;
"""
LOOP = """
DO $$ BEGIN
    FOR i IN 0..{pieces} - 1 LOOP
        {statement};
        COMMIT;
    END LOOP;
END $$;
"""
# Every tenth row of a piece has a key of the previous piece.
ROWS_OF_PIECE = ("SELECT {names}, f FROM source WHERE id > i * {batch} - "
                 "CASE WHEN i = 0 THEN 0 ELSE {existing} END AND id <= (i + 1) * {batch} - {existing}")
STATEMENTS = {
    "COPY": "EXECUTE format('COPY t FROM %L', '{folder}/{name}.' || i)",
    "INSERT": "INSERT INTO t SELECT {names}, f FROM source WHERE id > i * {batch} AND id <= (i + 1) * {batch}",
    "DO NOTHING": "INSERT INTO t " + ROWS_OF_PIECE + " ON CONFLICT DO NOTHING",
    "DO UPDATE": "INSERT INTO t " + ROWS_OF_PIECE + " ON CONFLICT ({names}) DO UPDATE SET f = excluded.f",
}
LOOK_UP = """
DO $$ DECLARE r record; BEGIN
    FOR r IN SELECT {names} FROM source WHERE id > {first} AND id <= {first} + {lookups} LOOP
        PERFORM f FROM t WHERE {condition};
    END LOOP;
END $$"""


class KeyTypeBars:
    """One type: each turn is one method, in a cluster of its own."""

    methods = ("none", "lsm", "btree")

    def __init__(self, key):
        self.key = key
        self.name, self.title = "type-" + key.name, "keys of %s" % key.columns
        self.loads = {step: {} for step in list(STATEMENTS) + ["plain"]}     # (CPU seconds, seconds)
        self.lookups = {}                                                   # (what, when) -> seconds
        self.searched = {}          # segments that no filter skipped, per lookup
        self.rows = 0
        self.missing = ""

    def measure(self, bench):
        for _, repeat in bench.turns(self):
            if self.missing:
                continue
            with bench.server:
                bench.begin_fresh()
                self._measure_method(bench, repeat)

    def _measure_method(self, bench, repeat):
        batch = bench.options.batch
        self.rows = min(bench.rows(SHARE), ROWS) // batch * batch
        self.values = {
            "name": self.key.name, "columns": self.key.columns, "keys": self.key.keys, "before": self.key.before,
            "names": ", ".join(self.key.names), "batch": batch, "existing": int(batch * EXISTING),
            "pieces": self.rows // batch, "all": 2 * self.rows, "lookups": self.rows, "folder": bench.server.data,
            "condition": " AND ".join("%s = r.%s" % (name, name) for name in self.key.names)}
        self.missing = self.key.why_missing(bench.server)
        if self.missing:
            say("  left out: %s" % self.missing)
            return
        bench.server.query(SETUP.format(**self.values))
        for step in STATEMENTS:
            if bench.method != "none" or "CONFLICT" not in STATEMENTS[step]:
                self._load(bench, step, repeat, unique=True)
        self._load(bench, "plain", repeat, unique=False)
        if bench.method != "none":
            self._look_up(bench, repeat)

    def _load(self, bench, step, repeat, unique):
        statement = STATEMENTS.get(step, STATEMENTS["COPY"]).format(**self.values)
        bench.server.query("DROP TABLE IF EXISTS t;")
        bench.create_table(columns=self.key.columns + ", f char(10)", index="(%s)" % self.values["names"], unique=unique)
        bench.server.query("CHECKPOINT;")
        before = bench.cpu_seconds()
        seconds = bench.server.timed(LOOP.format(statement=statement, **self.values).strip().rstrip(";"))
        cpu = max(bench.cpu_seconds() - before, TICK_S)
        bench.figure("server CPU us/row, " + step, cpu / self.rows * 1e6, "us")
        bench.figure("rows/s, " + step, self.rows / seconds, "rows/s")
        self.loads[step].setdefault(bench.method, {})[repeat] = (cpu, seconds)
        say("  %-6s %-10s %8.2f us CPU a row, %10s rows/s" % (
            bench.method, step, cpu / self.rows * 1e6, number(self.rows / seconds)))

    def _look_up(self, bench, repeat):
        """Lookups in the plain index: as loaded, and after it was merged into one run."""
        bench.server.query("VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) t; ANALYZE t;")
        for when in ("fresh", "settled"):
            if when == "settled" and bench.method == "lsm":
                bench.server.query("SELECT lsm_compact('%s');" % INDEX)
            for what, first in (("present", 0), ("absent", self.rows)):
                before = self._counters(bench)
                seconds = bench.server.timed(LOOK_UP.format(first=first, **self.values),
                                             enable_seqscan="off", enable_bitmapscan="off")
                bench.figure("lookups/s, %s, %s" % (what, when), self.values["lookups"] / seconds, "1/s")
                self.lookups.setdefault((what, when), {}).setdefault(bench.method, {})[repeat] = seconds
                say("  %-6s %-10s %-8s %10s lookups/s" % (
                    bench.method, what, when, number(self.values["lookups"] / seconds)))
                if bench.method == "lsm":
                    seeks, segments, skips = (b - a for a, b in zip(before, self._counters(bench)))
                    self.searched.setdefault((what, when), {})[repeat] = (segments - skips) / max(seeks, 1)

    @staticmethod
    def _counters(bench):
        if bench.method != "lsm":
            return (0, 0, 0)
        return [int(v) for v in bench.server.query(
            "SELECT seeks, segments_read, filter_skips FROM pg_stat_lsm_indexes WHERE indexrelname = '%s';" % INDEX).split("|")]

    # --- verdicts

    def verdicts(self):
        if self.missing:
            return
        for step in STATEMENTS:
            bound = (COPY if step == "COPY" else INSERT)[self.key.is_bytes]
            pairs = list(of_repeats(self.loads[step], "lsm", "btree"))
            yield at_most(self.name, "server CPU, %s, unique, of btree" % step, [a[0] / b[0] for a, b in pairs], bound,
                          self._parts(pairs, "lsm %s, btree %s us a row", lambda load: load[0] / self.rows * 1e6))
        pairs = list(of_repeats(self.loads["plain"], "lsm", "none"))
        yield at_least(self.name, "rows/s, COPY, of no index", [b[1] / a[1] for a, b in pairs], RATE[self.key.is_bytes],
                       self._parts(pairs, "lsm %s, none %s rows/s", lambda load: self.rows / load[1]))
        for (what, when), results in self.lookups.items():
            pairs = list(of_repeats(results, "lsm", "btree"))
            yield at_least(self.name, "lookups/s, %s, %s, of btree" % (what, when), [b / a for a, b in pairs],
                           FRESH if when == "fresh" else SETTLED,
                           self._parts(pairs, "lsm %s, btree %s a second", lambda s: self.values["lookups"] / s))
        for (what, when), segments in self.searched.items():
            yield at_most(self.name, "segments searched a lookup, %s, %s" % (what, when), list(segments.values()), SEARCHED)

    @staticmethod
    def _parts(pairs, text, figure):
        if not pairs:
            return ""
        return text % tuple(number(median_or_none(figure(pair[i]) for pair in pairs)) for i in (0, 1))


EXPERIMENTS = [KeyTypeBars(key) for key in TYPES]
