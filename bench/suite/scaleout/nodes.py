"""The servers: one that clients connect to, and those that have the data. Each has its own folder, port and memory."""

import contextlib
import os
import subprocess
import time

from ..cgroup import ControlGroup
from ..server import Server

FIRST_PORT = 54340


class Node(Server):
    def __init__(self, bindir, work, user, name, number, memory_mb, settings, engine):
        folder = os.path.join(work, name)
        subprocess.run(["install", "-d"] + (["-o", user] if os.getuid() == 0 else []) + [folder], check=True)
        super().__init__(bindir, folder, user, ControlGroup(memory_mb), settings)
        self.name = name
        self.template = os.path.join(work, "template")
        self.host, self.port = self.sockets, str(FIRST_PORT + number)
        self.own_settings = {"port": self.port, "unix_socket_directories": self.sockets, "cluster_name": name,
                             "shared_preload_libraries": engine.preload}
        if engine.listens:
            self.host = "127.0.0.1"
            self.own_settings["listen_addresses"] = self.host

    def _make_template(self):
        subprocess.run(["install", "-d"] + (["-o", self.user] if os.getuid() == 0 else []) + [self.sockets], check=True)
        super()._make_template()

    def start(self):
        """All nodes come from one template, so each gets its own settings here."""
        path = os.path.join(self.data, "postgresql.auto.conf")
        with open(path) as conf:
            is_new = "cluster_name" not in conf.read()
        if is_new:
            with open(path, "a") as conf:
                for name, value in self.own_settings.items():
                    conf.write("%s = '%s'\n" % (name, value))
        super().start()

    def wal_bytes(self):
        return int(self.query("SELECT pg_current_wal_insert_lsn() - '0/0';"))


class Use:
    """What some work has used: seconds, and for each server CPU seconds, bytes of WAL, and bytes read and written."""

    def __init__(self):
        self.seconds, self.cpu, self.wal, self.read, self.written = 0.0, {}, {}, {}, {}


class Site:
    """A front server and data servers. On a site of one server, they are the same."""

    def __init__(self, front, nodes):
        self.front, self.nodes = front, nodes
        self.servers = nodes if front in nodes else [front] + nodes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.stop()
            server.group.remove()

    def start(self):
        for server in self.servers:
            server.start_fresh()

    def _counters(self):
        return {server.name: (server.cpu_seconds() or 0.0, server.wal_bytes(), server.io_bytes() or (0, 0))
                for server in self.servers}

    @contextlib.contextmanager
    def used(self):
        """Yields a Use, which is filled in at the end of the block."""
        use, before, begin = Use(), self._counters(), time.monotonic()
        yield use
        use.seconds = time.monotonic() - begin
        for name, (cpu, wal, io) in self._counters().items():
            use.cpu[name] = cpu - before[name][0]
            use.wal[name] = wal - before[name][1]
            use.read[name], use.written[name] = io[0] - before[name][2][0], io[1] - before[name][2][1]
