"""A soak: hours of steady work, after which nothing may have grown or slowed.

Partitions are made and dropped, inserts are matched by deletes, rows are
updated, and autovacuum has its defaults. Now and then there is a long
snapshot, REINDEX CONCURRENTLY and lsm_check. A standby replays and answers
queries. One round takes --seconds; its length decides how often things happen
(see UNITS). The figures over time go to soak.csv in the directory of --keep;
soak_plot.py draws them.
"""

import csv
import os
import random
import statistics
import threading
import time

from compare import Mismatch
from kills import MortalServer, Standby
from pgwire import ConnectionLost, PgError

UNITS = 18              # of a round; a unit is ten minutes of three hours
ROWS = 200000           # of the ledger, all the time
ACCOUNTS = 2000
DAYS = 6                # partitions that are kept
SLOWEST_MS = 5000       # a statement that takes longer is a stall
SETTINGS = {"autovacuum": "on", "fsync": "off", "shared_buffers": "'64MB'",
            "max_wal_size": "'256MB'", "log_checkpoints": "on",
            "hot_standby_feedback": "on",
            # As in production, unlike other rounds.
            "pg_lsm.idle_delay": "'10s'", "pg_lsm.debug_merge_fanout": "16",
            "pg_lsm.debug_segment_size": "0"}
SCHEMA = f"""
CREATE EXTENSION pg_lsm;
CREATE TABLE ledger (id uuid PRIMARY KEY WITH (lsm = true), account int,
    amount numeric, at timestamptz DEFAULT clock_timestamp());
CREATE INDEX ledger_account ON ledger USING lsm (account, at DESC);
CREATE INDEX ledger_amount ON ledger USING lsm (amount) INCLUDE (account);
INSERT INTO ledger SELECT gen_random_uuid(), random() * {ACCOUNTS},
    (random() * 1000)::numeric(9, 2) FROM generate_series(1, {ROWS});
CREATE TABLE events (at timestamptz NOT NULL, device int, key uuid,
    value float8) PARTITION BY RANGE (at);
CREATE INDEX ON events USING lsm (device, at DESC) INCLUDE (value);
"""
FILES = """
SELECT coalesce(sum(pg_relation_size(c.oid)), 0),
    coalesce(sum((SELECT sum(bytes) FROM lsm_runs(c.oid))), 0),
    (SELECT coalesce(sum(debt_bytes), 0) FROM pg_stat_lsm_indexes)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE amname = 'lsm' AND relkind = 'i'
"""
FIELDS = ("second", "lookups/s", "standby lookups/s", "slowest ms", "file MB",
          "live MB", "debt MB", "backend MB", "worker MB", "lag MB")
MB = 1024 * 1024
DROPPED = "could not open relation with OID"     # while it was being used


def memory_mb(pids, title):
    """The largest private memory of processes whose title has this text."""
    largest = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if title not in file.read():
                    continue
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                for line in file:
                    if line.startswith("Anonymous:"):
                        largest = max(largest, int(line.split()[1]) / 1024)
        except OSError:
            continue
    return largest


