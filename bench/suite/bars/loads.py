"""Bars on loads by COPY: how much of the rate without an index, and of btree's rate, remains with an lsm index."""

from dataclasses import dataclass

from .bench import LATE_FROM, MB, say
from .verdicts import at_least, at_most, information, median_or_none, number, of_repeats

AVERAGE, LAST = "average", "last tenth"
WORST_OF_NONE = 1.5         # longest batch
LARGEST, LARGEST_MB = 1.15, 64.0    # times the settled size, and so much more
BYTES_A_ROW = 8
WAL_OF_NONE = 2.1
MAX_WAL_SIZES = ("1GB", "16GB")     # the server's default, and a size for servers with heavy loads
INCLUDED = "(k) INCLUDE (%s)" % ", ".join("v%d" % i for i in range(1, 9))


@dataclass(frozen=True)
class Ratio:
    """The ratio of lsm's rows a second to those of another method, over the rows that both loaded."""
    other: str
    part: str
    bound: float
    beyond_memory: bool = False     # counts only when the btree is


class LoadExperiment:
    """Each turn loads a table of its own in a new cluster."""

    limit_s = None              # as --limit says
    in_one = False              # all rows in one transaction

    def __init__(self, name, title, share, ratios, kind="int4_random", columns=None, index="(k)", clients=1,
                 methods=("none", "lsm"), unique=False, settings=None):
        self.unique = unique
        self.settings = settings or {}      # besides those of the command line
        self.name, self.title, self.share, self.ratios = name, title, share, ratios
        self.kind, self.columns, self.index, self.clients, self.methods = kind, columns, index, clients, methods
        self.results = {}
        self.bench = None

    def measure(self, bench):
        self.bench = bench
        for method, repeat in bench.turns(self):
            with bench.server:
                bench.begin_fresh(self.settings)
                load = self.load(bench)
                self.results.setdefault(method, {})[repeat] = load
                self.after_load(bench, load)
        self.show()

    def load(self, bench):
        bench.create_table(self.kind, self.columns, self.index, self.unique)
        return bench.load(bench.rows(self.share), self.kind, self.clients, self.limit_s, self.in_one)

    def after_load(self, bench, load):
        """All methods rest, so that their work after the load counts."""
        bench.settle_load(load)

    def show(self):
        say("\n  %-8s%14s%12s%14s%12s%14s%12s%12s%12s%10s%6s" % (
            "", "rows", "rows/s", "rows/s, last", "longest", "longest gap", "index", "WAL", "CPU, then", "debt", "runs"))
        say("  %-8s%14s%12s%14s%12s%14s%12s%12s%12s%10s%6s" % (
            "", "", "average", "tenth", "batch, ms", "of all, ms", "bytes/row", "bytes/row", "and rested", "at end", "at"))
        say("  %-8s%14s%12s%14s%12s%14s%12s%12s%12s%10s%6s" % (
            "", "", "", "", "", "", "", "", "us/row", "MB", "end"))
        for method, loads in self.results.items():
            for load in loads.values():
                say("  %-8s%14s%12s%14s%12.0f%14.0f%12.2f%12.1f%6.2f%6.2f%10.1f%6d" % (
                    method, format(load.total, ","), number(load.average()), number(load.last_tenth()), load.worst_ms, load.gap_ms, load.index_bytes / load.total,
                    load.wal_a_row(), load.cpu_us_a_row(), (load.cpu_settled or 0) / load.loaded * 1e6,
                    load.end.debt_bytes / MB, load.end.runs))
        say("")

    # --- verdicts

    def verdicts(self):
        for ratio in self.ratios:
            yield self._ratio(ratio)
        yield self._worst_batch()
        yield self._last_of_first()
        yield from self._cpu()

    def _ratio(self, ratio):
        text = "rows/s, %s, of %s" % (ratio.part, "no index" if ratio.other == "none" else ratio.other)
        values, rates, end, doubt = [], [], 0, ""
        for lsm, other in of_repeats(self.results, "lsm", ratio.other):
            end = min(lsm.total, other.total)
            begin = 0 if ratio.part == AVERAGE else max(end * 0.9, other.first)
            rates.append((lsm.rate(begin, end), other.rate(begin, end)))
            values.append(rates[-1][0] / rates[-1][1])
            if ratio.beyond_memory:
                doubt = doubt or self.bench.doubt_beyond_memory(other.index_bytes)
        parts = ""
        if rates:
            parts = "lsm %s, %s %s rows/s, to %s rows" % (
                number(median_or_none(r[0] for r in rates)), ratio.other, number(median_or_none(r[1] for r in rates)),
                format(end, ","))
            if ratio.other == "btree" and not doubt:
                parts += "; " + self.bench.size_and_memory(other.index_bytes)
        if ratio.bound is None:
            return information(self.name, text, values, parts)
        return at_least(self.name, text, values, ratio.bound, parts, doubt)

    def _worst_batch(self):
        lsm = [load.worst_ms for load in self.results.get("lsm", {}).values()]
        none = [load.worst_ms for load in self.results.get("none", {}).values()]
        gap = [load.gap_ms for load in self.results.get("lsm", {}).values()]
        parts = "none %s ms; longest gap between commits %s ms" % (
            number(max(none)) if none else "-", number(max(gap)) if gap else "-")
        return at_most(self.name, "longest batch, ms", max(lsm) if lsm and none else None,
                       WORST_OF_NONE * max(none, default=0), parts)

    def _last_of_first(self):
        """Whether the rate falls, and how far the index exceeds memory."""
        loads = self.results.get("lsm", {}).values()
        parts = []
        for method in ("none", "btree"):
            others = [load.last_of_first() for load in self.results.get(method, {}).values() if not load.first]
            if others:
                parts.append("%s %s" % (method, number(median_or_none(others))))
        for load in [load for load in loads if load.end][-1:]:
            memory = self.bench.options.memory
            parts.append("index of lsm %s MB, memory %s; debt at the end %s MB, %d runs" % (
                number(load.index_bytes / MB), "%d MB" % memory if memory else "not limited",
                number(load.end.debt_bytes / MB), load.end.runs))
        return information(self.name, "rows/s, last tenth, of first tenth", [load.last_of_first() for load in loads],
                           "; ".join(parts))

    def _cpu(self):
        """CPU of the whole server: sessions, workers, and the rest. And the same including the work after the load."""
        for other, other_text in (("none", "no index"), ("btree", "btree")):
            for text, cpu in (("during the load", lambda l: l.cpu_seconds), ("until settled", lambda l: l.cpu_settled)):
                loads = [pair for pair in of_repeats(self.results, "lsm", other) if all(cpu(load) for load in pair)]
                pairs = [(1e6 * cpu(a) / a.loaded, 1e6 * cpu(b) / b.loaded) for a, b in loads]
                if pairs:
                    parts = "lsm %s, %s %s us" % (
                        number(median_or_none(a for a, _ in pairs)), other, number(median_or_none(b for _, b in pairs)))
                    for a, b in loads[-1:]:
                        if a.loaded != b.loaded:
                            parts += "; of %s and %s rows" % (format(a.loaded, ","), format(b.loaded, ","))
                    yield information(self.name, "server CPU a row, %s, of %s" % (text, other_text),
                                      [a / b for a, b in pairs], parts)


