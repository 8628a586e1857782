"""Measures loads of random rows without an index, with lsm and with btree. Run it through bars.sh.

For each method: a fresh cluster, PostgreSQL's own settings but for shared_buffers, the server in a memory control group
(its page cache counts), one client outside of it that COPYs rows of t(k int4, f char(10)) with random k, so many in a
transaction. The figures: rows a second on average and over the last tenth of the rows, the longest transaction, and
bytes of index and of WAL a row. Then the sizes of small indexes.
"""

import argparse
import csv
import os
import subprocess
import sys

METHODS = ("none", "lsm", "btree")
SMALL_ROWS = 1000


class BenchError(Exception):
    pass


# --- the memory control group ------------------------------------------------


class ControlGroup:
    """A memory control group, of version 1 or 2, that processes can be started in."""

    def __init__(self, limit_mb):
        self.path = None
        if limit_mb == 0:
            return
        name = "pg_lsm_bars_%d" % os.getpid()
        limit = str(limit_mb << 20)
        try:
            if os.path.isdir("/sys/fs/cgroup/memory"):
                path = os.path.join("/sys/fs/cgroup/memory", name)
                os.mkdir(path)
                self.path = path
                self.write("memory.limit_in_bytes", limit)
                if os.path.exists(os.path.join(path, "memory.memsw.limit_in_bytes")):
                    self.write("memory.memsw.limit_in_bytes", limit)
            else:
                root = "/sys/fs/cgroup"
                with open(os.path.join(root, "cgroup.subtree_control"), "w") as control:
                    control.write("+memory")
                path = os.path.join(root, name)
                os.mkdir(path)
                self.path = path
                self.write("memory.max", limit)
                if os.path.exists(os.path.join(path, "memory.swap.max")):
                    self.write("memory.swap.max", "0")
        except OSError as error:
            self.remove()
            raise BenchError("could not make a memory control group: %s\n"
                             "Run this as root, or without the limit (--memory 0)." % error)

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(value)

    def wrap(self, command):
        """The command, to be run within the group."""
        if self.path is None:
            return command
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(self.path, "cgroup.procs")] + command

    def remove(self):
        if self.path is not None:
            try:
                os.rmdir(self.path)
            except OSError as error:
                print("could not remove %s: %s" % (self.path, error), file=sys.stderr)
            self.path = None


# --- the server --------------------------------------------------------------


