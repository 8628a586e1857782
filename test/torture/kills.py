"""Kills: server processes and workers die at the stop points
(src/base/stop_point.h); recovery and standbys die while they replay WAL.

The clients, their ledgers and the comparisons are those of the random oracle.
After each death the server recovers. Then every committed row must be there
exactly once, the index must return what a sequential scan returns, and
lsm_check must find nothing. The same must hold on the standby, before and
after it is promoted.
"""

import argparse
import os
import re
import subprocess
import time

import oracle
from clients import SESSION, Checker, Client, ClientsRound, Housekeeper
from compare import Mismatch, Statistics
from layout import LSM, TABLE
from machine import DEATH
from server import Server, ServerFailed

# All points but redo, which only recovery and standbys reach.
POINTS = ("batch-write", "batch-written",
          "page-seal", "page-sealed", "page-open", "page-opened",
          "merge-begun", "merge-move", "merge-save", "merge-install",
          "merge-free", "space-extend", "space-reserved", "space-freed",
          "vacuum-page", "vacuum-found", "vacuum-flip", "vacuum-drain",
          "truncate-lock", "truncate-cut", "read-version",
          "unique-probed", "unique-checked", "unique-publish",
          "check-segment", "check-table", "check-duplicates", "check-unique",
          "convert-build", "convert-swap", "convert-swapped", "convert-drop",
          "build-begun", "build-install")
UNIQUE = tuple(p for p in POINTS if "unique" in p)
CONVERTED = f"{TABLE}_converted"        # an index
# The statements in one string are one transaction. The log then says that there are workers.
PARALLEL_BUILD = ("SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL log_min_messages = debug1; "
                  f"REINDEX INDEX {LSM}")
BUILDERS = re.compile(r"\[(\d+)\] DEBUG:  \d+ workers help to build")
# What leads to the points whose names begin so, if it is not what clients do.
LEADING = {
    "merge": (f"SELECT lsm_compact('{LSM}'::regclass)",),
    "vacuum": (f"VACUUM (INDEX_CLEANUP ON) {TABLE}",),
    "truncate": (f"VACUUM (TRUNCATE ON, INDEX_CLEANUP ON) {TABLE}",),
    "check": (f"SELECT lsm_check('{LSM}'::regclass, true)",),
    "convert": (f"CALL lsm_convert('{CONVERTED}')", f"CALL lsm_convert('{CONVERTED}', 'btree')"),
    "build": (f"REINDEX INDEX {LSM}", PARALLEL_BUILD)}
ALL = "all processes at once"
WAIT = 6                # seconds for a process to reach a point
REPLICATION = {"wal_level": "replica", "max_wal_senders": "4",
               "wal_keep_size": "'256MB'", "hot_standby": "on",
               "restart_after_crash": "off", "autovacuum": "off"}


class MortalServer(Server):
    """A server that stays down when one of its processes dies."""

    def __init__(self, pg_config, extra):
        super().__init__(pg_config)
        self.extra = dict(REPLICATION, **extra)
        self.deaths_read = 0

    def configure(self, extra):
        """Change settings for good, unlike stop_at."""
        self.extra.update(extra)
        super().configure(self.extra)

    def stop_at(self, item):
        """Make processes die at a stop point, from the next reload or start on."""
        super().configure(dict(self.extra, **{"pg_lsm.debug_stop_at": f"'{item}'"}))

    def go_on(self):
        super().configure(self.extra)

    def reload(self):
        self._run("pg_ctl", "-D", self.data, "reload")

    def wait_for_death(self, seconds):
        """Wait for the server to die by itself. Return whether it has died."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.process = None
        return True

    def victims(self):
        """Return the kinds of processes that have died since the last call."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(self.deaths_read)
            text = file.read()
            self.deaths_read = file.tell()
        builders = BUILDERS.findall(text)
        return [victim_kind(match.group(1), match.group(2) in builders) for match in DEATH.finditer(text)]

    def die_or_start(self):
        """Start. Return False if the server dies while it starts."""
        try:
            self.start()
        except ServerFailed:
            if self.process.poll() is None:
                raise
            self.process = None
            return False
        return True


