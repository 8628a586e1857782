"""What all experiments on bars work with: a server, the client, and the raw CSV.

A turn is one method in one repeat of an experiment. Measurements are written to the CSV at once, under their turn.
"""

import csv
import datetime
import os
import time

from .. import BenchError, say, stats
from ..context import COLUMNS, SizeWatch
from .verdicts import number

# Lookups must use the index, whatever the statistics say.
SESSION = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
INDEX = "t_1"
SIZE_INTERVAL_S = 0.5
WAL_INTERVAL_S = 5.0
SAMPLES_A_LOAD = 200
# A btree that is made late: see create_late_btree.
LATE_FROM = 0.9             # of the rows
LATE_FILLFACTOR = 70
LATE_LIMIT_S = 600
BEYOND_MEMORY = 1.5         # times the memory: the index size from which a btree is well beyond it; the table comes on top
MB = 1 << 20


class RawLog:
    """The CSV. Runs append to it. A run is named by its time."""

    COLUMNS = ["run", "experiment", "method", "repeat", "record", "name", "x", "value", "extra"]

    def __init__(self, path):
        self.path = path
        self.run = datetime.datetime.now().isoformat(timespec="seconds")
        self.turn = ["", "", ""]
        is_new = not os.path.exists(path) or os.path.getsize(path) == 0
        if not is_new:
            with open(path, newline="") as file:
                if next(csv.reader(file), None) != self.COLUMNS:
                    raise BenchError("%s is not a file of this program; name another one with --csv" % path)
        self.file = open(path, "a", newline="")
        self.writer = csv.writer(self.file)
        if is_new:
            self.writer.writerow(self.COLUMNS)

    def add(self, record, name, x, value, extra=""):
        self.writer.writerow([self.run] + self.turn + [record, name, x, value, extra])

    def flush(self):
        self.file.flush()


class Load:
    """The figures of a load and, if the index came to rest afterwards, of that phase. Rows that existed before count as
    rows of the table, not as loaded."""

    def __init__(self, report, first=0):
        self.first = first
        self.points = [(first, 0.0)] + [(first + int(s[1]), float(s[2])) for s in report.samples]
        self.worst_ms = max(float(s[3]) for s in report.samples)
        self.gap_ms = max(float(s[4]) for s in report.samples)
        self.total = self.points[-1][0]
        self.loaded = self.total - first
        self.wal_bytes = self.index_bytes = self.peak_bytes = 0
        self.wal_points = []        # (rows, bytes)
        self.cpu_seconds = 0.0      # of the whole server
        self.cpu_settled = None     # the same until it had come to rest
        self.end = None             # an IndexState
        self.settled = None         # a Settled

    def rate(self, begin, end):
        return stats.rate(self.points, begin, end)

    def average(self):
        return self.rate(self.first, self.total)

    def seconds(self):
        return self.points[-1][1]

    def last_tenth(self):
        return self.rate(max(self.first, self.total * 0.9), self.total)

    def last_of_first(self):
        """The rate over the last tenth divided by the rate over the first one, or None."""
        return None if self.first else self.last_tenth() / self.rate(0, self.total * 0.1)

    def cpu_us_a_row(self):
        return self.cpu_seconds / self.loaded * 1e6

    def wal_a_row(self):
        return self.wal_bytes / self.loaded

    def wal_a_row_of_last(self, share):
        """WAL bytes a row over the last part of the rows."""
        begin = self.total * (1 - share)
        return (stats.time_at(self.wal_points, self.total) - stats.time_at(self.wal_points, begin)) / (self.total - begin)


class IndexState:
    """The present state of an index: bytes of its file, live bytes, bytes that wait to be merged, and its runs. All
    zero for a table without an index. The whole file of a btree is live."""

    def __init__(self, server, method):
        self.file_bytes = self.live_bytes = self.debt_bytes = self.runs = 0
        if method == "none":
            return
        self.file_bytes = self.live_bytes = int(server.query("SELECT pg_relation_size('%s');" % INDEX))
        if method == "lsm":
            self.live_bytes, self.runs, self.debt_bytes = (int(v) for v in server.query(
                "SELECT coalesce(sum(bytes), 0)::int8, count(*), coalesce((SELECT debt_bytes FROM pg_stat_lsm_indexes "
                "WHERE indexrelname = '{0}'), 0) FROM lsm_runs('{0}');".format(INDEX)).split("|"))


