"""Bars for processes that work alongside a load: workers that merge, and a standby that replays the load."""

import os
import signal
import threading
import time

from .. import BenchError
from ..server import Standby
from .bench import INDEX, MB, say
from .verdicts import at_most, number, of_repeats


class SlowWorkers:
    """Lets each worker of the server run for only a part of every tenth of a second, as if other programs used the rest
    of the machine."""

    SLICE_S = 0.1
    PIDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker';"

    def __init__(self, server, share):
        """share: the part of the time that a worker runs."""
        self.server, self.run_s = server, self.SLICE_S * share
        self.pids = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._hold, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        self._signal(signal.SIGCONT)

    def _hold(self):
        while not self.stopping.is_set():
            self.pids = [int(pid) for pid in self.server.query(self.PIDS).split()]
            for _ in range(10):
                self._signal(signal.SIGCONT)
                time.sleep(self.run_s)
                self._signal(signal.SIGSTOP)
                time.sleep(self.SLICE_S - self.run_s)
            self._signal(signal.SIGCONT)

    def _signal(self, number_):
        for pid in self.pids:
            try:
                os.kill(pid, number_)
            except ProcessLookupError:
                pass


class Workers:
    """The same load with one worker and with two. The client leaves one core to the workers, and each worker gets a fifth
    of a core, so that the load outpaces one worker. (Without this limit, a worker keeps up with one client. Enough
    clients to outpace a worker need both cores of a small machine.) The figure is the time from the first row until no
    merge is due."""

    name, title, methods, share = "workers", "text in en-x-icu, one and two workers, a fifth of a core each", ("lsm",), 0.04
    NUMBERS, WORKER_SHARE, RATE = (1, 2), 0.2, 200_000

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        for method, repeat in bench.turns(self):
            for workers in self.NUMBERS:
                bench.turn("%s-%d" % (self.name, workers), method, repeat)
                with bench.server:
                    bench.begin_fresh({"pg_lsm.max_workers": workers, "pg_lsm.idle_delay": -1})
                    bench.create_table("text", 'k text COLLATE "en-x-icu", f char(10)')
                    with SlowWorkers(bench.server, self.WORKER_SHARE):
                        load = bench.load(bench.rows(self.share), "text", rate=self.RATE)
                        bench.settle_load(load)
                seconds = load.seconds() + load.settled.seconds
                bench.figure("seconds until settled", seconds, "s")
                say("  %d worker%s: %s rows/s, debt at the end %s MB, settled %s s after the first row" % (
                    workers, "s" if workers > 1 else "", number(load.average()), number(load.end.debt_bytes / MB),
                    number(seconds)))
                self.results.setdefault(workers, {})[repeat] = (load, seconds)

    def verdicts(self):
        pairs = list(of_repeats(self.results, *self.NUMBERS))
        parts = "".join("two workers %s s, one %s s; debt after the load %s MB and %s MB" % (
            number(b[1]), number(a[1]), number(b[0].end.debt_bytes / MB), number(a[0].end.debt_bytes / MB))
            for a, b in pairs[-1:])
        yield at_most(self.name, "time until settled with two, of one", [b[1] / a[1] for a, b in pairs], 1.0, parts)


