"""A memory control group, of version 1 or 2, in which the server runs, so that its page cache counts as well."""

import os
import sys
import tempfile
import time

from . import BenchError


class ControlGroup:
    """Does nothing without a limit (0), or if a group cannot be made and `required` is not set.

    `limit_mb` is the limit in force. `note` describes the group, or why there is none.
    """

    def __init__(self, limit_mb, required=False):
        self.path = None
        self.limit_mb = limit_mb
        self.note = "no limit requested"
        if limit_mb == 0:
            return
        try:
            self._make(limit_mb << 20)
            self.note = "memory control group, version %d, %d MB" % (self.version, limit_mb)
        except OSError as error:
            self.remove()
            self.limit_mb = 0
            self.note = "none: no right to make a memory control group (%s)" % error
            if required:
                raise BenchError("could not make a memory control group: %s\n"
                                 "Run this as root, or without the limit (--memory 0)." % error)

    def set_share(self, share):
        """Allows a share of the memory, or all of it again. No process must be in the group."""
        if self.path is None:
            return
        full, limit = str(self.limit_mb << 20), str(int((self.limit_mb << 20) * share))
        if self.version == 2:
            self._write("memory.max", limit)
            return
        # Memory must never be allowed more than memory and swap together.
        memory, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
        for name, value in ((both, full), (memory, full), (memory, limit), (both, limit)):
            if os.path.exists(os.path.join(self.path, name)):
                self._write(name, value)

    def _make(self, limit):
        # Not the process id, because a chroot has its own process ids.
        prefix = "pg_lsm_bench_"
        if os.path.isdir("/sys/fs/cgroup/memory"):
            self.version = 1
            self.path = path = tempfile.mkdtemp(prefix=prefix, dir="/sys/fs/cgroup/memory")
            self._write("memory.limit_in_bytes", str(limit))
            if os.path.exists(os.path.join(path, "memory.memsw.limit_in_bytes")):
                self._write("memory.memsw.limit_in_bytes", str(limit))
        else:
            self.version = 2
            root = "/sys/fs/cgroup"
            with open(os.path.join(root, "cgroup.subtree_control"), "w") as control:
                control.write("+memory")
            self.path = path = tempfile.mkdtemp(prefix=prefix, dir=root)
            self._write("memory.max", str(limit))
            if os.path.exists(os.path.join(path, "memory.swap.max")):
                self._write("memory.swap.max", "0")

    def _write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(value)

    def wrap(self, command):
        """The command, to be run within the group."""
        if self.path is None:
            return command
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(self.path, "cgroup.procs")] + command

    def add(self, pid):
        """Moves a running process into the group."""
        if self.path is not None:
            self._write("cgroup.procs", str(pid))

    def remove(self):
        """Waits briefly for processes that are just ending."""
        for attempt in range(20):
            if self.path is None:
                return
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError as error:
                if attempt == 19:
                    print("could not remove %s: %s" % (self.path, error), file=sys.stderr)
                time.sleep(0.1)
