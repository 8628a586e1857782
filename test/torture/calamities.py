"""Calamities that befall a server while clients work: it dies, or its memory,
its locks or its disk are gone, or the disk fails."""

import re
import time

from clients import SESSION
from compare import Statistics
from kills import POINTS, TortureRound
from machine import DEATH
from pgwire import ConnectionLost, PgError
from server import ServerFailed

FULL_AT = "disk full at"
HOG = ("SELECT length(string_agg(repeat('x', 1000), ''))"
       " FROM generate_series(1, 400000)")
MESSAGE = "SELECT pg_logical_emit_message(false, 'torture', repeat('x', 100000))"
WAITING = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
# The errors with SQLSTATE 53100, and the processes that raised them.
DISK_FULL = re.compile(r"\[(\d+)\] (?:ERROR|FATAL|PANIC):.*(?:No space left on device|wrote only)")


class CalamityRound(TortureRound):
    """A round of clients, with the calamity that self.calamity names."""

    verifying = SESSION + "; SET temp_file_limit = -1; SET work_mem = '4MB'"

    def __init__(self, torture, seed):
        self.torture = torture
        self.seed = seed
        self.servers = []
        self.log = None
        self.settings = {}
        self.calamity = ""
        self.always = []            # legal errors
        self.sometimes = []         # those of the calamity
        self.calm = True            # no calamity
        self.deadly = False         # connections may be lost
        self.done = []
        self.next_point = 0         # a place in POINTS

    def begin(self, server, options):
        """Once there is a server."""
        super().__init__(server, self.seed, options, Statistics(), crash=True)

    def count(self, what, n=1):
        self.torture.count(f"small: {what}", n)

    def legal(self, error):
        text = str(error)
        for code, pattern in self.always + (self.sometimes if not self.calm
                                            else []):
            if text.startswith(code) and re.search(pattern, text):
                self.count(f"errors: {code} {pattern.split('|')[0]}".strip())
                return True
        return False

    def insist(self, *statements):
        """Run statements that may fail, but not for ever."""
        connection = self.server.wait_ready()
        connection.log = self.log.session(0)
        for statement in statements:
            self.insist_on(connection, statement)
        connection.close()

    def insist_on(self, connection, statement):
        for attempt in range(100):
            try:
                return connection.query(statement)
            except PgError as error:
                if attempt == 99 or not self.legal(error):
                    raise
                time.sleep(0.05)

    def guard(self, worker):
        try:
            worker.work()
        except (ConnectionLost, PgError) as error:
            if (self.deadly and isinstance(error, ConnectionLost)
                    or self.legal(error)):
                return
            self.failures.append(error)
            self.stopping.set()
        except Exception as error:
            self.failures.append(error)
            self.stopping.set()

    def pick_point(self):
        """Take the points in turn. (Recovery, which alone reaches redo, takes no advisory lock. See die_full.)"""
        if self.calamity != "full_at_point":
            return ""
        point = POINTS[self.next_point % len(POINTS)]
        self.next_point += 1
        return point

    def verify_all(self):
        self.calm = True
        for attempt in range(30):
            try:
                super().verify_all()
                break
            except (PgError, ConnectionLost) as error:
                if attempt == 29 or not self.legal(error):
                    raise
                time.sleep(0.1)
        self.deadly = False
        self.count("verifications")
        self.raise_alarms()

    # --- calamities

    def kill(self, threads):
        self.calm = False
        self.log.lines.append(f"-- {self.calamity}")
        self.server.news()
        getattr(self, self.calamity)(threads)

    def pause(self, least, most):
        """Let the clients work."""
        self.stopping.wait(self.rng.uniform(least, most))

    def end(self, threads):
        """The server died: wait for those who knew the old one."""
        self.stopping.set()
        for thread in threads:
            thread.join(60)
        self.server.revive()

    def death(self, threads):
        self.deadly = True
        super().kill(threads)

    def locks(self, _):
        """Nearly all of the lock table belongs to somebody else."""
        hog = self.server.wait_ready()
        try:
            hog.query("SELECT pg_advisory_lock(i) FROM generate_series(1, 1000000) i")
        except PgError as error:
            if not self.legal(error):
                raise
        spare = self.rng.randint(0, 60)
        self.done.append(f"{spare} locks left")
        hog.query("SELECT count(pg_advisory_unlock(i))"
                  f" FROM generate_series(1, {spare}) i")
        self.pause(1, 3)
        hog.query("SELECT pg_advisory_unlock_all()")
        hog.close()
        self.pause(0.3, 0.6)

    def memory(self, threads):
        """The kernel kills, first a process that we choose."""
        self.deadly = True
        server = self.server
        hog = server.wait_ready()
        victims = {pid: server.command_of(pid) for pid in server.children()}
        ours = [pid for pid in victims if "pg_lsm" in victims[pid]]
        victim = self.rng.choice(ours if ours and self.rng.random() < 0.5
                                 else list(victims))
        try:
            with open(f"/proc/{victim}/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")
        except OSError:
            pass                    # it has ended
        server.group.squeeze(self.rng.choice((0, 1 << 18, 1 << 20, 1 << 22)))
        self.done.append(f"no memory for {victims[victim]}")
        try:
            hog.start(HOG)
        except ConnectionLost:
            pass
        if not self.count_killed(server.wait_for(DEATH, 5)):
            self.torture.tally("memory: the kernel killed", "nobody", "cases")
        if self.rng.random() < 0.4:
            time.sleep(self.rng.uniform(0.3, 1.5))      # also while it recovers
            self.count_killed(server.wait_for(DEATH, 0.1))
        server.group.limit(None)
        self.end(threads)

    def count_killed(self, death):
        if death:
            self.torture.tally("memory: the kernel killed", death.group(1).strip(), "cases")
        return death

    def full(self, threads):
        room = self.rng.choice((0, 0, 8192, 65536, 1 << 20))
        self.done.append(f"room for {room} bytes")
        self.server.disk.fill(room)
        self.pause(1, 3)
        if self.rng.random() < 0.3:
            self.die_full(threads)
        else:
            self.server.disk.give()
            self.pause(0.3, 1)

    def die_full(self, threads):
        """The server may need room to recover."""
        self.deadly = True
        self.done.append("killed without room")
        self.server.kill()
        self.stopping.set()
        try:
            self.server.start()
            self.count("recoveries on a full disk")
        except ServerFailed:
            if self.server.running() or not self.server.wait_for(
                    "FATAL:  .*No space left on device|FATAL: .*wrote only", 0.1):
                raise
            self.count("recoveries that wait for room")
        self.server.disk.give()
        self.end(threads)

    def full_at_point(self, threads):
        """The disk is full while processes are at a stop point, and when they go on."""
        point = self.point
        room = self.rng.choice((0, 0, 0, 8192, 65536))
        self.done.append(f"at {point}: room for {room} bytes")
        holder = self.server.wait_ready()
        for sql in (f"SELECT pg_advisory_lock(hashtext('{point}'))",
                    f"ALTER SYSTEM SET pg_lsm.debug_stop_at = '{point}'",
                    "SELECT pg_reload_conf()"):
            self.insist_on(holder, sql)
        deadline = time.monotonic() + 3
        held = []
        while not held and time.monotonic() < deadline and not self.stopping.is_set():
            held = [row[0] for row in self.insist_on(holder, WAITING).rows]
            time.sleep(0.02)
        self.server.news()
        self.server.disk.fill(room)
        self.pause(0, 0.3)
        for sql in ("ALTER SYSTEM RESET pg_lsm.debug_stop_at", "SELECT pg_reload_conf()"):
            self.insist_on(holder, sql)
        held += [row[0] for row in self.insist_on(holder, WAITING).rows]
        deadly = self.rng.random() < 0.33
        if not deadly or self.rng.random() < 0.5:
            self.insist_on(holder, "SELECT pg_advisory_unlock_all()")
            self.tally_full(point, held)
        if deadly:
            self.torture.tally(FULL_AT, point, "killed", 1 if held else 0)
            self.die_full(threads)
        else:
            self.server.disk.give()
            self.pause(0.3, 1)
        holder.close()

    def tally_full(self, point, held):
        """Wait until a process that was held finds the disk full, and count the point.

        After some points, such as check-*, the process writes nothing before its next statement. Then only others
        may find the disk full.
        """
        deadline = time.monotonic() + self.rng.uniform(1, 2.5)
        seen = set()
        while not seen.intersection(held) and time.monotonic() < deadline and not self.stopping.is_set():
            time.sleep(0.05)
            seen.update(DISK_FULL.findall(self.server.news()))
        self.torture.tally(FULL_AT, point, "not reached" if not held
                           else "seen by the process" if seen.intersection(held)
                           else "by others only" if seen else "not seen")

    def full_wal(self, threads):
        self.deadly = True
        self.done.append("no room for WAL")
        writer = self.server.wait_ready()
        self.server.disk.fill(self.rng.choice((0, 1 << 20, 3 << 20)))
        try:
            for _ in range(600):
                writer.query(MESSAGE)
        except ConnectionLost:
            pass
        except PgError as error:
            if not self.legal(error):
                raise
        panic = self.server.wait_for("PANIC", 2)
        self.count("WAL full, PANIC" if panic else "WAL full, but no PANIC")
        if self.rng.random() < 0.5:
            time.sleep(self.rng.uniform(0.3, 1.5))      # the recovery has no room
        self.server.disk.give()
        if panic:
            self.end(threads)

    def faulty(self, threads):
        kind = self.rng.choice(("reads", "writes", "flushes"))
        one_in = self.rng.choice((3, 20, 100))
        self.done.append(f"one in {one_in} {kind} fails")
        self.deadly = (kind == "flushes"
                       and self.settings["data_sync_retry"] == "off")
        self.server.disk.fail(**{kind: one_in})
        self.pause(1, 3)
        self.server.disk.fail()
        self.count(f"disk with bad {kind}")
        if self.deadly and self.server.wait_for("PANIC", 0.3):
            self.count("flush failed, PANIC")
            self.end(threads)
        else:
            self.pause(0.3, 0.6)
