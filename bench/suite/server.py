"""A server of our own: clusters are made, restarted, killed and removed.

A cluster is a copy of a template that initdb makes once. All compared systems get the same settings, including pg_lsm's
library.
"""

import os
import re
import shutil
import signal
import subprocess
import time

from . import BenchError
from .cgroup import ControlGroup

PORT = "54330"
# Settings that affect loads. The figures state them.
STATED = ("shared_buffers", "max_wal_size", "checkpoint_timeout", "full_page_writes", "wal_compression", "fsync",
          "synchronous_commit", "autovacuum", "maintenance_work_mem", "work_mem", "effective_io_concurrency",
          "max_worker_processes")


def _cpu_seconds(pid):
    """CPU time of a process and of its children that have ended."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(value) for value in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _io_bytes(pid):
    """(read, written) bytes of a process and of its children that have ended."""
    with open("/proc/%s/io" % pid) as file:
        values = dict(line.split(": ") for line in file)
    return int(values["read_bytes"]), int(values["write_bytes"])


def postgres_version(bindir):
    """As the server's program states it."""
    command = [os.path.join(bindir, "postgres"), "--version"]
    try:
        return subprocess.check_output(command).decode().strip()
    except subprocess.CalledProcessError as error:
        raise BenchError("failed: %s" % " ".join(command)) from error


