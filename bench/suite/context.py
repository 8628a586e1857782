"""What an experiment works with: a running server, the client, and a place for its figures."""

import json
import threading
import time

from . import BenchError, stats
from .results import Result, Sample

# Columns of the tables for the client's kinds of rows. Other tables have (k int4, f char(10)).
COLUMNS = {
    "int8_seq": "k int8, f char(10)",
    "int8_desc": "k int8, f char(10)",
    "uuid4": "k uuid, f char(10)",
    "uuid7": "k uuid, f char(10)",
    "text": 'k text COLLATE "C", f char(10)',
    "include8": "k int8, " + ", ".join("v%d int8" % i for i in range(1, 9)),
    "wide": ", ".join("k%d int4" % i for i in range(1, 9)),
    "churn": "id int4 PRIMARY KEY, k int4, f char(10)",
    "fat": "k int4, f text",
    "sales": "id bigserial PRIMARY KEY, at timestamptz, till int4, customer int4, product int4, price int4, data text",
    "lineitem": """l_orderkey int8 NOT NULL, l_partkey int4 NOT NULL, l_suppkey int4 NOT NULL, l_linenumber int4 NOT NULL,
        l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
        l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
        l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
        l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL""",
}

SAMPLES_A_LOAD = 120


class BackgroundWatch:
    """Calls `_look` again and again while something runs. Use it in a `with` statement."""

    def __init__(self, interval_s):
        self.interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _look(self):
        raise NotImplementedError

    def _run(self):
        while not self._stop.wait(self.interval_s):
            self._look()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


class SizeWatch(BackgroundWatch):
    """Tracks the sizes of relations by their files."""

    def __init__(self, server, paths, interval_s=0.1):
        super().__init__(interval_s)
        self.server, self.paths = server, paths
        self.peak = 0
        self.peak_temporary = 0

    def _look(self):
        self.peak = max(self.peak, self.server.relation_bytes(self.paths))
        self.peak_temporary = max(self.peak_temporary, self.server.temporary_bytes())

    def __exit__(self, *_):
        super().__exit__()
        self._look()


class SizeSamples(BackgroundWatch):
    """Samples the sizes of the indexes, if there are any: their files, and what of it is live, which only lsm tells."""

    def __init__(self, context, interval_s):
        super().__init__(interval_s)
        self.context = context
        self.paths = context.index_paths()
        self.begin = time.monotonic()

    def _look(self):
        if self.paths:
            self.sample()

    def sample(self):
        size = live = self.context.server.relation_bytes(self.paths)
        runs = None
        if self.context.am == "lsm":
            state = self.context.lsm_state()
            live, runs = state["live bytes"], state["runs"]
        second = "%.1f" % (time.monotonic() - self.begin)
        self.context.sample("index MB", second, size / 1e6)
        self.context.sample("live index MB", second, live / 1e6)
        return size, live, runs

    def record(self, x):
        """Records the sizes as figures, too."""
        if not self.paths:
            return
        size, live, runs = self.sample()
        self.context.record("index size", size / 1e6, "MB", x)
        if runs is not None:
            self.context.record("index size / live", size / max(live, 1), "", x)
            self.context.record("runs of all indexes", runs, "", x)