class Round:
    def __init__(self, torture, seed):
        self.torture = torture
        self.seconds = torture.options.seconds
        self.unit = self.seconds / UNITS
        self.seed = seed
        self.stopping = threading.Event()
        self.failures = []
        self.lookups = [0, 0]           # on the primary, on the standby
        self.slowest = 0.0              # ms, since the last sample
        self.samples = []
        self.day = DAYS                 # the first ones have no older ones to drop
        self.server = MortalServer(torture.options.pg_config, SETTINGS)
        self.servers = [self.server]
        self.server.create()
        connection = self.server.connect(timeout=600)
        for statement in SCHEMA.split(";\n"):
            if statement.strip():
                connection.query(statement)
        # Before 18, unique indexes of partitioned tables must be B-trees.
        unique = "UNIQUE" if torture.version >= 18 else ""
        connection.query(f"CREATE {unique} INDEX ON events USING lsm (key, at)")
        connection.close()
        self.standby = Standby(torture.options.pg_config, self.server)
        self.servers.append(self.standby)

    def close(self):
        self.stopping.set()
        for server in self.servers:
            server.destroy()

    def run(self):
        tasks = [(self.new_day, self.unit / 5), (self.add_events, 0.25),
                 (self.turn_over, 0.1), (self.update, 0.2),
                 (self.take_snapshot, self.unit),
                 (self.reindex, self.unit * 1.5), (self.check, self.unit / 2),
                 (self.look_up, 0), (self.look_up_on_standby, 0)]
        self.new_day(self.server.connect(), random.Random(self.seed))
        threads = [threading.Thread(target=self.repeat, args=task, daemon=True)
                   for task in tasks]
        for thread in threads:
            thread.start()
        try:
            self.watch()
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join(120)
            self.save()
        if self.failures:
            raise self.failures[0]
        self.judge()
        self.verify()

    def repeat(self, task, interval):
        """Run a task at an interval, each in a connection of its own."""
        rng = random.Random(f"{self.seed} {task.__name__}")
        server = self.standby if task == self.look_up_on_standby else self.server
        try:
            connection = server.connect(timeout=600)
            due = time.monotonic() + interval
            while not self.stopping.wait(max(due - time.monotonic(), 0)):
                due = max(due, time.monotonic() - interval) + interval
                task(connection, rng)
            connection.close()
        except (PgError, ConnectionLost, Mismatch) as error:
            if not self.stopping.is_set():
                self.failures.append(Mismatch(f"{task.__name__}: {error}"))
                self.stopping.set()

    def timed(self, connection, sql):
        """A statement that must not stall."""
        began = time.monotonic()
        result = connection.query(sql)
        took = (time.monotonic() - began) * 1000
        self.slowest = max(self.slowest, took)
        if took > SLOWEST_MS:
            raise Mismatch(f"{took:.0f} ms: {sql}")
        return result

    # --- the work

    def new_day(self, connection, rng):
        """A partition for what comes next, and the oldest one goes."""
        day = self.day + 1
        connection.query(
            f"CREATE TABLE events_{day} PARTITION OF events FOR VALUES "
            f"FROM ('epoch'::timestamptz + {day} * interval '1 day') "
            f"TO ('epoch'::timestamptz + {day + 1} * interval '1 day')")
        self.day = day                  # from now on, events belong there
        connection.query(f"DROP TABLE IF EXISTS events_{day - DAYS}")
        self.torture.count("partitions made")

    def add_events(self, connection, rng):
        self.timed(connection, f"""
            INSERT INTO events SELECT 'epoch'::timestamptz + {self.day} *
                interval '1 day' + random() * interval '23 hours',
                random() * 1000, gen_random_uuid(), random()
            FROM generate_series(1, 400) ON CONFLICT DO NOTHING""")
        self.torture.count("events", 400)

    def turn_over(self, connection, rng):
        """As many rows leave the ledger as come."""
        account = rng.randrange(ACCOUNTS)
        self.timed(connection, f"""
            WITH gone AS (DELETE FROM ledger WHERE id IN (SELECT id FROM ledger
                WHERE account >= {account} ORDER BY account, at LIMIT 40
                FOR UPDATE SKIP LOCKED) RETURNING 1)
            INSERT INTO ledger SELECT gen_random_uuid(), random() * {ACCOUNTS},
                (random() * 1000)::numeric(9, 2) FROM gone""")
        self.torture.count("rows turned over", 40)

    def update(self, connection, rng):
        account = rng.randrange(ACCOUNTS)
        self.timed(connection, f"""
            UPDATE ledger SET amount = amount + 1 WHERE id IN (SELECT id FROM
                ledger WHERE account = {account} LIMIT 20
                FOR UPDATE SKIP LOCKED)""")
        self.torture.count("updates of up to 20 rows")

    def take_snapshot(self, connection, rng):
        """A long snapshot. What it sees must not change."""
        connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        sql = "SELECT count(*), sum(amount) FROM ledger"
        before = connection.query(sql).rows
        self.stopping.wait(self.unit / 5)
        connection.query("SET LOCAL enable_seqscan = off")
        if connection.query(sql).rows != before:
            raise Mismatch("a snapshot sees other rows than before")
        connection.query("COMMIT")
        self.torture.count("long snapshots")

    def reindex(self, connection, rng):
        name = rng.choice(("ledger_account", "ledger_amount", "ledger_pkey"))
        connection.query(f"REINDEX INDEX CONCURRENTLY {name}")
        self.torture.count("REINDEX CONCURRENTLY")

    def check(self, connection, rng):
        # An index may be dropped meanwhile.
        damaged = connection.query("SELECT * FROM lsm_check_all(NULL, true) WHERE "
                                   "problem NOT LIKE 'could not be verified:%'").rows
        if damaged:
            raise Mismatch(f"lsm_check_all: {damaged}")
        self.torture.count("lsm_check_all")

    def look_up(self, connection, rng, place=0):
        account = rng.randrange(ACCOUNTS)
        rows = self.timed(connection, f"""SELECT id, account FROM ledger WHERE
            account = {account} ORDER BY at DESC LIMIT 10""").rows
        for key, found in rows:
            again = self.timed(connection, f"SELECT account FROM ledger WHERE id"
                                           f" = '{key}'").rows
            # The row may have been deleted since.
            if again and again != [(found,)] or found != str(account):
                raise Mismatch(f"account {account} has {again}")
        self.lookups[place] += 1 + len(rows)
        time.sleep(0.002)               # leave some of the machine to others

    def look_up_on_standby(self, connection, rng):
        """REINDEX CONCURRENTLY does not wait for queries on standbys, which may
        have planned with the old index, whatever its method."""
        try:
            self.look_up(connection, rng, 1)
        except PgError as error:
            if DROPPED not in error.message:
                raise
            self.torture.count("lookups on the standby that lost their index")

    # --- the figures

    def file_sizes(self, connection):
        while True:
            try:
                return [float(v) / MB for v in connection.query(FILES).rows[0]]
            except PgError as error:        # of a partition that was just dropped
                if DROPPED not in error.message:
                    raise

    def watch(self):
        connection = self.server.connect(timeout=600)
        standby = self.standby.connect(timeout=600)
        began = last = time.monotonic()
        while (time.monotonic() - began < self.seconds
               and not self.stopping.wait(self.unit / 60)):
            now = time.monotonic()
            files = self.file_sizes(connection)
            lsn = connection.query("SELECT pg_current_wal_lsn()").scalar()
            lag = float(standby.query(f"SELECT pg_wal_lsn_diff('{lsn}', "
                                      "pg_last_wal_replay_lsn())").scalar())
            pids = self.server.children()
            self.samples.append((now - began,
                                 *(n / (now - last) for n in self.lookups),
                                 self.slowest, *files,
                                 memory_mb(pids, b"postgres postgres"),
                                 memory_mb(pids, b"pg_lsm worker"), lag / MB))
            self.lookups, self.slowest, last = [0, 0], 0.0, now

    def save(self):
        os.makedirs(self.torture.options.keep, exist_ok=True)
        path = os.path.join(self.torture.options.keep, "soak.csv")
        with open(path, "w", newline="", encoding="ascii") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            writer.writerows([f"{value:.5g}" for value in sample]
                             for sample in self.samples)

    def early_and_late(self, field):
        """Medians of two sixths of the time."""
        at, n = FIELDS.index(field), len(self.samples)
        return (statistics.median(sample[at] for sample in
                                  self.samples[int(n * first):int(n * last) + 1])
                for first, last in ((0.33, 0.5), (0.83, 1)))

    def judge(self):
        """Nothing has grown or slowed since the first third. It varies."""
        found = []
        for field, factor, extra in (("file MB", 1.5, 20), ("debt MB", 2, 20),
                                     ("backend MB", 1.3, 3), ("worker MB", 1.3, 8),
                                     ("slowest ms", 3, 300), ("lag MB", 2, 20)):
            early, late = self.early_and_late(field)
            if late > early * factor + extra:
                found.append(f"{field} grew from {early:.4g} to {late:.4g}")
        for field in ("lookups/s", "standby lookups/s"):
            early, late = self.early_and_late(field)
            if late < early * 0.6:
                found.append(f"{field} fell from {early:.4g} to {late:.4g}")
        if found:
            raise Mismatch("; ".join(found))

    def verify(self):
        connection = self.standby.catch_up(self.server)
        connection.close()
        for server in self.servers:
            connection = server.connect(timeout=600)
            if connection.query("SELECT count(*) FROM ledger").scalar() != str(ROWS):
                raise Mismatch("the ledger has lost or doubled rows")
            answers = []
            for setting in ("enable_seqscan", "enable_indexscan, enable_bitmapscan"):
                connection.query("BEGIN")
                for name in setting.split(", "):
                    connection.query(f"SET LOCAL {name} = off")
                answers.append(connection.query(
                    "SELECT md5(string_agg(id::text, '' ORDER BY account, id)) "
                    "FROM ledger WHERE account >= 0").rows)
                connection.query("COMMIT")
            if answers[0] != answers[1]:
                raise Mismatch("the index and the table disagree")
            connection.close()
        alarms = [line for server in self.servers for line in server.alarms()]
        if alarms:
            raise Mismatch("\n".join(alarms))