class Server:
    """bindir: the server's programs. work: a folder that `user` may write to. group: a ControlGroup.

    Use it in a `with` statement around `start_fresh`. A server that still runs at the end is stopped and removed.
    """

    def __init__(self, bindir, work, user, group, settings):
        self.bindir, self.work, self.user, self.group = bindir, work, user, group
        self.template = os.path.join(work, "template")
        self.data = os.path.join(work, "data")
        self.sockets = os.path.join(work, "sock")
        self.log = os.path.join(work, "server.log")
        self.port = PORT
        self.settings = {"listen_addresses": "", "port": PORT, "unix_socket_directories": self.sockets,
                         "shared_preload_libraries": "pg_lsm", "logging_collector": "off"}
        self.settings.update(settings)
        self.running = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- programs

    def conninfo(self, database="postgres", **session_settings):
        """A connection string for libpq. The session settings apply to this connection only."""
        text = "host=%s port=%s user=postgres dbname=%s" % (self.sockets, self.port, database)
        if session_settings:
            text += " options='%s'" % " ".join("-c %s=%s" % item for item in sorted(session_settings.items()))
        return text

    def program(self, name):
        return os.path.join(self.bindir, name)

    def _as_user(self, program, *arguments):
        command = [self.program(program)] + list(arguments)
        if os.getuid() == 0:
            command = ["runuser", "-u", self.user, "--"] + command
        return command

    def _call(self, command):
        # A separate process group: an interrupt at the terminal goes to us, and we stop the server in order.
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                cwd=self.work, start_new_session=True)
        if result.returncode != 0:
            raise BenchError("failed: %s\n%s" % (" ".join(command), result.stdout.decode(errors="replace")))
        return result.stdout.decode(errors="replace")

    def version(self):
        return postgres_version(self.bindir)

    def query(self, sql, database="postgres", **session_settings):
        """Runs SQL and returns what psql prints, unaligned, without headers."""
        result = subprocess.run([self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1",
                                 "-d", self.conninfo(database, **session_settings), "-f", "-"], input=sql.encode(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode != 0:
            raise BenchError("%s\n%s" % (result.stderr.decode().strip(), sql.strip()))
        return result.stdout.decode().strip()

    def stated_settings(self):
        """{name: value} of the settings to state, and of those that differ from the server's defaults."""
        return dict(line.split("|", 1) for line in self.query(
            "SELECT name || '|' || current_setting(name) FROM pg_settings WHERE name IN (%s) OR source = "
            "'configuration file' AND name NOT IN ('unix_socket_directories', 'port', 'listen_addresses') ORDER BY 1;"
            % ", ".join("'%s'" % name for name in STATED)).splitlines())

    def timed(self, sql, before="", **session_settings):
        """Runs one statement, after others in the same session, and returns the seconds that psql says it took."""
        answer = self.query("%s\n\\timing on\n%s;" % (before, sql), **session_settings)
        return float(answer.rpartition("Time: ")[2].split(" ms")[0]) / 1000

    def log_tail(self, lines=15):
        try:
            with open(self.log, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""

    def complaints(self, lines=5):
        """The last lines of the log that report more than an error in a statement."""
        return [line for line in self.log_tail(100).splitlines()
                if any(word in line for word in ("FATAL:", "PANIC:", "TRAP:", "terminated by signal"))][-lines:]

    # --- life

    def _make_template(self):
        if os.path.isdir(self.template):
            return
        if not os.path.isdir(self.sockets):
            install = ["install", "-d", self.sockets]
            subprocess.run(install + (["-o", self.user] if os.getuid() == 0 else []), check=True)
        self._call(self._as_user("initdb", "--no-sync", "-D", self.template, "-U", "postgres", "-A", "trust",
                                 "-E", "UTF8", "--locale=C"))
        with open(os.path.join(self.template, "postgresql.conf"), "a") as conf:
            for name, value in self.settings.items():
                conf.write("%s = '%s'\n" % (name, value))

    def start_fresh(self, memory_share=1.0):
        """Stops any running server, and starts a new, empty cluster. It may have only a share of the memory, which a sort
        with the default maintenance_work_mem could exceed."""
        self.stop()
        self._make_template()
        subprocess.run(["cp", "-a", self.template, self.data], check=True)
        self.group.set_share(memory_share)
        if memory_share != 1.0:
            number, unit = re.fullmatch(r"(\d+)(\w+)", self.settings["shared_buffers"]).groups()
            with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
                conf.write("shared_buffers = '%d%s'\nmaintenance_work_mem = '%dkB'\n" % (
                    int(number) * memory_share, unit, 64 * 1024 * memory_share))
        if os.path.exists(self.log):
            os.remove(self.log)
        self.start()

    def empty(self):
        """As start_fresh, but keeps a running cluster and empties its database. Faster, and good for a smoke test."""
        if not self.running:
            self.start_fresh()
            return
        self.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")

    def start(self):
        # The log goes to a file. With a pipe we would wait for the server.
        self.running = True
        try:
            self._call(self.group.wrap(self._as_user("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "600",
                                                     "start")))
        except BenchError as error:
            raise BenchError("%s\n%s" % (error, self.log_tail()))

    def stop(self):
        """Ends the server at once and removes its data."""
        if self.running:
            try:
                self._call(self._as_user("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop"))
            except BenchError:
                # The server no longer runs, does not answer, or was interrupted while it started.
                time.sleep(0.5)
                self.kill()
            self.running = False
        shutil.rmtree(self.data, ignore_errors=True)

    def restart_cold(self, drop=True):
        """Restarts the server with empty caches. Returns whether the operating system's cache was emptied as well."""
        self._call(self._as_user("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-t", "600", "stop"))
        dropped = False
        if drop:
            os.sync()
            try:
                with open("/proc/sys/vm/drop_caches", "w") as file:
                    file.write("3\n")
                dropped = True
            except OSError:
                pass
        self.start()
        return dropped

    def _processes(self):
        """The postmaster's process id and those of its children."""
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                postmaster = int(file.readline())
            with open("/proc/%d/task/%d/children" % (postmaster, postmaster)) as file:
                return postmaster, [int(pid) for pid in file.read().split()]
        except (OSError, ValueError):
            return None, []

    def cpu_seconds(self):
        """CPU time of all processes of the server since it was started, including those that have ended. None if it
        does not run."""
        postmaster, children = self._processes()
        if postmaster is None:
            return None
        try:
            # Once the parent has collected an ended process, the time of that process counts with the parent.
            seconds = _cpu_seconds(postmaster)
        except OSError:
            return None
        for pid in children:
            try:
                seconds += _cpu_seconds(pid)
            except OSError:
                pass
        return seconds

    def io_bytes(self):
        """(read, written) bytes of all processes of the server since it was started, as cpu_seconds. Reads are those from
        the disk, writes those to files, which the kernel may write to the disk later. None if we may not know."""
        postmaster, children = self._processes()
        try:
            read, written = _io_bytes(postmaster)
        except OSError:
            return None
        for pid in children:
            try:
                more = _io_bytes(pid)
                read, written = read + more[0], written + more[1]
            except OSError:
                pass
        return read, written

    def kill(self):
        """kill -9 for all processes of the server at the same moment; the data stays."""
        postmaster, _ = self._processes()
        if postmaster is None:
            return
        try:
            os.kill(postmaster, signal.SIGSTOP)         # no new children
            _, children = self._processes()
            for pid in children + [postmaster]:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        # The next postmaster considers a dead one alive until its parent has collected it.
        deadline = time.monotonic() + 5
        while os.path.exists("/proc/%d" % postmaster) and time.monotonic() < deadline:
            time.sleep(0.005)
        if os.path.exists("/proc/%d" % postmaster):
            os.remove(os.path.join(self.data, "postmaster.pid"))

    def recover(self):
        """Starts the killed server again; returns the seconds until it answers a query."""
        begin = time.monotonic()
        start = subprocess.Popen(
            self.group.wrap(self._as_user("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "600", "start")),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.work,
            start_new_session=True)
        seconds = None
        while seconds is None:
            try:
                self.query("SELECT 1;")
                seconds = time.monotonic() - begin
            except BenchError:
                if start.poll():
                    raise BenchError("the server did not recover\n%s" % self.log_tail())
                time.sleep(0.01)
        if start.wait() != 0:
            raise BenchError("the server did not recover\n%s" % self.log_tail())
        return seconds

    # --- files

    def relation_bytes(self, paths):
        """Sizes of relations in bytes, from their files, without asking the server. Paths are those of
        pg_relation_filepath."""
        total = 0
        for path in paths:
            segment = 0
            while True:
                name = os.path.join(self.data, path) + (".%d" % segment if segment else "")
                try:
                    total += os.stat(name).st_size
                except OSError:
                    break
                segment += 1
        return total

    def temporary_bytes(self):
        """Bytes of temporary files, which sorts write."""
        total = 0
        for folder, _, names in os.walk(os.path.join(self.data, "base", "pgsql_tmp")):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_size
                except OSError:
                    pass
        return total


class Standby(Server):
    """A standby of a running server. It has its own memory, by default without a limit, as on another machine."""

    def __init__(self, primary, number=1, group=None):
        super().__init__(primary.bindir, primary.work, primary.user, group or ControlGroup(0), {})
        self.primary = primary
        self.name = "standby%d" % number
        self.data = os.path.join(self.work, self.name)
        self.log = os.path.join(self.work, self.name + ".log")
        self.port = str(int(PORT) + number)

    def start_fresh(self, settings):
        """Copies the primary and follows it. settings: {name: value}, in addition to the primary's."""
        self.stop()
        # In the group, because the pages that it writes belong to the standby's cache.
        self._call(self.group.wrap(self._as_user("pg_basebackup", "-D", self.data, "-d", self.primary.conninfo(), "-R",
                                                 "-c", "fast", "-X", "stream")))
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a") as conf:
            for name, value in dict(settings, port=self.port, cluster_name=self.name).items():
                conf.write("%s = '%s'\n" % (name, value))
        self.start()