class Context:
    """The context of one group. Figures go to the group's experiment and case unless others are named."""

    def __init__(self, group, options, server, client):
        self.group, self.options, self.server, self.client = group, options, server, client
        self.am = group.am
        self.experiment, self.case = group.experiment, group.case
        self.results, self.samples = [], []

    @property
    def seed(self):
        """Each repeat has its own keys, the same for all systems."""
        return self.options.seed + 1000 * (self.group.repeat - 1)

    def record(self, metric, value, unit="", x="", note="", case=None):
        self.results.append(Result(self.group.key, self.experiment, case or self.case, x, self.am, self.group.repeat, metric,
                                   "%.6g" % float(value), unit, note))

    def last(self, metric):
        """The result of a metric that was recorded last."""
        return next(result for result in reversed(self.results) if result.metric == metric)

    def sample(self, series, x, value, extra=""):
        self.samples.append(Sample(self.group.key, self.experiment, self.case, self.am, self.group.repeat, series, x,
                                   value, extra))

    # --- the schema

    def prepare_database(self):
        """Creates extensions. An extension with the name of an access method is assumed to provide it."""
        method = self.am.partition(",")[0]      # a variant may follow
        self.server.query("CREATE EXTENSION IF NOT EXISTS pg_lsm;")
        self.server.query("ALTER SYSTEM RESET pg_lsm.max_workers; SELECT pg_reload_conf();")
        if method not in ("none", "btree", "lsm"):
            if self.server.query("SELECT 1 FROM pg_available_extensions WHERE name = '%s';" % method):
                self.server.query('CREATE EXTENSION IF NOT EXISTS "%s";' % method)
        known = "SELECT 1 FROM pg_am WHERE amtype = 'i' AND amname = '%s';" % method
        if method != "none" and not self.server.query(known):
            raise BenchError("this server has no access method \"%s\"" % method)

    def create_table(self, kind, indexes=("(k)",), table="t", with_options=" WITH (autovacuum_enabled = off)"):
        """Makes a table for rows of a kind, replacing an older one. Indexes are named t_1, t_2, ...

        If checksums are on, a VACUUM after a checkpoint writes full images of the table's pages. Whether one comes during
        a load depends on how long the load takes.
        """
        self.server.query("DROP TABLE IF EXISTS %s; CREATE TABLE %s (%s)%s;" % (
            table, table, COLUMNS.get(kind, "k int4, f char(10)"), with_options))
        if self.am != "none":
            for number, columns in enumerate(indexes, 1):
                self.server.query("CREATE INDEX %s_%d ON %s USING %s %s;" % (table, number, table, self.am, columns))

    def index_paths(self, table="t"):
        """Files of the indexes under test, without primary keys."""
        return self.server.query(
            "SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE (indrelid = '{0}'::regclass OR indrelid IN (SELECT "
            "relid FROM pg_partition_tree('{0}'))) AND NOT indisprimary;".format(table)).split()

    def settle(self, table="t"):
        """Brings indexes into their best form: by lsm_compact if that function exists, otherwise by REINDEX."""
        compact = self.am == "lsm" and self.server.query("SELECT 1 FROM pg_proc WHERE proname = 'lsm_compact';")
        for name in self.server.query("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '%s'::regclass "
                                      "AND NOT indisprimary;" % table).split():
            self.server.query("SELECT lsm_compact('%s');" % name if compact else "REINDEX INDEX %s;" % name)

    def keep_fresh(self, keep=True):
        """Stops all merges by workers, including due ones and those that readers have paid for, so that a fresh index
        stays fresh while it is read. Or allows merges again."""
        if self.am == "lsm":
            self.server.query("ALTER SYSTEM %s; SELECT pg_reload_conf(); SELECT pg_sleep(0.1);" % (
                "SET pg_lsm.max_workers = 0" if keep else "RESET pg_lsm.max_workers"))

    def lsm_state(self, table="t"):
        """{name: bytes or number} of the lsm indexes of a table: live bytes, and bytes that wait to be merged."""
        runs, live, debt = self.server.query(
            "SELECT count(r), coalesce(sum(r.bytes), 0)::int8 FROM pg_index i, LATERAL lsm_runs(i.indexrelid) r "
            "WHERE i.indrelid = '{0}'::regclass AND NOT i.indisprimary; "
            "SELECT coalesce(sum(debt_bytes), 0)::int8 FROM pg_stat_lsm_indexes WHERE indexrelid IN (SELECT indexrelid "
            "FROM pg_index WHERE indrelid = '{0}'::regclass);".format(table)).replace("|", "\n").split()
        return {"runs": int(runs), "live bytes": int(live), "debt bytes": int(debt)}

    def freeze_heap(self, table="t"):
        """Sets the visibility map for index-only scans, without changing the indexes, and collects statistics."""
        self.server.query("VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) %s; ANALYZE %s; CHECKPOINT;" % (table, table))

    # --- loads

    def load(self, kind, rows, clients=1, x="", table="t", limit_s=None, binary=False, one_core=False, first_row=0):
        """Fills a table by COPY, records the results, and returns the number of rows that it loaded.

        one_core: the client may use only one core.
        """
        limit_s = limit_s or self.options.limit
        before = self.server.query("CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
        paths = self.index_paths(table)
        options = {"k": kind, "r": rows, "s": self.seed, "c": clients, "t": limit_s,
                   "e": max(rows // SAMPLES_A_LOAD, 1000)}
        if binary:
            options["x"] = True
        if first_row:
            options["f"] = first_row
        cpu_before = self.server.cpu_seconds()
        with SizeWatch(self.server, paths) as watch:
            report = self.client.call("load", options, self.server.conninfo(), table, one_core=one_core)
        cpu_after = self.server.cpu_seconds()
        wal = float(self.server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % before))
        samples = [(int(s[1]), float(s[2])) for s in report.samples]
        for row_count, seconds, worst_ms, _ in (s[1:] for s in report.samples):
            self.sample("load" if x == "" else "load %s" % x, row_count, seconds, worst_ms)
        loaded = int(report.value("load", "rows"))
        note = "" if loaded >= rows else "stopped after %.0f s" % limit_s
        self.record("rows", loaded, "rows", x, note)
        self.record("rows/s", loaded / report.value("load", "seconds"), "rows/s", x, note)
        self.record("rows/s, last tenth", stats.last_tenth(samples), "rows/s", x, note)
        self.record("longest transaction", max(float(s[3]) for s in report.samples), "ms", x)
        self.record("WAL bytes/row", wal / loaded, "bytes", x)
        self.record("client CPU", report.cpu_share(), "cores", x)
        if cpu_before is not None and cpu_after is not None:
            self.record("server CPU/row", (cpu_after - cpu_before) / loaded * 1e6, "us", x)
        if paths and not first_row:
            size = live = self.server.relation_bytes(paths)
            self.record("index bytes/row", size / loaded, "bytes", x)
            debt = 0
            if self.am == "lsm":
                state = self.lsm_state(table)
                live, debt = state["live bytes"], state["debt bytes"]
                self.record("runs at the end of the load", state["runs"], "", x)
            # The file may never shrink, so the peak is compared with what is in use.
            self.record("live index bytes/row", live / loaded, "bytes", x)
            self.record("debt bytes/row at the end of the load", debt / loaded, "bytes", x)
            self.record("peak index size / live", watch.peak / max(live, 1), "", x)
        return loaded

    # --- queries

    def run(self, classes, rows, kind="int4_random", seconds=None, warmup=None, table="t", session=None, **flags):
        """Runs operations in a closed loop and returns the client's report."""
        options = {"k": kind, "r": rows, "s": self.seed,
                   "t": self.options.seconds if seconds is None else seconds,
                   "w": self.options.warmup if warmup is None else warmup}
        options.update(flags)
        return self.client.call("run", options, self.server.conninfo(**(session or {})), table, *classes)

    def sample_rate(self, report, name, series, scale=1):
        """Keeps the rate of a class of operations in each interval."""
        before = 0.0
        for second, ops in (words[1:3] for words in report.samples if words[0] == name):
            self.sample(series, second, int(ops) * scale / max(float(second) - before, 1e-3))
            before = float(second)

    def record_latencies(self, report, name, label, x="", suffix=""):
        self.record("%s/s%s" % (label, suffix), report.value(name, "rate"), "1/s", x)
        for percentile in ("p50", "p95", "p99", "max"):
            self.record("%s %s%s" % (label, percentile, suffix), report.value(name, percentile + "_us") / 1000, "ms", x)

    def plan_nodes(self, sql, **session):
        """The kinds of nodes of a plan, outermost first."""
        plan = json.loads(self.server.query("EXPLAIN (FORMAT JSON) %s;" % sql, **session))[0]["Plan"]
        names = []
        while plan is not None:
            names.append(plan["Node Type"])
            plan = plan["Plans"][0] if "Plans" in plan else None
        return " / ".join(names)
