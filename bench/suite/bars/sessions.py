"""Bars on sessions: transactions of a single row, and lookups while rows come in."""

from collections import namedtuple

from .bench import INDEX, LATE_FROM, MB, say
from .verdicts import at_least, at_most, information, median_or_none, number, of_repeats

CLIENTS = 8
INSERTS = "insert:%d" % CLIENTS
UNUSED_ROWS = 10 ** 8           # more than a turn inserts


class Inserts:
    """Prepared INSERTs of single rows by 8 clients. With `unique` the index is unique and the keys are random UUIDs."""

    def __init__(self, name, title, share, bound, unique=False):
        self.name, self.title, self.share, self.bound, self.unique = name, title, share, bound, unique
        self.kind = "uuid4" if unique else "int4_random"
        self.methods = ("none", "lsm", "btree")
        self.results = {}
        self.bench = None
        self.btree_bytes = 0

    def _insert(self, bench, first, repeat):
        report = bench.run([INSERTS], first, k=self.kind)
        say("  %-6s %12s INSERTs/s, p99 %.1f ms, longest %.0f ms" % (
            bench.method, format(int(report.value("insert", "rate")), ","), report.value("insert", "p99_us") / 1000,
            report.value("insert", "max_us") / 1000))
        self.results.setdefault(bench.method, {})[repeat] = report

    def doubt(self):
        return ""

    def verdicts(self):
        def rates(results, i):
            return median_or_none(r[i].value("insert", "rate") for r in results)

        def of_btree(pairs):
            return [a.value("insert", "rate") / b.value("insert", "rate") for a, b in pairs]

        pairs = list(of_repeats(self.results, "lsm", "btree"))
        parts = ""
        if pairs:
            parts = "lsm %s, btree %s, none %s INSERTs/s" % (
                number(rates(pairs, 0)), number(rates(pairs, 1)),
                number(rates(list(of_repeats(self.results, "none")), 0)))
            if self.btree_bytes and not self.doubt():
                parts += "; " + self.bench.size_and_memory(self.btree_bytes)
        yield at_least(self.name, "INSERTs/s of %d clients, of btree" % CLIENTS, of_btree(pairs), self.bound, parts,
                       self.doubt())
        limit = of_btree(of_repeats(self.results, "none", "btree"))
        if limit:
            yield information(self.name, "INSERTs/s with no index, of btree", limit, "what any index could reach")
        for method in ("lsm", "btree"):
            for report, in list(of_repeats(self.results, method))[-1:]:
                yield information(self.name, "INSERT of %s, p99 ms" % method, report.value("insert", "p99_us") / 1000,
                                  "p50 %s, longest %s ms; longest gap between commits %s ms" % tuple(
                                      number(report.value("insert", key) / 1000) for key in ("p50_us", "max_us", "gap_us")))


class InsertsInMemory(Inserts):
    """Each turn fills a table by COPY, with the index in place, lets merges come to rest, and inserts."""

    def measure(self, bench):
        self.bench = bench
        for method, repeat in bench.turns(self, 2):
            with bench.server:
                bench.begin_fresh()
                bench.create_table(self.kind, unique=self.unique)
                load = bench.load(bench.rows(self.share), self.kind)
                bench.freeze_heap()
                bench.settle()
                if method == "btree":
                    self.btree_bytes = load.index_bytes
                self._insert(bench, load.total, repeat)