class Replay:
    """The primary takes a load of 20 rows about 200 times a second, and then a load at full speed. A standby without
    feedback replays the load, and replay waits for queries for two seconds at most. Meanwhile four sessions on the
    standby repeatedly read the loaded table and another one, under snapshots that they hold for up to four seconds."""

    name, title, methods = "standby", "a standby's queries and replay delay under a load of the primary", ("lsm", "btree")
    SETTINGS = {"hot_standby_feedback": "off", "max_standby_streaming_delay": "2s"}
    SESSIONS, HOLD_S = 4, 4
    TRICKLE = ("DO $$ DECLARE stop timestamptz = clock_timestamp() + interval '%d s'; BEGIN WHILE clock_timestamp() < stop "
               "LOOP INSERT INTO t SELECT (random() * 2e9)::int4, 'x' FROM generate_series(1, 20); COMMIT; "
               "PERFORM pg_sleep(0.004); END LOOP; END $$;")
    QUERY = ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(k) FROM other; SELECT count(k) FROM t WHERE k < 1000000; "
             "SELECT pg_sleep(%g); SELECT sum(k) FROM other; SELECT count(k) FROM t WHERE k < 1000000; COMMIT;")

    def __init__(self):
        self.results = {}

    def measure(self, bench):
        for method, repeat in bench.turns(self):
            with bench.server, Standby(bench.server) as standby:
                bench.begin_fresh()
                bench.create_table()
                bench.server.query(
                    "CREATE TABLE other AS SELECT i AS k FROM generate_series(1, 100000) i; "
                    "CREATE INDEX ON other USING %s (k); VACUUM ANALYZE other;" % method)
                standby.start_fresh(self.SETTINGS)
                for what, load in (("trickle", self._trickle), ("load", self._full)):
                    result = self._beside(bench, standby, load, what)
                    self.results.setdefault((what, method), {})[repeat] = result
                if bench.options.check and method == "lsm":
                    standby.query("SELECT lsm_check('%s');" % INDEX)

    def _seconds(self, bench):
        return bench.options.warmup + bench.options.seconds

    def _trickle(self, bench):
        bench.server.query(self.TRICKLE % max(self._seconds(bench), 1))

    def _full(self, bench):
        bench.client.finish(bench.client.start("load", {
            "k": "int4_random", "r": 10 ** 12, "b": bench.options.batch, "s": bench.seed, "e": 50 * bench.options.batch,
            "t": max(self._seconds(bench), 1)}, bench.server.conninfo(), "t"))

    def _beside(self, bench, standby, load, what):
        """Runs a load while the standby is read. Returns (queries, canceled queries, longest delay of replay in s)."""
        stop = threading.Event()
        queries, errors, delays = [], [], [0.0]

        def read():
            while not stop.is_set():
                try:
                    standby.query(self.QUERY % min(self.HOLD_S, bench.options.seconds / 4), enable_seqscan="off")
                except BenchError as error:
                    errors.append(str(error).splitlines()[0])
                queries.append(1)

        def follow():
            while not stop.is_set():
                delays.append(self._delay(bench, standby, stop))
                stop.wait(0.1)

        threads = [threading.Thread(target=read, daemon=True) for _ in range(self.SESSIONS)]
        threads.append(threading.Thread(target=follow, daemon=True))
        for thread in threads:
            thread.start()
        before = bench.server.query("SELECT pg_current_wal_lsn();")
        load(bench)
        wal = bench.server.query("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '%s');" % before)
        stop.set()
        for thread in threads:
            thread.join()
        cancelled = [error for error in errors if "due to conflict with recovery" in error]
        if len(cancelled) != len(errors):
            raise BenchError("a query on the standby failed: %s" % [e for e in errors if e not in cancelled][0])
        for name, value, unit in (("queries", len(queries), ""), ("queries canceled", len(cancelled), ""),
                                  ("longest delay of replay", max(delays), "s"), ("WAL bytes", float(wal), "bytes")):
            bench.figure("%s, %s" % (name, what), value, unit)
        say("  %-6s %-8s %d queries, %d canceled; replay at most %.2f s behind, %s MB of WAL" % (
            bench.method, what, len(queries), len(cancelled), max(delays), number(float(wal) / MB)))
        return len(queries), len(cancelled), max(delays)

    @staticmethod
    def _delay(bench, standby, stop):
        """Waits until the standby has replayed all that the primary has written so far, or for `stop`. Returns seconds."""
        lsn = bench.server.query("SELECT pg_current_wal_lsn();")
        begin = time.monotonic()
        while standby.query("SELECT pg_last_wal_replay_lsn() >= '%s';" % lsn) != "t" and not stop.is_set():
            time.sleep(0.02)
        return time.monotonic() - begin

    def verdicts(self):
        for what in ("trickle", "load"):
            lsm = [result for result, in of_repeats(self.results, (what, "lsm"))]
            pairs = list(of_repeats(self.results, (what, "lsm"), (what, "btree")))
            yield at_most(self.name, "queries canceled, %s" % what, [cancelled for _, cancelled, _ in lsm], 0,
                          "".join("of %d; btree %d of %d" % (a[0], b[1], b[0]) for a, b in pairs[-1:]))
            yield at_most(self.name, "replay delay, lsm minus btree, %s, s" % what, [a[2] - b[2] for a, b in pairs], 1.0,
                          "".join("lsm %s, btree %s s" % (number(a[2]), number(b[2])) for a, b in pairs[-1:]))


EXPERIMENTS = [Workers(), Replay()]
