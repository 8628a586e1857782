"""Measures loads of random rows without an index, with lsm and with btree. Run it through bars.sh.

For each method: a fresh cluster, PostgreSQL's own settings but for shared_buffers, the server in a memory control group
(its page cache counts), one client outside of it that COPYs rows of t(k int4, f char(10)) with random k, so many in a
transaction. The figures: rows a second on average and over the last tenth of the rows, the longest transaction, and
bytes of index and of WAL a row. Then the sizes of small indexes.
"""

import argparse
import csv
import sys

from . import BenchError, catch_interrupts, stats
from .cgroup import ControlGroup
from .client import Client
from .server import Server

METHODS = ("none", "lsm", "btree")
SMALL_ROWS = 1000


class Samples:
    """What the load generator said: rows, seconds since the start, longest transaction since the last sample."""

    def __init__(self, report):
        self.points = [(int(s[1]), float(s[2])) for s in report.samples]
        self.worst_ms = [float(s[3]) for s in report.samples]

    def rate(self, begin, end):
        return stats.rate(self.points, begin, end)

    @property
    def total(self):
        return self.points[-1][0]

    def average(self):
        return self.rate(0, self.total)

    def last_tenth(self):
        return stats.last_tenth(self.points)


class Printer:
    """Shows how a load goes on, about twenty times."""

    def __init__(self, method, rows):
        self.method, self.rows, self.shown = method, rows, (0, 0.0)

    def __call__(self, report):
        if not report.samples:
            return
        rows, seconds = int(report.samples[-1][1]), float(report.samples[-1][2])
        if rows > self.shown[0] and (rows - self.shown[0] >= self.rows / 20 or rows == self.rows):
            print("  %-6s %12s rows %8.1f s %12s rows/s" % (
                self.method, format(rows, ","), seconds,
                format(int((rows - self.shown[0]) / (seconds - self.shown[1])), ",")), flush=True)
            self.shown = (rows, seconds)


def load(server, options, method, rows, limit_s):
    """Loads a table and returns (samples, index bytes, WAL bytes)."""
    server.query("CREATE EXTENSION IF NOT EXISTS pg_lsm; CREATE TABLE t (k int4, f char(10));")
    if method != "none":
        server.query("CREATE INDEX t_k ON t USING %s (k);" % method)
    before = server.query("CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
    flags = {"k": "int4_random", "r": rows, "b": options.batch, "s": options.seed,
             "e": max(rows // 200, options.batch), "t": limit_s}
    if options.binary:
        flags["x"] = True
    client = Client(options.client)
    try:
        report = client.finish(client.start("load", flags, server.conninfo(), "t"), Printer(method, rows))
    except BenchError as error:
        raise BenchError("the load of %s failed: %s\nThe end of the server log:\n%s" % (method, error, server.log_tail()))
    samples = Samples(report)
    wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % before))
    size = 0
    if method != "none":
        size = int(server.query("SELECT pg_relation_size('t_k');"))
        if options.check and method == "lsm":
            server.query("SELECT lsm_check('t_k', true);")
            print("  lsm_check found nothing wrong", flush=True)
    return samples, size, wal


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
            for i, (rows, seconds) in enumerate(samples.points):
                last = i == len(samples.points) - 1
                writer.writerow([method, rows, seconds, samples.worst_ms[i],
                                 size if last else "", int(wal) if last else ""])


def parse_options():
    parser = argparse.ArgumentParser(prog="bars.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bindir", "--client", "--work", "--user"):
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
    catch_interrupts()
    group = None
    results, sizes = {}, []
    try:
        group = ControlGroup(options.memory, required=True)
        settings = {"shared_buffers": options.shared_buffers}
        settings.update(setting.split("=", 1) for setting in options.set)
        server = Server(options.bindir, options.work, options.user, group, settings)
        for method in options.methods:
            rows = min(options.btree_rows or options.rows, options.rows) if method == "btree" else options.rows
            with server:
                server.start_fresh()
                results[method] = load(server, options, method, rows, options.limit)
            write_csv(options.csv, results)
        if "lsm" in options.methods:
            with server:
                server.start_fresh()
                server.query("CREATE EXTENSION pg_lsm;")
                sizes = small_sizes(server)
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        if group is not None:
            group.remove()
    show(results)
    missed = 0
    for text, reached in bars(results, sizes):
        print("%-7s%s" % ("" if reached is None else "ok" if reached else "MISSED", text))
        missed += reached is False
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