class InsertsBeyondMemory(Inserts):
    """One table, filled once. Each turn makes its index, inserts, and drops the index. A btree that was loaded row by
    row would be larger and slower, but filling one would take hours."""

    def measure(self, bench):
        self.bench = bench
        first = bench.rows(self.share)
        with bench.server:
            bench.turn(self.name, "none", "")
            bench.begin_fresh()
            bench.create_table(self.kind)
            bench.load(first, self.kind, limit_s=0)
            bench.freeze_heap()
            for method, repeat in bench.turns(self):
                if method != "none":
                    say("  %-6s CREATE INDEX" % method)
                    bench.create_index(unique=self.unique)
                    bench.figure("index bytes", bench.index_bytes(), "bytes")
                if method == "btree":
                    self.btree_bytes = bench.index_bytes()
                bench.server.query("CHECKPOINT;")
                self._insert(bench, first, repeat)
                first += UNUSED_ROWS
                bench.server.query("DROP INDEX IF EXISTS %s;" % INDEX)

    def doubt(self):
        if self.btree_bytes == 0:
            return "not measured"
        return self.bench.doubt_beyond_memory(self.btree_bytes)


# Lookups beside a load: their report, the load's rows a second, and the number of rows it loaded.
BesideLoad = namedtuple("BesideLoad", "report rate loaded")
# One turn of lookups: beside a load of the same table, idle, beside a load of another table, beside a load at a given
# pace.
Turn = namedtuple("Turn", "during idle other paced")


