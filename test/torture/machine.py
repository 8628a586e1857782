"""A server whose memory, disk and file descriptors a test takes away."""

import mmap
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

from server import Server, ServerFailed

HERE = os.path.dirname(os.path.abspath(__file__))
UNLIMITED = 1 << 60
DEATH = re.compile(r"([A-Za-z][A-Za-z ]*|background worker \"[^\"]*\") \(PID (\d+)\) "
                   r"was terminated by signal 9")


class Disk:
    """The library disk.c, and the numbers that it shares with us."""

    def __init__(self, directory, folder):
        self.library = os.path.join(directory, "disk.so")
        self.path = os.path.join(directory, "disk")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o",
                        self.library, os.path.join(HERE, "disk.c"), "-ldl"],
                       check=True)
        folder = os.path.realpath(folder).encode() + b"/"
        with open(self.path, "w+b") as file:
            file.write(bytes(32) + folder + bytes(1024 - len(folder)))
            file.flush()
            os.fchmod(file.fileno(), 0o666)
            self.map = mmap.mmap(file.fileno(), 0)
        self.cells = memoryview(self.map).cast("q")
        self.give()

    @staticmethod
    def possible():
        return shutil.which("cc") is not None

    def give(self):
        """The disk is large again."""
        self.cells[0] = UNLIMITED

    def fill(self, room):
        """The files may grow by so many bytes."""
        self.cells[0] = room

    def fail(self, reads=0, writes=0, flushes=0):
        """Of so many calls one fails; none for 0."""
        for place, one_in in enumerate((reads, writes, flushes), 1):
            self.cells[place] = one_in


class MemoryGroup:
    """A memory control group, of version 1 or 2.

    Root makes it in the usual place. Others need a group that root has made
    for them, with themselves in a group below it: PG_LSM_TORTURE_GROUP.
    tools/torture.sh makes such a group.
    """

    def __init__(self):
        parent = os.environ.get("PG_LSM_TORTURE_GROUP")
        if parent is None:
            parent = "/sys/fs/cgroup/memory"
            if not os.path.isdir(parent):
                parent = "/sys/fs/cgroup"
                with open(os.path.join(parent, "cgroup.subtree_control"), "w",
                          encoding="ascii") as file:
                    file.write("+memory")
        self.path = tempfile.mkdtemp(prefix="pg_lsm_torture_", dir=parent)
        old = os.path.join(self.path, "memory.limit_in_bytes")
        self.old = os.path.exists(old)
        self.file = old if self.old else os.path.join(self.path, "memory.max")
        self.members = os.path.join(self.path, "cgroup.procs")
        try:
            self.limit(None)
        except OSError:
            self.remove()
            raise

    def add(self, pid):
        with open(self.members, "w", encoding="ascii") as file:
            file.write(str(pid))

    def limit(self, size):
        text = ("-1" if self.old else "max") if size is None else str(size)
        with open(self.file, "w", encoding="ascii") as file:
            file.write(text)

    def squeeze(self, spare):
        """Allow so much more than what is in use. The page cache, which the
        kernel can drop, does not count."""
        usage = "memory.usage_in_bytes" if self.old else "memory.current"
        with open(os.path.join(self.path, usage), encoding="ascii") as file:
            used = int(file.read())
        with open(os.path.join(self.path, "memory.stat"),
                  encoding="ascii") as file:
            stat = dict(line.split() for line in file)
        used -= int(stat["inactive_file"]) + int(stat["active_file"])
        for attempt in range(50):
            try:
                self.limit(used + spare + (attempt << 20))
                return
            except OSError:         # version 1 refuses a limit that is too low
                pass

    def remove(self):
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.1)


class Machine(Server):
    def __init__(self, pg_config):
        super().__init__(pg_config)
        self.disk = None
        self.group = None
        self.files = None           # the limit of file descriptors
        self.panics = None          # a pattern of legal ones
        self.log_watched = 0
        self.space = os.path.join(self.directory, "space")
        os.mkdir(self.space)
        if self.account:
            os.chown(self.space, self.account.pw_uid, self.account.pw_gid)

    def _launch(self, **environment):
        if self.disk:
            environment.update(LD_PRELOAD=self.disk.library,
                               LSM_DISK=self.disk.path)
        if self.group:
            # The kernel should not choose the postmaster.
            environment.update(PG_OOM_ADJUST_FILE="/proc/self/oom_score_adj",
                               PG_OOM_ADJUST_VALUE="500")
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, limit[1]))
        try:
            super()._launch(**environment)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        if self.group:
            self.group.add(self.process.pid)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def revive(self, seconds=60):
        """Wait for a server that restarts itself. Start it if it has ended."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.running():
                    self.wait_ready().close()
                else:
                    self.process = None
                    self.start()
                return
            except ServerFailed:
                # Processes of a dead postmaster may need a moment to end.
                if self.running() or time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def news(self):
        """What the log has gained since the last call."""
        with open(self.log, "rb") as file:
            file.seek(self.log_watched)
            text = file.read()
        text = text[:text.rfind(b"\n") + 1]
        self.log_watched += len(text)
        return text.decode(errors="replace")

    def wait_for(self, pattern, seconds):
        """Wait for a line of the log. Return the match, or None."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            match = re.search(pattern, self.news())
            if match:
                return match
            time.sleep(0.02)
        return None

    def alarms(self):
        """A process that panics ends by signal 6."""
        return [line for line in super().alarms()
                if not self.panics
                or not re.search(self.panics + "|terminated by signal 6", line)]

    def command_of(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="latin-1") as file:
                return file.read().strip("\0 ")
        except OSError:
            return ""

    def destroy(self):
        if self.group:
            self.group.limit(None)
        super().destroy()
        if self.group:
            self.group.remove()