class Settled(IndexState):
    """The state once merges have come to rest, and the largest file until then."""

    def __init__(self, server, method, peak_bytes, seconds):
        super().__init__(server, method)
        self.peak_bytes, self.seconds = peak_bytes, seconds
        self.wal_bytes = 0              # since the load began
        self.compacted = None           # a Settled after lsm_compact


class Watch(SizeWatch):
    """The size of an index over time, from its files, which costs the server nothing. Occasionally also the WAL, and
    the runs of an lsm index."""

    def __init__(self, server, paths, rows=lambda: 0, wal_from=None, method="none"):
        super().__init__(server, paths, SIZE_INTERVAL_S)
        self.rows, self.wal_from, self.method = rows, wal_from, method
        self.begin = time.monotonic()
        self.sizes, self.wal_points, self.wal_due = [], [], self.begin + WAL_INTERVAL_S
        self.states = []            # (rows, IndexState), as often as wal_points

    def _look(self):
        now = time.monotonic()
        rows, size = self.rows(), self.server.relation_bytes(self.paths)
        self.peak = max(self.peak, size)
        if self.paths:
            self.sizes.append((now - self.begin, size, rows))
        if self.wal_from is not None and now >= self.wal_due:
            self.wal_due = now + WAL_INTERVAL_S
            try:
                self.wal_points.append((rows, wal_since(self.server, self.wal_from)))
                if self.method == "lsm":
                    self.states.append((rows, IndexState(self.server, self.method)))
            except BenchError:
                pass                    # the server has gone; the load will report this


class Printer:
    """Shows the progress of a load about twenty times, and knows the number of rows."""

    def __init__(self, method, rows, first=0):
        self.method, self.rows, self.first = method, rows, first
        self.shown, self.now = (first, 0.0), first

    def __call__(self, report):
        if not report.samples:
            return
        rows, seconds = self.first + int(report.samples[-1][1]), float(report.samples[-1][2])
        self.now = rows
        if rows == self.first + self.rows or (rows - self.shown[0] >= self.rows / 20 and seconds - self.shown[1] >= 1):
            self._show(rows, seconds)

    def _show(self, rows, seconds):
        if rows == self.shown[0]:
            return
        rate = (rows - self.shown[0]) / max(seconds - self.shown[1], 1e-9)
        say("  %-6s %12s rows %8.1f s %12s rows/s" % (self.method, format(rows, ","), seconds, format(int(rate), ",")))
        self.shown = (rows, seconds)


def wal_since(server, lsn):
    return float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % lsn))