class LateBtree(LoadExperiment):
    """The btree measures only the last tenth."""

    def load(self, bench):
        rows = bench.rows(self.share)
        if bench.method != "btree" or bench.options.btree_rows:
            return super().load(bench)
        bench.create_table(self.kind, self.columns, None)
        first = bench.fill(int(rows * LATE_FROM), self.kind)
        bench.create_late_btree(self.index, self.unique, first)
        return bench.load(rows - first, self.kind, limit_s=bench.late_limit(), first=first)


class LargestLoad(LoadExperiment):
    """In addition: the space of the index, and WAL."""

    def after_load(self, bench, load):
        super().after_load(bench, load)
        if bench.method == "lsm":
            bench.compact(load)

    def verdicts(self):
        yield from super().verdicts()
        yield self._wal()
        yield from self._wal_of_btree()
        loads = [load for load in self.results.get("lsm", {}).values() if load.settled]
        if not loads:
            yield at_most(self.name, "index bytes/row, settled", None, BYTES_A_ROW)
            yield at_most(self.name, "largest index during the load, MB", None, LARGEST_MB)
        # The worst repeat counts.
        for load in sorted(loads, key=lambda load: load.settled.file_bytes)[-1:]:
            yield self._space(load)
        for load in sorted(loads, key=lambda load: largest_bytes(load) - LARGEST * load.settled.live_bytes)[-1:]:
            yield self._peak(load)

    def _wal(self):
        pairs = list(of_repeats(self.results, "lsm", "none"))
        parts = ""
        if pairs:
            parts = "lsm %s, none %s bytes/row" % (number(median_or_none(lsm.wal_a_row() for lsm, _ in pairs)),
                                                   number(median_or_none(none.wal_a_row() for _, none in pairs)))
            settled = median_or_none(lsm.settled.wal_bytes / lsm.total for lsm, _ in pairs if lsm.settled)
            if settled:
                parts += "; lsm with the merges after the load %s" % number(settled)
        return at_most(self.name, "WAL bytes/row, of no index",
                       [lsm.wal_a_row() / none.wal_a_row() for lsm, none in pairs], WAL_OF_NONE, parts)

    def _wal_of_btree(self):
        for btree, none in list(of_repeats(self.results, "btree", "none"))[-1:]:
            end = btree.wal_a_row_of_last(0.25)
            doubt = self.bench.doubt_beyond_memory(btree.index_bytes)
            yield information(self.name, "WAL bytes/row of btree, of no index", end / none.wal_a_row(),
                              "btree %s over its last quarter of %s rows, %s on average; %s" % (
                                  number(end), format(btree.total, ","), number(btree.wal_a_row()),
                                  doubt or self.bench.size_and_memory(btree.index_bytes)))

    def _space(self, load):
        settled, compacted = load.settled, load.settled.compacted
        parts = "live; file %s, %d runs; after the load %s" % (
            number(settled.file_bytes / load.total), settled.runs, number(load.index_bytes / load.total))
        if compacted:
            parts += "; after lsm_compact file %s, live %s" % (
                number(compacted.file_bytes / load.total), number(compacted.live_bytes / load.total))
        return at_most(self.name, "index bytes/row, settled", settled.live_bytes / load.total, BYTES_A_ROW, parts)

    def _peak(self, load):
        settled, compacted = load.settled, load.settled.compacted
        return at_most(self.name, "largest index, load to lsm_compact, MB", largest_bytes(load) / MB,
                       LARGEST * settled.live_bytes / MB + LARGEST_MB,
                       "of %s x live + %s; settled: file %s, live %s; largest: load %s, settling %s, lsm_compact %s" % (
                           number(LARGEST), number(LARGEST_MB), number(settled.file_bytes / MB),
                           number(settled.live_bytes / MB), number(load.peak_bytes / MB),
                           number(settled.peak_bytes / MB), number(compacted.peak_bytes / MB) if compacted else "-"))


