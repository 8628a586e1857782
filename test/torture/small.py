"""Small and full machines: servers with hardly any memory, workers, locks or
files; disks that are full or fail; a kernel that kills for want of memory.

The clients, their ledgers and the comparisons are those of the random oracle.
Each round picks some settings, and one calamity that happens while the clients
work. Rounds with consecutive seeds take the calamities, the stop points, and
the values of some settings in turn. Statements may fail, but only with the
errors that belong to the round. Once the calamity is over, every committed row
must be there once, the index must return what a sequential scan returns, and
lsm_check must find nothing.
"""

import argparse
import os
import random

import oracle
from calamities import FULL_AT, CalamityRound
from compare import Mismatch
from kills import POINTS, UNIQUE
from layout import LSM, TABLE
from machine import Disk, Machine, MemoryGroup
from pgwire import ConnectionLost, PgError
from server import ServerFailed

# Legal errors: the beginning, and a pattern.
NO_BUFFERS = ("XX000", "no unpinned buffers available")
NO_FILES = ("53400", "temporary file size exceeds")
NO_LOCKS = ("53200", "out of shared memory")
NO_SLOTS = ("53300", "")
NO_ROOM = ("53100", "No space left on device|could not extend file .* wrote only")
NO_CHECKPOINT = ("XX000", "checkpoint request failed")
BAD_DISK = ("58030", "Input/output error")

# Settings that go together, with their values and legal errors. A round takes
# each line with probability SHARE. None: the values that the server offers.
# shared_buffers is in blocks, of whatever size.
SHARE = 0.35
SETTINGS = (
    ({"shared_buffers": (16, 32, 64, 128)}, NO_BUFFERS),
    ({"max_worker_processes": (0, 1, 2), "pg_lsm.max_workers": (0, 1, 8)}, None),
    ({"work_mem": ("'64kB'",), "maintenance_work_mem": ("'1MB'",)}, None),
    ({"temp_file_limit": ("'64kB'", "'256kB'"), "work_mem": ("'64kB'",)},
     NO_FILES),
    ({"max_locks_per_transaction": (10,)}, NO_LOCKS),
    ({"max_connections": (14,), "superuser_reserved_connections": (0,)},
     NO_SLOTS),
    ({"max_files_per_process": (64,)}, None),
    ({"wal_level": ("minimal",), "max_wal_senders": (0,)}, None),
    ({"wal_compression": None}, None),
    ({"full_page_writes": ("off",)}, None),
    ({"max_wal_size": ("'2MB'", "'4MB'"), "min_wal_size": ("'2MB'",)}, None),
    ({"wal_consistency_checking": ("'all'",), "full_page_writes": ("on",)}, None),
)
# Settings whose values rounds take in turn, and the versions from which on they exist.
IN_TURN = {"debug_io_direct": (16, ("''", "'data'", "'wal'", "'data, wal'")), "io_method": (18, None)}
FILES = 120             # file descriptors, with max_files_per_process

# What happens, and how often in so many rounds.
CALAMITIES = {"death": 2, "locks": 1, "memory": 2, "full": 2, "full_at_point": 4,
              "full_wal": 2, "faulty": 2}
EVENTS = [(name, nth) for name, often in CALAMITIES.items() for nth in range(often)]
POINTS_EACH = 2         # that a round takes; a third one belongs to the next round, too
ON_DISK = ("full", "full_at_point", "full_wal", "faulty")
WAL_PANIC = (r'PANIC:  could not (write to|extend|fallocate) file "pg_wal/.*'
             'No space left on device')
FLUSH_PANIC = 'PANIC:  could not fsync file "pg_tblspc/.*Input/output error'


def in_turn(name, values, number):
    """Of each len(values) consecutive numbers, each has another value, in an order that changes."""
    cycle, place = divmod(number, len(values))
    order = list(values)
    random.Random(f"{name} {cycle}").shuffle(order)
    return order[place]


