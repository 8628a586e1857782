"""One large load of a billion rows, unless --rows says otherwise: whether the rate falls, and the state afterwards.

It takes hours and much disk space, so it runs only if it is named.
"""

import time

from .bench import INDEX, MB, say
from .loads import AVERAGE, LAST, LoadExperiment, Ratio
from .reads import READS
from .verdicts import information, number

ROWS = 1_000_000_000
LOOKUPS = READS[:4]             # keys that exist, and keys that do not, by 1 and 8 clients
SETTLE_LIMIT_S = 6 * 3600.0


class Billion(LoadExperiment):
    """After the load, nothing merges the index until the fresh index has been measured."""

    only_by_name = True
    limit_s = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.found = []                 # verdicts on the state after the load

    def after_load(self, bench, load):
        self._say_rates(bench, load)
        if bench.method != "lsm":
            return
        self.found = []                 # the latest repeat is shown; the CSV has all
        bench.change_settings({"pg_lsm.max_workers": "0"})
        self._say_state("as loaded", load, load.end)
        self._timed(bench, "VACUUM of the table alone", bench.freeze_heap)
        self._look_up(bench, load.total, "fresh")
        bench.change_settings({"pg_lsm.idle_delay": None, "pg_lsm.max_workers": None})
        say("  %-6s waiting until merges have come to rest" % bench.method)
        load.settled = bench.settle(limit_s=SETTLE_LIMIT_S)
        self._say_state("settled", load, load.settled)
        self._look_up(bench, load.total, "settled")
        for what, arguments in (("lsm_check", ""), ("lsm_check with the table", ", true")):
            self._timed(bench, what, lambda: bench.server.query("SELECT lsm_check('%s'%s);" % (INDEX, arguments)))
        self._timed(bench, "lsm_compact", lambda: bench.server.query("SELECT lsm_compact('%s');" % INDEX))
        load.settled.compacted = bench.settle("compacted")
        self._say_state("after lsm_compact", load, load.settled.compacted)

    def _say_rates(self, bench, load):
        rates = [load.rate(load.total * i / 10, load.total * (i + 1) / 10) for i in range(10)]
        say("  %-6s rows/s by tenths: %s" % (bench.method, ", ".join(number(rate) for rate in rates)))

    def _say_state(self, what, load, state):
        self.found.append(information(
            self.name, "index bytes/row, %s" % what, state.file_bytes / load.total,
            "file %s MB, live %s MB, %d runs, debt %s MB" % (
                number(state.file_bytes / MB), number(state.live_bytes / MB), state.runs, number(state.debt_bytes / MB))))

    def _look_up(self, bench, rows, state):
        for name, kind, clients, length, sql in LOOKUPS:
            flags = {"l": length}
            if sql:
                flags["q"] = sql
            report = bench.run(["%s:%d" % (kind, clients)], rows, "%s, %s" % (name, state), **flags)
            p50, p99, longest = (report.value(kind, key) / 1000 for key in ("p50_us", "p99_us", "max_us"))
            say("  %-6s %s, %s: %s a second" % (bench.method, name, state, number(report.value(kind, "rate"))))
            self.found.append(information(
                self.name, "lookups/s, %s, %s" % (name, state), report.value(kind, "rate"),
                "p50 %s, p99 %s, longest %s ms" % (number(p50), number(p99), number(longest))))

    def _timed(self, bench, what, work):
        say("  %-6s %s" % (bench.method, what))
        begin = time.monotonic()
        work()
        seconds = time.monotonic() - begin
        bench.figure(what, seconds, "s")
        self.found.append(information(self.name, "%s, s" % what, seconds))

    def verdicts(self):
        yield from super().verdicts()
        yield from self.found


EXPERIMENTS = [
    Billion("billion", "a billion rows: random int4, 1 client; then lookups, sizes, lsm_check", 1.0,
            [Ratio("none", AVERAGE, None), Ratio("none", LAST, None)], settings={"pg_lsm.idle_delay": "-1"}),
]