class Standby(MortalServer):
    """A streaming standby of a server."""

    def __init__(self, pg_config, primary):
        super().__init__(pg_config, {"primary_conninfo":
                                     f"'host={primary.directory} user=postgres'",
                                     "wal_retrieve_retry_interval": "'100ms'"})
        self._run("pg_basebackup", "-h", primary.directory, "-U", "postgres",
                  "-D", self.data, "-c", "fast", "-X", "stream")
        open(os.path.join(self.data, "standby.signal"), "w").close()
        self.configure({})
        self.start()

    def catch_up(self, primary, seconds=90):
        """Wait until the standby has replayed what the primary has written."""
        connection = primary.connect()
        wanted = connection.query("SELECT pg_current_wal_insert_lsn()").scalar()
        connection.close()
        connection = self.wait_ready()
        deadline = time.monotonic() + seconds
        while connection.query(f"SELECT pg_last_wal_replay_lsn() >= '{wanted}'"
                               ).scalar() != "t":
            if time.monotonic() > deadline:
                raise Mismatch(f"the standby does not reach {wanted}\n"
                               + self.log_tail())
            time.sleep(0.02)
        return connection

    def promote(self):
        self._run("pg_ctl", "-D", self.data, "-w", "promote")


def victim_kind(title, builds):
    """The kind of a process that the log calls so."""
    if builds:
        return "parallel build"
    return ("recovery" if "startup" in title else "worker" if "pg_lsm" in title
            else "parallel worker" if "parallel" in title else "server process")


class BusyHousekeeper(Housekeeper):
    """Rebuilds, compacts and vacuums more often, and does what leads to a stop point."""

    def tasks(self):
        return super().tasks() + [
            (f"REINDEX INDEX {LSM}", 2), (PARALLEL_BUILD, 1),
            (f"SELECT lsm_compact('{LSM}'::regclass)", 3),
            (f"VACUUM (TRUNCATE ON, INDEX_CLEANUP ON) {TABLE}", 5)] + [
                (task, 25) for task in LEADING.get(self.owner.point.split("-")[0], ())]


class ForgetfulClient(Client):
    """Now and then deletes all of its rows, which frees the ends of files."""

    def change(self):
        if self.pending and self.rng.random() < 0.04:
            self.connection.query(f"DELETE FROM {TABLE} WHERE id % {self.step} "
                                  f"= {self.number % self.step}")
            self.pending = set()
        else:
            super().change()


class TortureRound(ClientsRound):
    """A round of clients that has its own servers."""

    point = ""                  # the stop point of a period
    converting = False          # is there an index to convert?
    spare_space = ""            # its tablespace

    def client(self, number, limits):
        return ForgetfulClient(self, number, limits)

    def housekeeper(self):
        return BusyHousekeeper(self)

    def pick_point(self):
        """A stop point that this round can reach."""
        return self.rng.choice([point for point in POINTS
                                if self.layout.unique or point not in UNIQUE])

    def insist(self, *statements):
        connection = self.server.wait_ready()
        connection.log = self.log.session(0)
        for statement in statements:
            connection.query(statement)
        connection.close()

    def period(self):
        self.point = self.pick_point()
        if self.point.startswith("convert-"):
            self.converting = True
            self.insist(self.verifying, f"SET default_tablespace = '{self.spare_space}'",
                        f"CREATE INDEX IF NOT EXISTS {CONVERTED} ON {TABLE} (id)")
        super().period()

    def verify_all(self):
        super().verify_all()
        if self.converting:
            self.end_conversion()

    def end_conversion(self):
        """The same call completes an interrupted conversion, and leaves nothing behind."""
        self.insist(self.verifying, f"CALL lsm_convert('{CONVERTED}')",
                    f"SELECT lsm_check('{CONVERTED}'::regclass, true)",
                    "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM pg_class "
                    "WHERE relname LIKE 'lsm\\_convert\\_%'); END $$")
        self.converting = False
        self.insist(f"DROP INDEX {CONVERTED}")

    def raise_alarms(self):
        alarms = [line for server in self.servers for line in server.alarms()]
        if alarms:
            raise Mismatch("the server log contains:\n" + "\n".join(alarms))

    def close(self):
        for server in self.servers:
            server.destroy()