class Bench:
    """One object for the whole run. Tables are called t, their index t_1."""

    def __init__(self, options, server, client, raw):
        self.options, self.server, self.client, self.raw = options, server, client, raw
        self.method, self.repeat, self.experiment = "", "", ""
        self.rests = {}                 # experiment -> seconds until its lsm index came to rest, the latest time
        self._stated = set()            # (experiment, settings of its own)
        self._cpu_before_run = 0.0      # server's, when the latest run was started
        self.longest = []               # (experiment, method, what, longest in ms, longest gap in ms)

    # --- turns

    def turns(self, experiment, repeats=1):
        """Yields (method, repeat). Each repeat begins with a different method."""
        methods = [method for method in self.options.methods if method in experiment.methods]
        for repeat in range(1, (self.options.repeats or repeats) + 1):
            for i in range(len(methods)):
                self.turn(experiment.name, methods[(i + repeat - 1) % len(methods)], repeat)
                yield self.method, repeat
                self.raw.flush()

    def turn(self, experiment, method, repeat):
        self.experiment, self.method, self.repeat = experiment, method, repeat
        self.raw.turn = [experiment, method, repeat]

    def rows(self, share):
        return max(int(self.options.rows * share), 1000)

    @property
    def seed(self):
        return self.options.seed + 1000 * (int(self.repeat or 1) - 1)

    def figure(self, name, value, unit="", x=""):
        self.raw.add("figure", name, x, "%.6g" % value, unit)

    def begin_fresh(self, settings=None):
        """settings: {name: value}, for this cluster only; they must take effect on reload."""
        self.server.start_fresh()
        self.server.query("CREATE EXTENSION pg_lsm;")
        self.change_settings(settings or {})
        stated = (self.experiment, tuple(sorted((settings or {}).items())))
        if stated not in self._stated:
            self._stated.add(stated)
            for name, value in self.server.stated_settings().items():
                self.raw.add("setting", name, "", value)

    def change_settings(self, settings):
        """Changes settings until the next begin_fresh; None restores the earlier value."""
        for name, value in settings.items():
            self.server.query("ALTER SYSTEM RESET %s;" % name if value is None else
                              "ALTER SYSTEM SET %s = '%s';" % (name, value))
        if settings:
            self.server.query("SELECT pg_reload_conf(); SELECT pg_sleep(0.1);")

    # --- tables

    def create_table(self, kind="int4_random", columns=None, index="(k)", unique=False):
        """Makes t with the index of this turn's method, unless `index` is None."""
        self.server.query("CREATE TABLE t (%s);" % (columns or COLUMNS.get(kind, "k int4, f char(10)")))
        if index is not None:
            self.create_index(index, unique)

    def create_index(self, index="(k)", unique=False):
        if self.method != "none":
            self.server.query("CREATE %sINDEX %s ON t USING %s %s;" % (
                "UNIQUE " if unique else "", INDEX, self.method, index))

    def freeze_heap(self):
        """Makes sure that autovacuum has nothing to do during a measurement."""
        self.server.query("VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) t; ANALYZE t; CHECKPOINT;")

    def index_bytes(self):
        return int(self.server.query("SELECT pg_relation_size('%s');" % INDEX))

    def _index_paths(self):
        return self.server.query("SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname = '%s';" % INDEX).split()

    def create_late_btree(self, index, unique, rows):
        """Filling the largest tables with a btree in place takes hours, so the btree is made late. `rows` rows are
        there. CREATE INDEX makes the btree as full as random keys leave one that grows."""
        say("  %-6s made of %s rows" % (self.method, format(rows, ",")))
        self.create_index("%s WITH (fillfactor = %d)" % (index, LATE_FILLFACTOR), unique)

    def late_limit(self):
        """Seconds after which the rate of a late btree is known, and at most --limit."""
        return min(self.options.limit or LATE_LIMIT_S, LATE_LIMIT_S)

    # --- measuring

    def fill(self, rows, kind="int4_random"):
        """Loads by COPY, but does not count as a figure of the method. Returns the number of rows."""
        report = self.client.finish(self.client.start(
            "load", {"k": kind, "r": rows, "b": self.options.batch, "s": self.seed, "e": rows},
            self.server.conninfo(), "t"))
        return int(report.value("load", "rows"))

    def load(self, rows, kind="int4_random", clients=1, limit_s=None, in_one=False, rate=None, first=0):
        """Fills t by COPY, with its present index, at most at `rate` rows a second. A load in one transaction does not
        count among the waits of clients. `first` rows exist already."""
        options = self.options
        if self.method == "btree" and options.btree_rows:
            rows = min(rows, options.btree_rows)
        batch = rows if in_one else options.batch
        before = self.server.query("CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
        flags = {"k": kind, "r": rows, "b": batch, "s": self.seed, "c": clients,
                 "e": max(rows // SAMPLES_A_LOAD, batch), "t": options.limit if limit_s is None else limit_s, "f": first}
        if rate:
            flags["a"] = rate
        if options.binary:
            flags["x"] = True
        printer = Printer(self.method, rows, first)
        cpu_before = self.cpu_seconds()
        with Watch(self.server, self._index_paths(), lambda: printer.now, before, self.method) as watch:
            report = self.client.finish(self.client.start("load", flags, self.server.conninfo(), "t"), printer)
        load = Load(report, first)
        load.cpu_seconds, load.cpu_from = self.cpu_seconds() - cpu_before, cpu_before
        load.end = IndexState(self.server, self.method)
        load.wal_from, load.wal_bytes = before, wal_since(self.server, before)
        load.wal_points = sorted(p for p in watch.wal_points if p[0] < load.total) + [(load.total, load.wal_bytes)]
        load.index_bytes, load.peak_bytes = (watch.sizes[-1][1] if watch.sizes else 0), watch.peak
        if load.loaded < rows:
            say("  %-6s stopped after %.0f s" % (self.method, flags["t"]))
        self._keep_load(load, report, watch, in_one)
        if options.check and self.method == "lsm":
            self.server.query("SELECT lsm_check('%s', true);" % INDEX)
            say("  lsm_check found nothing wrong")
        return load

    def cpu_seconds(self):
        return self.server.cpu_seconds() or 0.0

    def _keep_load(self, load, report, watch, in_one):
        for rows, seconds, worst_ms, gap_ms in ((load.first + int(s[1]), *s[2:5]) for s in report.samples):
            self.raw.add("sample", "load", rows, seconds, worst_ms)
            self.raw.add("sample", "longest gap ms", rows, gap_ms)
        for rows, wal in load.wal_points:
            self.raw.add("sample", "WAL bytes", rows, "%.0f" % wal)
        for rows, state in watch.states:
            self.raw.add("sample", "runs, load", rows, state.runs)
            self.raw.add("sample", "debt bytes, load", rows, state.debt_bytes, state.live_bytes)
        self._keep_sizes(watch, "load")
        if not in_one:
            self.longest.append((self.experiment, self.method, "transaction of %d rows" % self.options.batch,
                                 load.worst_ms, load.gap_ms))
        for name, value, unit in (
                ("rows", load.total, "rows"), ("rows/s", load.average(), "rows/s"),
                ("rows/s, last tenth", load.last_tenth(), "rows/s"), ("longest transaction", load.worst_ms, "ms"),
                ("longest gap between commits", load.gap_ms, "ms"), ("WAL bytes/row", load.wal_a_row(), "bytes"),
                ("index bytes/row", load.index_bytes / load.total, "bytes"),
                ("peak index bytes/row", load.peak_bytes / load.total, "bytes"),
                ("live index bytes/row", load.end.live_bytes / load.total, "bytes"),
                ("debt bytes at the end", load.end.debt_bytes, "bytes"), ("runs at the end", load.end.runs, ""),
                ("server CPU us/row", load.cpu_us_a_row(), "us"),
                ("server CPU", load.cpu_seconds / load.seconds(), "cores"),
                ("client CPU", report.cpu_share(), "cores")):
            self.figure(name, value, unit)
        if load.first:
            return
        self.figure("rows/s, last tenth of first", load.last_of_first())
        for tenth in range(10):
            self.figure("rows/s, by tenths", load.rate(load.total * tenth / 10, load.total * (tenth + 1) / 10), "rows/s",
                        tenth + 1)

    def _keep_sizes(self, watch, phase):
        for seconds, size, rows in watch.sizes:
            self.raw.add("sample", "index bytes, " + phase, "%.2f" % seconds, size, rows)

    def timed(self, name, sql, **session_settings):
        """Runs a statement, keeps the CPU time of the whole server, and returns the seconds."""
        before = self.cpu_seconds()
        seconds = self.server.timed(sql, **session_settings)
        self.figure(name + ", server CPU", self.cpu_seconds() - before, "s")
        return seconds

    def run(self, classes, rows, what="", **flags):
        """Runs operations in a closed loop, for --seconds after --warmup. Returns the client's report."""
        process = self.start_run(classes, rows, **flags)
        return self.finish_run(process, classes, what)

    def start_run(self, classes, rows, **flags):
        settings = {"k": "int4_random", "r": rows, "s": self.seed, "t": self.options.seconds, "w": self.options.warmup,
                    "i": max(self.options.seconds / 60, 0.1)}
        settings.update(flags)
        self._cpu_before_run = self.cpu_seconds()
        return self.client.start("run", settings, self.server.conninfo(**SESSION), "t", *classes)

    def finish_run(self, process, classes, what=""):
        report = self.client.finish(process)
        cpu = self.cpu_seconds() - self._cpu_before_run
        for name, second, ops, p50_us, p99_us, max_us in report.samples:
            self.raw.add("sample", " ".join([name, what]).strip(), second, ops,
                         "p50 %s us, p99 %s us, max %s us" % (p50_us, p99_us, max_us))
        for name in (c.split(":")[0] for c in classes):
            label = " ".join([name, what]).strip()
            self.figure(label + " rate", report.value(name, "rate"), "1/s")
            if len(classes) == 1 and report.value(name, "rate") > 0:
                operations = report.value(name, "rate") * (self.options.seconds + self.options.warmup)
                self.figure(label + " server CPU", cpu / operations * 1e6, "us")
            for key in ("p50", "p95", "p99", "max", "gap"):
                self.figure("%s %s" % (label, key), report.value(name, key + "_us") / 1000, "ms")
            self.longest.append((self.experiment, self.method, label, report.value(name, "max_us") / 1000,
                                 report.value(name, "gap_us") / 1000))
        return report

    # --- coming to rest

    def settle(self, what="settled", limit_s=None):
        """Waits until the merges of an lsm index have come to rest, including the delay before idle indexes are merged.
        Another method rests as long as lsm last did in the same experiment, and at least that delay."""
        limit_s = limit_s or self.options.settle_limit
        if self.method != "lsm":
            return self._rest(what)
        delay_ms = int(self.server.query("SELECT setting FROM pg_settings WHERE name = 'pg_lsm.idle_delay';"))
        rest_s = max(delay_ms, 0) / 1000 + self.options.rest
        begin = since = time.monotonic()
        state = None
        with Watch(self.server, self._index_paths()) as watch:
            while time.monotonic() - since < rest_s:
                if time.monotonic() - begin > limit_s:
                    say("  %-6s has not come to rest after %.0f s" % (self.method, limit_s))
                    break
                now = self.server.query(
                    "SELECT pg_relation_size('{0}'); SELECT * FROM lsm_runs('{0}') ORDER BY run_id; "
                    "SELECT merges, bytes_merged, debt_bytes FROM pg_stat_lsm_indexes WHERE indexrelname = '{0}'; "
                    "SELECT phase, blocks_done FROM pg_stat_progress_lsm_compaction;".format(INDEX))
                if now != state:
                    state, since = now, time.monotonic()
                time.sleep(min(1.0, rest_s / 5))
        self.rests[self.experiment, what] = time.monotonic() - begin
        return self._keep_settled(Settled(self.server, self.method, watch.peak, since - begin), watch, what)

    def _rest(self, what):
        delay_ms = int(self.server.query("SELECT setting FROM pg_settings WHERE name = 'pg_lsm.idle_delay';"))
        rest_s = max(self.rests.get((self.experiment, what), 0), max(delay_ms, 0) / 1000 + self.options.rest)
        with Watch(self.server, self._index_paths()) as watch:
            time.sleep(rest_s)
        return self._keep_settled(Settled(self.server, self.method, watch.peak, rest_s), watch, what)

    def _keep_settled(self, settled, watch, what):
        self._keep_sizes(watch, what)
        if self.method == "none":
            self.figure("seconds until, %s" % what, settled.seconds, "s")
            return settled
        for name, value, unit in (("seconds until", settled.seconds, "s"), ("file bytes", settled.file_bytes, "bytes"),
                                  ("live bytes", settled.live_bytes, "bytes"), ("runs", settled.runs, ""),
                                  ("debt bytes", settled.debt_bytes, "bytes"),
                                  ("peak bytes until", settled.peak_bytes, "bytes")):
            self.figure("%s, %s" % (name, what), value, unit)
        say("  %-6s %s: file %s MB, live %s MB, %d runs, after %.0f s" % (
            self.method, what, number(settled.file_bytes / MB), number(settled.live_bytes / MB), settled.runs,
            settled.seconds))
        return settled

    def settle_load(self, load, limit_s=None):
        """Lets the index come to rest, and also records the server's work in the meantime."""
        load.settled = self.settle(limit_s=limit_s)
        load.settled.wal_bytes = wal_since(self.server, load.wal_from)
        load.cpu_settled = self.cpu_seconds() - load.cpu_from
        self.figure("server CPU us/row, until settled", load.cpu_settled / load.loaded * 1e6, "us")
        self.figure("WAL bytes/row, until settled", load.settled.wal_bytes / load.loaded, "bytes")

    def compact(self, load):
        self.server.query("SELECT lsm_compact('%s');" % INDEX)
        load.settled.compacted = self.settle("compacted")

    # --- doubts

    def doubt_beyond_memory(self, index_bytes):
        """Says why a btree of this size is not well beyond the server's memory; "" if it is."""
        if not self.options.memory:
            return "memory is not limited"
        if index_bytes < BEYOND_MEMORY * self.options.memory * MB:
            return "%s, not %.1f times as much" % (self.size_and_memory(index_bytes), BEYOND_MEMORY)
        return ""

    def size_and_memory(self, index_bytes):
        return "btree has %s MB, memory %d MB" % (number(index_bytes / MB), self.options.memory)