class Lookups:
    """One connection looks up random keys of existing rows while another connection loads as fast as it can. The same
    lookups follow once the load has ended and merges have come to rest. Then they run beside a load of another table
    without an index, which shows what a load costs lookups whatever the index does. Last they run beside a load of
    PACE rows a second, which is the same for lsm and btree."""

    name, title, methods = "lookups", "lookups while 1 client loads, and afterwards", ("lsm", "btree")
    share = 0.1
    LOOKUP = ["lookup:1"]
    OTHER = "u"
    PACE = 100000

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        for method, repeat in bench.turns(self):
            with bench.server:
                bench.begin_fresh()
                bench.create_table()
                rows = bench.load(bench.rows(self.share)).total
                bench.freeze_heap()
                during = self._beside_load(bench, rows, "t", "during the load")
                bench.freeze_heap()
                bench.settle()
                idle = bench.run(self.LOOKUP, rows, "idle")
                bench.server.query("CREATE TABLE %s (LIKE t);" % self.OTHER)
                other = self._beside_load(bench, rows, self.OTHER, "beside another")
                paced = self._beside_load(bench, rows, "t", "beside the same load", during.loaded, self.PACE)
                self.results.setdefault(method, {})[repeat] = Turn(during, idle, other, paced)
            for what, report in (("during the load", during.report), ("idle", idle), ("beside another", other.report),
                                 ("same load", paced.report)):
                say("  %-6s %-16s %10s lookups/s, p50 %.3f, p99 %.3f, longest %.1f ms" % (
                    method, what, format(int(report.value("lookup", "rate")), ","),
                    *(report.value("lookup", key) / 1000 for key in ("p50_us", "p99_us", "max_us"))))

    def _beside_load(self, bench, rows, table, what, loaded=0, pace=0):
        """Lookups of the first `rows` rows while a load appends more, at `pace` rows a second, or as fast as it can."""
        options = bench.options
        # The load runs longer than the lookups, so that it accompanies all of them.
        load = bench.client.start("load", {
            "k": "int4_random", "r": 10 ** 12, "f": rows + loaded, "a": pace, "b": options.batch, "s": bench.seed,
            "e": 50 * options.batch, "t": options.warmup + options.seconds + 1}, bench.server.conninfo(), table)
        report = bench.finish_run(bench.start_run(self.LOOKUP, rows), self.LOOKUP, what)
        load = bench.client.finish(load)
        for loaded_rows, seconds, worst_ms in (sample[1:4] for sample in load.samples):
            bench.raw.add("sample", "load of %s beside lookups" % table, loaded_rows, seconds, worst_ms)
        rate = load.value("load", "rows") / load.value("load", "seconds")
        bench.figure("rows/s of %s beside lookups%s" % (table, ", paced" if pace else ""), rate, "rows/s")
        bench.longest.append((self.name, bench.method, "transaction of %d rows" % options.batch,
                              max(float(s[3]) for s in load.samples), max(float(s[4]) for s in load.samples)))
        return BesideLoad(report, rate, int(load.value("load", "rows")))

    def verdicts(self):
        yield self._ratio("lsm")
        yield from self._of_btree()
        if "btree" in self.results:
            yield self._ratio("btree")
        for method in self.methods:
            if method in self.results:
                yield self._ratio_beside(method)

    def _ratio(self, method):
        results = [result for result, in of_repeats(self.results, method)]
        value = self._of_idle((turn.during, turn.idle) for turn in results)
        parts = ""
        for turn in results[-1:]:
            parts = "p50, p99, longest: %s ms while %s rows/s come in, %s ms idle" % (
                self._times(turn.during.report), number(turn.during.rate), self._times(turn.idle))
        if method == "lsm":
            return at_most(self.name, "p99 of lookups during the load, of idle", value, 2.0, parts)
        return information(self.name, "p99 of btree during the load, of idle", value, parts)

    def _of_btree(self):
        """Each method beside a load of its own, and beside a load that is the same for both."""
        pairs = list(of_repeats(self.results, "lsm", "btree"))
        own = [[turn.during for turn in pair] for pair in pairs]
        same = [[turn.paced for turn in pair] for pair in pairs]
        yield information(self.name, "lookups during the load, of btree",
                          self._shares(own, self._lookups), "lsm %s, btree %s a second" % self._both(own, self._lookups))
        yield at_least(self.name, "rows/s beside lookups, of btree",
                       self._shares(own, self._rows), 2.5, "lsm %s, btree %s a second" % self._both(own, self._rows))
        yield information(self.name, "lookups beside the same load, of btree", self._shares(same, self._lookups),
                          "lsm %s, btree %s lookups a second while %s and %s rows/s come in" % (
                              self._both(same, self._lookups) + self._both(same, self._rows)))

    @staticmethod
    def _lookups(beside):
        return beside.report.value("lookup", "rate")

    @staticmethod
    def _rows(beside):
        return beside.rate

    @staticmethod
    def _shares(pairs, figure):
        return [figure(lsm) / figure(btree) for lsm, btree in pairs]

    @staticmethod
    def _both(pairs, figure):
        return tuple(number(median_or_none(figure(pair[method]) for pair in pairs)) for method in (0, 1))

    def _ratio_beside(self, method):
        """The ratio that the load alone causes: the least that the bar's ratio can be."""
        results = [result for result, in of_repeats(self.results, method)]
        value = self._of_idle((turn.other, turn.idle) for turn in results)
        other = results[-1].other
        return information(self.name, "p99 of %s beside a load of another table" % method, value,
                           "of idle; %s ms while %s rows/s go to a table without an index" % (
                               self._times(other.report), number(other.rate)))

    @staticmethod
    def _of_idle(pairs):
        return [beside.report.value("lookup", "p99_us") / idle.value("lookup", "p99_us") for beside, idle in pairs]

    @staticmethod
    def _times(report):
        return ", ".join(number(report.value("lookup", key) / 1000) for key in ("p50_us", "p99_us", "max_us"))


