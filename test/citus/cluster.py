"""Servers with Citus and pg_lsm: a coordinator and two workers, each with a port of its own on this machine."""

import os
import socket
import time

from pgwire import ConnectionLost, PgError
from server import Server

HOST = "127.0.0.1"
NAMES = ("coordinator", "worker1", "worker2")

# Plans must use the indexes, also on small shards. Moves of shards need logical replication, and a transaction on
# several shards needs prepared transactions.
SETTINGS = {
    "listen_addresses": "'%s'" % HOST,
    "shared_preload_libraries": "'citus, pg_lsm'",
    "wal_level": "logical",
    "shared_buffers": "'16MB'",
    "max_connections": "100",
    "max_prepared_transactions": "100",
    "max_worker_processes": "32",
    "enable_seqscan": "off",
    "jit": "off",
    "citus.node_conn_info": "'sslmode=prefer'",
    "citus.defer_shard_delete_interval": "'-1'",    # the suite cleans up itself
    "citus.recover_2pc_interval": "'-1'",
    "pg_lsm.debug_batch_min_entries": "12",         # batches on small shards
}


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Node(Server):
    extra = {}          # settings besides SETTINGS

    def __init__(self, name, pg_config, folder):
        directory = os.path.join(folder, name)
        os.mkdir(directory)
        self.name = name
        self.port = free_port()
        super().__init__(pg_config, directory=directory)

    def configure(self, extra):
        super().configure({**SETTINGS, **self.extra, "port": str(self.port), **extra})

    def connect(self, **options):
        return super().connect(port=self.port, **options)

    def sql(self, statement):
        """Runs a statement in a session of its own; returns the rows."""
        connection = self.connect()
        try:
            return connection.query(statement).rows
        finally:
            connection.close()


class Cluster:
    def __init__(self, pg_config, folder):
        self.nodes = [Node(name, pg_config, folder) for name in NAMES]
        self.coordinator = self.nodes[0]
        self.workers = self.nodes[1:]

    def create(self):
        for node in self.nodes:
            node.create()
            node.sql("CREATE EXTENSION citus")
            node.sql("CREATE EXTENSION pg_lsm")
        self.coordinator.sql("SELECT citus_set_coordinator_host('%s', %d)" % (HOST, self.coordinator.port))
        for node in self.workers:
            self.coordinator.sql("SELECT citus_add_node('%s', %d)" % (HOST, node.port))

    def destroy(self):
        for node in self.nodes:
            node.destroy()

    def alarms(self):
        return [node.name + ": " + line for node in self.nodes for line in node.alarms()]

    def settle(self, seconds=120):
        """Ends what crashes and moves have left: prepared transactions, orphaned shards, metadata to be copied."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.coordinator.sql("SELECT recover_prepared_transactions()")
                prepared = sum(int(node.sql("SELECT count(*) FROM pg_prepared_xacts")[0][0]) for node in self.nodes)
                if prepared == 0:
                    break
                problem = "%d prepared transactions remain" % prepared
            except (PgError, ConnectionLost) as error:
                problem = str(error)
            if time.monotonic() > deadline:
                raise TimeoutError(problem)
            time.sleep(0.5)
        self.coordinator.sql("CALL citus_cleanup_orphaned_resources()")
