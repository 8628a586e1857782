#!/usr/bin/python3
"""Measures small loads into distributed tables: the CPU time, the WAL and the time of a transaction.

    measure.py PG_CONFIG FOLDER [--rows N] [--loads N] [--shared-buffers SIZE] [--memory MB] [--connections N]

A table with 32 shards on two workers gets N rows (default: 1 million), and then loads of 1000 rows each, so each shard
gets about 31 rows of a load. The index is on a random column: none, a B-tree, and lsm with several values of
pg_lsm.debug_batch_min_entries. With --memory, each worker may use only so much memory (needs root). Prints a line for
each, with the CPU time of the workers and of all servers.
"""

import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TREE, "test", "oracle"), os.path.join(TREE, "bench")]

from cluster import Cluster
from suite.cgroup import ControlGroup

SHARDS = 32
LOAD = 1000
LIMITS = (48, 24, 12, 8)
SETTINGS = {"enable_seqscan": "on", "max_wal_size": "'4GB'", "checkpoint_timeout": "'1h'",
            "pg_lsm.debug_merge_fanout": "16", "pg_lsm.debug_segment_size": "0", "pg_lsm.idle_delay": "'10s'",
            "pg_lsm.debug_batch_min_entries": "48"}
WAYS = {
    "COPY": "COPY t FROM '{folder}/load{number}'",
    "INSERT SELECT": "INSERT INTO t SELECT id, k, f FROM staged",
}
FORMAT = "%-8s %-14s" + " %10s" * 5
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(node):
    """The CPU time of a server in seconds: of the postmaster, the processes that have ended, and those that run."""
    total = 0
    for pid in [node.process.pid] + node.children():
        try:
            with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
                times = file.read().rsplit(")", 1)[1].split()[11:15]
        except OSError:
            continue
        total += sum(int(t) for t in times)
    return total / TICKS


def wal_of(nodes):
    return sum(int(node.sql("SELECT pg_current_wal_insert_lsn() - '0/0'")[0][0]) for node in nodes)


class Measurement:
    def __init__(self, options):
        self.options = options
        self.cluster = Cluster(options.pg_config, options.folder)
        self.groups = [ControlGroup(options.memory, required=True) for _ in self.cluster.workers]

    def set_everywhere(self, name, value):
        for node in self.cluster.nodes:
            node.sql("ALTER SYSTEM SET %s = %s" % (name, value))
            node.sql("SELECT pg_reload_conf()")

    def prepare(self):
        for node in self.cluster.nodes:
            node.extra = {**SETTINGS, "shared_buffers": "'%s'" % self.options.shared_buffers}
        self.cluster.create()
        for node, group in zip(self.cluster.workers, self.groups):
            for pid in [node.process.pid] + node.children():
                group.add(pid)

    def end(self):
        self.cluster.destroy()
        for group in self.groups:
            group.remove()

    def make_table(self, method):
        session = self.cluster.coordinator.connect(timeout=600)
        session.query("DROP TABLE IF EXISTS t, staged")
        session.query("CREATE TABLE t (id bigint, k int, f char(10))")
        session.query("CREATE TABLE staged (LIKE t)")
        session.query("SELECT create_distributed_table('t', 'id', shard_count := %d, colocate_with := 'none')" % SHARDS)
        session.query("SELECT create_distributed_table('staged', 'id', colocate_with := 't')")
        session.query("SELECT setseed(0.5)")
        random = "SELECT i, (random() * 2e9)::int, 'x' FROM generate_series(%d, %d) i"
        session.query("INSERT INTO t " + random % (1, self.options.rows))
        session.query("INSERT INTO staged " + random % (1, LOAD))
        if method != "none":
            session.query("CREATE INDEX t_k ON t USING %s (k)" % method)
        for number in range(self.options.loads):
            first = self.options.rows + number * LOAD
            session.query("COPY (%s) TO '%s/load%d'" % (random % (first + 1, first + LOAD), self.options.folder, number))
        session.close()
        for node in self.cluster.nodes:
            node.sql("CHECKPOINT")

    def measure(self, name, way):
        workers = self.cluster.workers
        session = self.cluster.coordinator.connect(timeout=600)
        session.query("SET citus.max_cached_conns_per_worker = %d" % self.options.connections)
        session.query(WAYS[way].format(folder=self.options.folder, number=0))     # connects
        cpu = [cpu_of(node) for node in self.cluster.nodes]
        wal, start = wal_of(workers), time.monotonic()
        for number in range(self.options.loads):
            session.query(WAYS[way].format(folder=self.options.folder, number=number))
        seconds = time.monotonic() - start
        cpu = [cpu_of(node) - before for node, before in zip(self.cluster.nodes, cpu)]
        wal = wal_of(workers) - wal
        size = sum(int(row[0]) for row in session.query(
            "SELECT result FROM run_command_on_shards('t', $$SELECT pg_indexes_size('%s')$$)").rows)
        session.close()
        rows = self.options.loads * LOAD
        print(FORMAT % (name, way, *("%.1f" % figure for figure in (
            1e6 * sum(cpu[1:]) / rows, 1e6 * sum(cpu) / rows, wal / rows, 1000 * seconds / self.options.loads,
            size / 1e6))), flush=True)

    def run(self):
        print(FORMAT % ("index", "load", "us/row", "us/row", "WAL/row", "ms", "index"))
        print(FORMAT % ("", "", "workers", "all", "bytes", "/1000 rows", "MB"), flush=True)
        for method in self.options.methods:
            kind, _, limit = method.partition("-")
            if limit:
                self.set_everywhere("pg_lsm.debug_batch_min_entries", limit)
            self.make_table(kind)
            for way in WAYS:
                self.measure(method, way)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pg_config")
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--loads", type=int, default=200)
    parser.add_argument("--connections", type=int, default=SHARDS // 2, metavar="N",
                        help="citus.max_cached_conns_per_worker")
    parser.add_argument("--shared-buffers", default="32MB", metavar="SIZE")
    parser.add_argument("--memory", type=int, default=0, metavar="MB")
    parser.add_argument("--methods", type=lambda text: text.split(","),
                        default=["none", "btree"] + ["lsm-%d" % limit for limit in LIMITS])
    options = parser.parse_args()
    os.environ["HOME"] = options.folder      # libpq looks for certificates there
    measurement = Measurement(options)
    try:
        measurement.prepare()
        measurement.run()
    finally:
        measurement.end()


if __name__ == "__main__":
    main()