class Ledger:
    """A stream of events, every tenth of which exists already: INSERT ... ON CONFLICT DO NOTHING, 1000 rows a
    statement. The server makes the rows, the same for all methods. The btree measures only the last tenth. By
    then the table has all earlier rows, so any of them can recur."""

    name, title, methods, share = "ledger", "1000 rows a statement, a tenth there already, ON CONFLICT DO NOTHING", ("lsm", "btree"), 0.5
    STATEMENT, PARTS, BOUND = 1000, 50, 8.0
    ROW = "(h & 15)::int4, h, 'abcdefghij'"
    # Among tens of millions of hashes a few are equal. The remaining rows are in random order, as in the stream.
    FILL = ("SET work_mem = '16MB'; SET enable_sort = off; INSERT INTO t SELECT %s FROM (SELECT DISTINCT "
            "hashint8extended(i, %d) AS h FROM generate_series(0::int8, %d) i) r")
    SQL = ("DO $$ BEGIN FOR s IN %d .. %d LOOP "
           "INSERT INTO t SELECT %s FROM (SELECT hashint8extended("
           "CASE WHEN j %% 10 = 0 THEN abs(hashint8extended(s * 1000::int8 + j, %d)) %% (s * 1000 + 1) "
           "ELSE s * 1000::int8 + j END, %d) AS h FROM generate_series(1, 1000) j) r ON CONFLICT DO NOTHING; "
           "COMMIT; END LOOP; END $$")

    def __init__(self):
        self.results = {}
        self.bench = None
        self.btree_bytes = 0

    def measure(self, bench):
        self.bench = bench
        statements = max(bench.rows(self.share) // self.STATEMENT, self.PARTS)
        for method, repeat in bench.turns(self):
            with bench.server:
                bench.begin_fresh()
                first_part, rates, spent = self._prepare(bench, statements), {}, 0.0
                for part in range(first_part, self.PARTS):
                    first, last = (statements * p // self.PARTS for p in (part, part + 1))
                    seconds = bench.server.timed(self.SQL % (first, last - 1, self.ROW, bench.seed, bench.seed))
                    spent += seconds
                    rates[part] = (last - first) * self.STATEMENT / seconds
                    bench.figure("rows/s", rates[part], "rows/s", last * self.STATEMENT)
                    if spent > (bench.late_limit() if method == "btree" else bench.options.limit):
                        break
                say("  %-6s %s rows, %s rows/s, then %s; index %s MB" % (
                    method, format(last * self.STATEMENT, ","), number(rates[first_part]), number(rates[max(rates)]),
                    number(bench.index_bytes() / MB)))
                if method == "btree":
                    self.btree_bytes = bench.index_bytes()
                self.results.setdefault(method, {})[repeat] = rates

    def _prepare(self, bench, statements):
        """Makes the table and its index. Returns the first part of the stream to run."""
        bench.server.query("CREATE TABLE t (provider int4, event int8, f char(10));")
        columns, first_part = "(provider, event)", 0
        if bench.method == "btree":
            first_part = int(self.PARTS * LATE_FROM)
            rows = statements * first_part // self.PARTS * self.STATEMENT
            bench.server.query(self.FILL % (self.ROW, bench.seed, rows))
            bench.create_late_btree(columns, True, rows)
        else:
            bench.create_index(columns, True)
        bench.server.query("CHECKPOINT;")
        return first_part

    def verdicts(self):
        pairs = [(a, b, max(set(a) & set(b))) for a, b in of_repeats(self.results, "lsm", "btree") if set(a) & set(b)]
        parts, doubt = "", "not measured"
        if pairs:
            parts = "lsm %s, btree %s rows/s, over the last fiftieth that both have" % tuple(
                number(median_or_none(pair[m][pair[2]] for pair in pairs)) for m in (0, 1))
            parts += "; " + self.bench.size_and_memory(self.btree_bytes)
            doubt = self.bench.doubt_beyond_memory(self.btree_bytes)
        yield at_least(self.name, "rows/s, beyond memory, of btree",
                       [a[last] / b[last] for a, b, last in pairs], self.BOUND, parts, doubt)


EXPERIMENTS = [
    InsertsInMemory("inserts", "single-row INSERTs of 8 clients, in memory", 0.08, 1.0),
    InsertsBeyondMemory("beyond", "single-row INSERTs of 8 clients, beyond memory", 1.0, 5.0),
    InsertsInMemory("pk", "single-row INSERTs of 8 clients, unique index, in memory", 0.02, 0.9, unique=True),
    InsertsBeyondMemory("pk-beyond", "the same beyond memory", 0.5, 3.0, unique=True),
    Ledger(), Lookups(),
]
