"""A throw-away PostgreSQL server with pg_lsm preloaded."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

from pgwire import Connection, ConnectionLost, SLOWNESS

SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "'4MB'",          # small: pages get evicted and re-read
    "fsync": "off",
    "autovacuum": "off",                # the seed decides when to VACUUM
    "max_prepared_transactions": "10",
    "max_connections": "40",
    "max_wal_size": "'128MB'",
    "wal_level": "replica",
    "log_checkpoints": "off",
    "lc_messages": "'C'",
    "timezone": "'UTC'",
}

# Patterns that must never appear in the server's log, whatever the test did.
# (Tests kill by signal 9.)
ALARMS = re.compile(r"PANIC:|TRAP:|was terminated by signal (?!9\b)|"
                    r"inconsistent page found|invalid page in block")

ORPHAN = re.compile(r"\[(\d+)\].* postmaster exited during a parallel transaction")
ORPHAN_TRAP = re.compile(r"TRAP:.*!IsTransactionOrTransactionBlock\(\).*PID: (\d+)")


class ServerFailed(Exception):
    """The server did not start, or its log has an alarming message."""


class Server:
    def __init__(self, pg_config="pg_config", preload=True, directory=None):
        self.bindir = subprocess.check_output(
            [pg_config, "--bindir"], text=True).strip()
        self.directory = directory or tempfile.mkdtemp(prefix="pg_lsm_oracle_")
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "server.log")
        self.preload = preload
        self.account = self._account()
        self.log_read = 0
        self.process = None
        os.chmod(self.directory, 0o755)
        if self.account:
            os.chown(self.directory, self.account.pw_uid, self.account.pw_gid)

    @staticmethod
    def _account():
        """PostgreSQL refuses to run as root. Find a user who may run it."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        raise ServerFailed("run as root, but there is no user for the server")

    def _options(self):
        """How to start a program of the server."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PG")}
        environment.update(LC_ALL="C", TZ="UTC")
        options = {"stdin": subprocess.DEVNULL, "cwd": self.directory,
                   "env": environment}
        if self.account:
            options.update(user=self.account.pw_uid,
                           group=self.account.pw_gid, extra_groups=[])
        return options

    def _run(self, *command, check=True):
        with open(os.path.join(self.directory, "commands.log"), "ab") as out:
            done = subprocess.run(
                [os.path.join(self.bindir, command[0]), *command[1:]],
                stdout=out, stderr=out, check=False, **self._options())
        if check and done.returncode != 0:
            raise ServerFailed(f"{command[0]} failed\n{self.log_tail()}")
        return done.returncode

    def create(self, *options):
        """Make and start the server. Options of initdb replace ours."""
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust",
                  "--no-sync", "--encoding=UTF8", "--locale=C",
                  *(options or ("--data-checksums",)))
        self.configure({})
        self.start()

    def configure(self, extra):
        """Write the settings; takes effect at the next start."""
        settings = dict(SETTINGS, unix_socket_directories=f"'{self.directory}'")
        if self.preload:
            settings["shared_preload_libraries"] = "'pg_lsm'"
            # Workers have the server's settings: make them busy.
            settings["pg_lsm.idle_delay"] = "'50ms'"
            settings["pg_lsm.debug_merge_fanout"] = "3"
            settings["pg_lsm.debug_segment_size"] = "3"
        settings.update(extra)
        path = os.path.join(self.data, "postgresql.auto.conf")
        with open(path, "w", encoding="ascii") as out:
            for name, value in settings.items():
                out.write(f"{name} = {value}\n")

    def start(self):
        """Start the server as our child, and wait until it accepts
        connections."""
        self._launch()
        self.wait_ready().close()

    def _launch(self, **environment):
        options = self._options()
        options["env"].update(environment)
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [os.path.join(self.bindir, "postgres"), "-D", self.data],
                stdout=out, stderr=out, **options)

    def stop(self, mode="fast"):
        if self.process is None:
            return
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-W", "stop",
                  check=False)
        try:
            self.process.wait(120 * SLOWNESS)
        except subprocess.TimeoutExpired as error:
            raise ServerFailed("server did not stop\n"
                               + self.log_tail()) from error
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None

    def children(self):
        """The processes of this server, by the postmaster's id."""
        parent = self.process.pid
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry))
        return found

    def kill(self):
        """End all processes of the server at once, like a power failure."""
        self.process.send_signal(signal.SIGSTOP)    # it must not start more processes
        victims = self.children()
        self.process.kill()
        self.process.wait()
        self.process = None
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 30 * SLOWNESS
        while any(_alive(pid) for pid in victims):
            if time.monotonic() > deadline:
                raise ServerFailed("server processes survive SIGKILL")
            time.sleep(0.02)

    def connect(self, **options):
        return Connection(self.directory, **options)

    def wait_ready(self, seconds=120):
        """A connection, as soon as the server accepts one again."""
        deadline = time.monotonic() + seconds * SLOWNESS
        while True:
            try:
                return self.connect()
            except ConnectionLost as error:
                if (self.process.poll() is not None
                        or time.monotonic() > deadline):
                    raise ServerFailed(f"server does not come back: {error}\n"
                                       + self.log_tail()) from error
                time.sleep(0.05)

    def log_tail(self, lines=8):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError:
            return ""

    def new_lines(self):
        """Lines of the log since the last call."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                file.seek(self.log_read)
                text = file.read()
                self.log_read = file.tell()
        except OSError:
            return []
        return text.splitlines()

    def alarms(self):
        """Alarming lines in the log since the last call.

        An assertion of PostgreSQL's own is no alarm. It fails if the postmaster
        is gone and the leader of a parallel VACUUM leaves a second time while
        it aborts its transaction.
        """
        lines = self.new_lines()
        orphans = {found.group(1) for found in map(ORPHAN.search, lines) if found}
        alarms = []
        for line in lines:
            trap = ORPHAN_TRAP.search(line)
            if ALARMS.search(line) and not (trap and trap.group(1) in orphans):
                alarms.append(line)
        return alarms

    def destroy(self):
        try:
            self.stop("immediate")
        except ServerFailed:
            pass
        shutil.rmtree(self.directory, ignore_errors=True)


def _alive(pid):
    """Is the process running, and not a zombie that its parent has yet to collect?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