class Round(CalamityRound):
    def run(self):
        try:
            self.set_up()
            self.run_all()
        except (Mismatch, PgError, ConnectionLost, ServerFailed) as error:
            settings = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
            raise Mismatch(f"{self.calamity}: {'; '.join(self.done)}\n{settings}"
                           f"\n{type(error).__name__}: {error}") from error
        self.count(self.calamity)
        self.count("comparisons", self.statistics.queries)

    # --- the machine

    def set_up(self):
        rng = random.Random(f"small {self.seed}")
        options = argparse.Namespace(am="lsm", types=None, unavailable=set(),
                                     clients=rng.choice((2, 3, 4, 8)))
        server = Machine(self.torture.options.pg_config)
        self.servers.append(server)
        checksums = rng.random() < 0.5
        self.count(f"checksums {'on' if checksums else 'off'}")
        server.create("--wal-segsize=1",
                      *(("--data-checksums",) if checksums else
                        ("--no-data-checksums",) if self.torture.version >= 18
                        else ()))
        oracle.prepare(server, options)
        self.begin(server, options)
        self.pick_calamity()
        self.pick_settings(rng)

    def pick_calamity(self):
        """Take the next one, or death if this machine or our rights do not allow that."""
        server = self.server
        self.calamity, nth = in_turn("calamity", EVENTS, self.seed)
        if self.calamity == "memory":
            try:
                server.group = MemoryGroup()
            except OSError:
                self.torture.lack("memory control group")
                self.calamity = "death"
        elif self.calamity in ON_DISK and not Disk.possible():
            self.torture.lack("C compiler")
            self.calamity = "death"
        elif self.calamity in ON_DISK:
            server.disk = Disk(server.directory, os.path.join(server.data, "pg_wal")
                               if self.calamity == "full_wal" else server.space)
            self.spare_space = "small"
        if self.calamity == "full_at_point":
            self.pick_points(self.seed // len(EVENTS) * CALAMITIES["full_at_point"] + nth)

    def pick_points(self, number):
        """The points of the round that is the number-th with this calamity."""
        self.next_point = number * POINTS_EACH % len(POINTS)
        points = [POINTS[(self.next_point + n) % len(POINTS)] for n in range(3)]
        if any(point in UNIQUE for point in points):
            self.layout.unique = self.layout.unique or "UNIQUE"
        for point in POINTS:
            self.torture.tally(FULL_AT, point, "seen by the process", 0)

    def pick_settings(self, rng):
        settings = self.settings
        for names, error in SETTINGS:
            if rng.random() > SHARE:
                continue
            for name, values in names.items():
                settings[name] = rng.choice(values or self.offered(name))
            if error:
                self.always.append(error)
        for name, (version, values) in IN_TURN.items():
            if self.torture.version >= version:
                settings[name] = in_turn(name, values or self.offered(name), self.seed)
        if self.calamity == "locks":
            settings["max_locks_per_transaction"] = 10
        if "maintenance_work_mem" in settings and self.torture.version >= 17:
            settings["maintenance_work_mem"] = "'64kB'"
        if "max_files_per_process" in settings:
            if settings.get("io_method") == "io_uring":     # a file per process
                del settings["max_files_per_process"]
            else:
                self.server.files = FILES
        if settings.get("debug_io_direct", "''") != "''" and not self.direct():
            self.torture.lack("direct I/O")
            del settings["debug_io_direct"]
        if self.calamity == "full_wal":     # checkpoints would make room
            settings.pop("max_wal_size", None)
        if self.calamity == "faulty":
            settings.update(fsync="on", data_sync_retry=rng.choice(("on", "off")))
        if self.server.disk and rng.random() < 0.5:
            settings["temp_tablespaces"] = "small"

    def offered(self, name):
        connection = self.server.connect()
        values = connection.query("SELECT unnest(enumvals) FROM pg_settings"
                                  f" WHERE name = '{name}'").rows
        connection.close()
        return sorted(row[0] for row in values)

    def direct(self):
        try:
            os.close(os.open(os.path.join(self.server.directory, "direct"),
                             os.O_RDWR | os.O_CREAT | os.O_DIRECT))
        except OSError:
            return False
        return True

    def configure(self):
        server = self.server
        if server.disk:
            connection = server.connect()
            connection.query(f"CREATE TABLESPACE small LOCATION '{server.space}'")
            connection.close()
        server.stop()
        server.configure(self.settings)
        try:
            server.start()
        except ServerFailed:
            if self.settings.get("io_method") != "io_uring":
                raise
            self.torture.lack("io_uring")
            self.settings["io_method"] = "worker"
            server.configure(self.settings)
            server.start()
        for name, value in self.settings.items():
            self.count(f"{name} = {value}")
        server.panics = {"full_wal": WAL_PANIC, "faulty": FLUSH_PANIC}.get(
            self.calamity)
        self.sometimes = {"locks": [NO_LOCKS], "full": [NO_ROOM, NO_CHECKPOINT],
                          "full_at_point": [NO_ROOM, NO_CHECKPOINT],
                          "full_wal": [NO_ROOM, NO_CHECKPOINT],
                          "faulty": [BAD_DISK, NO_CHECKPOINT]}.get(
                              self.calamity, [])

    # --- the work

    def run_all(self):
        self.configure()
        # At a stop point, the index needs room.
        place = self.rng.choice(("index", "both") if self.calamity == "full_at_point"
                                else ("table", "index", "both"))
        small, usual = ("small" if self.server.disk else "''"), "''"
        self.insist(
            f"SET default_tablespace = {usual if place == 'index' else small}",
            self.layout.create_table(),
            f"SET default_tablespace = {usual if place == 'table' else small}",
            self.layout.create_index(LSM))
        limits = self.layout.limits
        self.clients = [self.client(number, limits)
                        for number in range(1, self.options.clients + 1)]
        for _ in range(self.rng.randint(2, 3)):
            self.period()
            self.verify_all()
        self.insist(f"DROP TABLE {TABLE}")
        self.server.stop()
        self.raise_alarms()