class Round(TortureRound):
    def __init__(self, torture, seed):
        self.torture = torture
        self.servers = []
        options = argparse.Namespace(am="lsm", types=None, clients=4,
                                     unavailable=set())
        server = MortalServer(torture.options.pg_config, {})
        self.servers.append(server)
        server.create()
        oracle.prepare(server, options)
        super().__init__(server, seed, options, Statistics(), crash=True)
        self.standby = None
        for point in (*POINTS, "redo"):
            torture.tally("kills", point, "server process", 0)

    def configure(self):
        super().configure()
        if self.rng.random() < 0.6:
            self.standby = Standby(self.torture.options.pg_config, self.server)
            self.servers.append(self.standby)

    def run(self):
        self.run_all()
        self.raise_alarms()
        self.torture.count("comparisons", self.statistics.queries)

    # --- deaths

    def kill(self, threads):
        if self.standby and self.rng.random() < 0.4:
            self.kill_standby()
        self.kill_primary()
        self.stopping.set()
        while self.rng.random() < 0.4:
            self.kill_recovery()
        self.server.go_on()
        if self.server.process is None:
            self.server.start()

    def kill_primary(self):
        item = f"{self.point}:crash:{self.rng.choice((0, 0, 1, 2, 5, 20))}"
        self.log.lines.append(f"-- the server dies at {item}")
        self.server.stop_at(item)
        self.server.reload()
        if self.server.wait_for_death(WAIT):
            self.tally_victim(self.server, self.point)
        else:
            self.server.kill()
            self.torture.tally("kills", ALL, "server process")

    def kill_recovery(self):
        """Start the server, and let it die while it replays WAL."""
        self.server.stop_at(f"redo:crash:{int(10 ** self.rng.uniform(0, 3.3))}")
        if self.server.process is not None:
            self.server.kill()
        if self.server.die_or_start():
            self.torture.count("recoveries that ended before their kill")
        else:
            self.tally_victim(self.server, "redo")

    def kill_standby(self):
        """Kill the standby while clients run, and start it again."""
        standby = self.standby
        if self.rng.random() < 0.7:
            standby.stop_at(f"redo:crash:{int(10 ** self.rng.uniform(0, 3))}")
            standby.reload()
        if standby.wait_for_death(1):
            self.torture.tally("kills", "redo", "standby")
        else:
            standby.kill()
            self.torture.tally("kills", ALL, "standby")
        standby.go_on()
        standby.start()

    def tally_victim(self, server, point):
        """Of each death, the log names only the process that died first."""
        for victim in server.victims()[-1:]:
            self.torture.tally("kills", point, victim)

    # --- what is left

    def verify_all(self):
        super().verify_all()
        self.torture.count("verifications")
        self.raise_alarms()
        if self.standby:
            self.verify_standby()

    def verify_standby(self):
        connection = self.standby.catch_up(self.server)
        connection.log = self.log.session(0)
        connection.query(SESSION)
        checker = Checker(self.layout, connection, self.statistics)
        try:
            checker.whole_index()
            for client in self.clients:
                checker.own_rows(client)
        except Mismatch as error:
            raise Mismatch(f"on the standby: {error}") from error
        self.torture.count("verifications of a standby")
        connection.close()
        if self.rng.random() < 0.3:
            self.fail_over()

    def fail_over(self):
        """Promote the standby. From then on there is no standby."""
        self.server.kill()
        self.standby.promote()
        self.server, self.standby = self.standby, None
        super().verify_all()
        self.torture.count("failovers")