class OneTransaction(LargestLoad):
    """All rows in one transaction. There is no longest batch and no last tenth: a client waits for the whole load."""

    in_one = True

    def _worst_batch(self):
        return information(self.name, "the transaction, s",
                           [load.worst_ms / 1000 for load in self.results.get("lsm", {}).values()])

    def _last_of_first(self):
        return information(self.name, "runs at the end",
                           [load.end.runs for load in self.results.get("lsm", {}).values() if load.end])


def largest_bytes(load):
    """The largest file of an index: during the load, while it settled, while it was compacted."""
    sizes = [load.peak_bytes, load.settled.peak_bytes]
    if load.settled.compacted:
        sizes += [load.settled.compacted.peak_bytes, load.settled.compacted.file_bytes]
    return max(sizes)


EXPERIMENTS = [
    LargestLoad("int4", "random int4, 1 client; space of the index; WAL", 1.0, [
        Ratio("none", AVERAGE, 0.85), Ratio("none", LAST, 0.88), Ratio("btree", LAST, None)],
        methods=("none", "lsm", "btree")),
    LoadExperiment("clients", "random int4, 4 clients", 1.0, [Ratio("none", AVERAGE, 0.80), Ratio("none", LAST, None)],
                   clients=4),
    LoadExperiment("clients8", "random int4, 8 clients", 1.0, [Ratio("none", AVERAGE, None), Ratio("none", LAST, None)],
                   clients=8),
    OneTransaction("onetx", "random int4, all rows in one transaction; space of the index; WAL", 0.1, [
        Ratio("none", AVERAGE, None)]),
    LoadExperiment("uuid", "random UUID", 0.3, [Ratio("none", AVERAGE, 0.90)], "uuid4"),
    LateBtree("unique", "random UUID, unique index", 1.0, [
        Ratio("none", AVERAGE, 0.60), Ratio("btree", LAST, 20.0, beyond_memory=True)], "uuid4",
        methods=("none", "lsm", "btree"), unique=True),
    LoadExperiment("text", "text of 12 bytes, C collation", 0.3, [Ratio("none", AVERAGE, 0.70)], "text"),
    LoadExperiment("icu", "text of 12 bytes, ICU collation", 0.3, [Ratio("none", AVERAGE, 0.45)], "text",
                   'k text COLLATE "en-x-icu", f char(10)'),
    LoadExperiment("seq", "ascending int8", 0.3, [Ratio("btree", AVERAGE, 1.0), Ratio("none", AVERAGE, 0.95)],
                   "int8_seq", methods=("none", "lsm", "btree")),
    LoadExperiment("desc", "descending int8", 0.3, [Ratio("none", AVERAGE, 0.95)], "int8_desc"),
    LoadExperiment("cover", "Knizhnik's table: random int8, 8 int8 included", 0.2,
                   [Ratio("btree", LAST, 8.0, beyond_memory=True)], "include8", index=INCLUDED,
                   methods=("none", "lsm", "btree")),
] + [
    # The same load, with frequent checkpoints, and with few.
    LoadExperiment("wal-" + size, "random int4, max_wal_size %s" % size, 0.3, [
        Ratio("none", AVERAGE, None), Ratio("none", LAST, None), Ratio("btree", LAST, None)],
        methods=("none", "lsm", "btree"), settings={"max_wal_size": size})
    for size in MAX_WAL_SIZES
]