class Server:
    """A fresh cluster. To be used in a `with` statement, which starts and stops it."""

    def __init__(self, options, group):
        self.options, self.group = options, group
        self.data = os.path.join(options.work, "data")
        self.sockets = os.path.join(options.work, "sock")
        self.conninfo = "host=%s port=54330 user=postgres dbname=postgres" % self.sockets

    def command(self, program, *arguments):
        command = [os.path.join(self.options.bindir, program)] + list(arguments)
        if os.getuid() == 0:
            command = ["runuser", "-u", self.options.user, "--"] + command
        return command

    def call(self, command):
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                cwd=self.options.work)
        if result.returncode != 0:
            raise BenchError("failed: %s\n%s" % (" ".join(command), result.stdout.decode()))

    def __enter__(self):
        if not os.path.isdir(self.sockets):
            subprocess.run(["install", "-d", "-o", self.options.user, self.sockets], check=True)
        self.call(self.command("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"))
        settings = {"shared_buffers": self.options.shared_buffers, "listen_addresses": "", "port": "54330",
                    "unix_socket_directories": self.sockets, "shared_preload_libraries": "pg_lsm"}
        settings.update(setting.split("=", 1) for setting in self.options.set)
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            for name, value in settings.items():
                conf.write("%s = '%s'\n" % (name, value))
        # The log goes to a file: a pipe would keep us waiting for the server.
        self.call(self.group.wrap(self.command(
            "pg_ctl", "-D", self.data, "-l", os.path.join(self.data, "log"), "-w", "start")))
        return self

    def __exit__(self, *_):
        try:
            self.call(self.command("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop"))
        finally:
            subprocess.run(["rm", "-rf", self.data])

    def query(self, sql):
        result = subprocess.run([os.path.join(self.options.bindir, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1",
                                 "-d", self.conninfo, "-f", "-"], input=sql.encode(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        if result.returncode != 0:
            raise BenchError("%s\n%s" % (result.stderr.decode().strip(), sql))
        return result.stdout.decode().strip()


# --- the load ----------------------------------------------------------------


class Samples:
    """What the load program said: rows, seconds since the start, longest transaction since the last sample."""

    def __init__(self):
        self.rows, self.seconds, self.worst_ms = [0], [0.0], [0.0]

    def add(self, line):
        rows, seconds, worst_ms = line.split(",")
        self.rows.append(int(rows))
        self.seconds.append(float(seconds))
        self.worst_ms.append(float(worst_ms))

    def time_at(self, rows):
        """Seconds when so many rows were there, interpolated."""
        for i in range(1, len(self.rows)):
            if self.rows[i] >= rows:
                share = (rows - self.rows[i - 1]) / (self.rows[i] - self.rows[i - 1])
                return self.seconds[i - 1] + share * (self.seconds[i] - self.seconds[i - 1])
        raise BenchError("no sample at %d rows" % rows)

    def rate(self, begin, end):
        return (end - begin) / (self.time_at(end) - self.time_at(begin))

    @property
    def total(self):
        return self.rows[-1]

    def average(self):
        return self.rate(0, self.total)

    def last_tenth(self):
        return self.rate(self.total * 0.9, self.total)


def load(server, options, method, rows, limit_s):
    """Loads a table and returns (samples, index bytes, WAL bytes)."""
    server.query("CREATE EXTENSION IF NOT EXISTS pg_lsm; CREATE TABLE t (k int4, f char(10));")
    if method != "none":
        server.query("CREATE INDEX t_k ON t USING %s (k);" % method)
    before = server.query("CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
    command = [options.load, "-b", str(options.batch), "-s", str(options.seed), "-e", str(max(rows // 200, options.batch)),
               "-t", str(limit_s), server.conninfo, "t", str(rows)]
    if options.binary:
        command.insert(1, "-x")
    samples = Samples()
    client = subprocess.Popen(command, stdout=subprocess.PIPE)
    shown = 0
    for line in client.stdout:
        samples.add(line.decode())
        if samples.total - shown >= rows / 20 or samples.total == rows:
            print("  %-6s %12s rows %8.1f s %12s rows/s" % (
                method, format(samples.total, ","), samples.seconds[-1],
                format(int(samples.rate(shown, samples.total)), ",")), flush=True)
            shown = samples.total
    if client.wait() != 0:
        raise BenchError("the load of %s failed; the end of the server log:\n%s" % (method, log_tail(server)))
    wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % before))
    size = 0
    if method != "none":
        size = int(server.query("SELECT pg_relation_size('t_k');"))
        if options.check and method == "lsm":
            server.query("SELECT lsm_check('t_k', true);")
            print("  lsm_check found nothing wrong", flush=True)
    return samples, size, wal


def log_tail(server):
    with open(os.path.join(server.data, "log"), errors="replace") as log:
        return "".join(log.readlines()[-15:])


def small_sizes(server):
    """Sizes of indexes on 1000 random rows: (method, made before the rows, made after them)."""
    sizes = []
    for method in METHODS[1:]:
        sizes.append((method,) + tuple(int(v) for v in server.query("""
            CREATE TEMP TABLE keys AS SELECT (hashint4(g)) AS k FROM generate_series(1, {n}) g;
            CREATE TABLE before_{m} (k int4, f char(10)); CREATE INDEX before_{m}_k ON before_{m} USING {m} (k);
            INSERT INTO before_{m} SELECT k, 'x' FROM keys;
            CREATE TABLE after_{m} (k int4, f char(10)); INSERT INTO after_{m} SELECT k, 'x' FROM keys;
            CREATE INDEX after_{m}_k ON after_{m} USING {m} (k);
            SELECT pg_relation_size('before_{m}_k'); SELECT pg_relation_size('after_{m}_k');
            """.format(m=method, n=SMALL_ROWS)).split()))
    return sizes


# --- the results -------------------------------------------------------------


def show(results):
    print("\n%-8s%14s%12s%16s%12s%14s%12s" % ("index", "rows", "rows/s", "rows/s, last", "worst,", "index,", "WAL,"))
    print("%-8s%14s%12s%16s%12s%14s%12s" % ("", "", "average", "tenth", "ms", "bytes/row", "bytes/row"))
    for method, (samples, size, wal) in results.items():
        print("%-8s%14s%12s%16s%12.0f%14.2f%12.1f" % (
            method, format(samples.total, ","), format(int(samples.average()), ","),
            format(int(samples.last_tenth()), ","), max(samples.worst_ms), size / samples.total, wal / samples.total))
    print()


def bars(results, sizes):
    """Yields (text, value, whether it is reached) for the bars whose measurements are there."""
    lsm = results.get("lsm")
    if lsm and "none" in results:
        value = lsm[0].average() / results["none"][0].average()
        yield "rows/s, average, of no index: %.3f, at least 0.35" % value, value >= 0.35
    if lsm and "btree" in results:
        btree = results["btree"][0]
        # Over the same rows in both: when btree was stopped early, that is before it became as slow as it would.
        end = min(btree.total, lsm[0].total)
        value = lsm[0].rate(end * 0.9, end) / btree.rate(end * 0.9, end)
        yield ("rows/s, last tenth up to %s rows, of btree: %.2f, at least 5" % (format(end, ","), value)), value >= 5
        if btree.total < lsm[0].total:
            value = lsm[0].last_tenth() / btree.last_tenth()
            yield "  (each over its own last tenth: %.2f)" % value, None
    if lsm:
        value = lsm[1] / lsm[0].total
        yield "index after the load, bytes/row: %.2f, at most 14" % value, value <= 14
    if sizes:
        for when, column in (("before", 1), ("after", 2)):
            values = {row[0]: row[column] for row in sizes}
            value = values["lsm"] / values["btree"]
            yield ("index of %d rows, made %s them: %d bytes, of btree's %d: %.2f, at most 2" % (
                SMALL_ROWS, when, values["lsm"], values["btree"], value)), value <= 2


def write_csv(path, results):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "rows", "seconds", "worst_ms", "index_bytes", "wal_bytes"])
        for method, (samples, size, wal) in results.items():
            for i in range(1, len(samples.rows)):
                last = i == len(samples.rows) - 1
                writer.writerow([method, samples.rows[i], samples.seconds[i], samples.worst_ms[i],
                                 size if last else "", int(wal) if last else ""])


def parse_options():
    parser = argparse.ArgumentParser(prog="bars.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bindir", "--load", "--work", "--user"):
        parser.add_argument(name, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=30_000_000, help="rows to load (default 30 million)")
    parser.add_argument("--btree-rows", type=int, help="rows to load with btree, which is slow (default: all)")
    parser.add_argument("--limit", type=float, default=1500, metavar="S",
                        help="stop the load of a method after S seconds (default 1500)")
    parser.add_argument("--methods", default=",".join(METHODS), help="which ones, in which order (default: all)")
    parser.add_argument("--batch", type=int, default=1000, help="rows in a transaction (default 1000)")
    parser.add_argument("--binary", action="store_true", help="COPY in binary format instead of text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", type=int, default=768, metavar="MB",
                        help="memory of the control group (default 768, 0: no limit)")
    parser.add_argument("--shared-buffers", default="384MB")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting for the server")
    parser.add_argument("--check", action="store_true", help="run lsm_check on the loaded index")
    parser.add_argument("--csv", default="bars.csv", help="file for the samples (default bars.csv)")
    options = parser.parse_args()
    options.methods = options.methods.split(",")
    if not set(options.methods) <= set(METHODS):
        parser.error("methods are %s" % ", ".join(METHODS))
    if options.rows < 20 or options.batch < 1:
        parser.error("too few rows")
    return options


def main():
    options = parse_options()
    group = None
    results, sizes = {}, []
    try:
        group = ControlGroup(options.memory)
        for method in options.methods:
            rows = min(options.btree_rows or options.rows, options.rows) if method == "btree" else options.rows
            with Server(options, group) as server:
                results[method] = load(server, options, method, rows, options.limit)
            write_csv(options.csv, results)
        if "lsm" in options.methods:
            with Server(options, group) as server:
                server.query("CREATE EXTENSION pg_lsm;")
                sizes = small_sizes(server)
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    finally:
        if group is not None:
            group.remove()
    show(results)
    missed = 0
    for text, reached in bars(results, sizes):
        print("%-7s%s" % ("" if reached is None else "ok" if reached else "MISSED", text))
        missed += reached is False
    return 1 if missed else 0


sys.exit(main())
