"""Loads one table onto one server and onto several, compares all answers, and prints the rates."""

import argparse
import csv
import os
import re
import sys
import time

from .. import BenchError, catch_interrupts, positive
from ..client import Client
from ..server import postgres_version
from ..stats import si
from . import engines
from .nodes import Node, Site
from .work import Work, compare

MISSING_STATUS = 77


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tools/scaleout.sh", description="Options of the comparison:", add_help=True)
    for name in ("--bindir", "--client", "--work", "--user", "--commit"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=positive, default=2, metavar="N", help="data servers (default 2)")
    parser.add_argument("--rows", type=positive, metavar="N", help="rows of the table (default 2000000)")
    parser.add_argument("--method", choices=("lsm", "btree", "both"), default="both",
                        help="of the indexes (default both)")
    parser.add_argument("--memory", type=int, default=128, metavar="MB",
                        help="of each server, in a memory control group of its own (default 128, 0: no limit); "
                        "needs root")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--plproxy", dest="engine", action="store_const", const="plproxy", default="fdw",
                        help="use PL/Proxy instead of postgres_fdw")
    engine.add_argument("--citus", dest="engine", action="store_const", const="citus",
                        help="use Citus; exits with status 77 if it is not installed")
    parser.add_argument("--clients", type=positive, default=4, metavar="N", help="connections (default 4)")
    parser.add_argument("--batch", type=positive, default=1000, metavar="N", help="rows of a statement (default 1000)")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S",
                        help="of each measurement of queries (default 5)")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S",
                        help="stop a load by COPY after this time on one server, and load only as many rows on several "
                        "(default 600)")
    parser.add_argument("--only", choices=("one", "several"),
                        help="measure only one server or only several, and compare nothing")
    parser.add_argument("--csv", metavar="FILE", help="append all figures to this file")
    parser.add_argument("--quick", action="store_true", help="a small table, for a first look; figures mean little")
    options = parser.parse_args(arguments)
    if options.rows is None:
        options.rows = 50_000 if options.quick else 2_000_000
    if options.quick:
        options.seconds = min(options.seconds, 1.0)
    return options


def step(text):
    print("[%4d s] %s" % (time.monotonic() - step.begin, text), flush=True)


step.begin = time.monotonic()


def settings(options):
    values = {"max_connections": 100, "max_worker_processes": 16,
              "max_wal_size": "1GB", "maintenance_work_mem": "16MB", "jit": "off", "autovacuum": "off",
              "max_prepared_transactions": 100}
    if options.memory:
        values["shared_buffers"] = "%dMB" % max(options.memory // 4, 16)
        values["effective_cache_size"] = "%dMB" % (options.memory // 2)
    if options.quick:
        values["fsync"] = "off"
    return values


def make_site(options, engine, count):
    """count 0: one server, without a front server."""
    def node(name, number):
        return Node(options.bindir, options.work, options.user, name, number, options.memory,
                    settings(options), engine)
    nodes = [node("node%d" % number, number) for number in range(1, max(count, 1) + 1)]
    return Site(node("front", 0) if count else nodes[0], nodes)


def on_site(options, client, engine, count, rows):
    """Loads and measures one site. Returns (figures, answers, rows of each kind that were loaded)."""
    label = "%s, %s" % (engine.method, "%d servers by %s" % (count, engine.title) if count else "one server")
    with make_site(options, engine, count) as site:
        step("%s: starting, memory of each server: %s" % (label, site.front.group.note))
        site.start()
        work = Work(site, engine, client, options, lambda text: step("%s: %s" % (label, text)))
        engine.make(site)
        loaded = work.load(*rows)
        work.queries()
        return work.figures, {} if options.only else work.answers(), loaded


def split_rows(options, engine, major):
    """Rows to load by COPY and by INSERT."""
    if not engine.copies(major):
        return 0 if options.engine == "plproxy" else options.rows // 50, options.rows
    return options.rows - options.rows // 20, options.rows // 20


def print_table(options, results):
    names = []
    for figures in results.values():
        names += [name for name in figures if name not in names]
    heads = ["%s: %s" % (side, method) for side, method in results]
    width = max(len(head) for head in heads) + 2
    print("\n%-46s%s" % ("", "".join(head.rjust(width) for head in heads)))
    for name in names:
        print("%-46s%s" % (name, "".join((si(figures[name]) if name in figures else "–").rjust(width)
                                         for figures in results.values())))
    print("\n%s rows, %d clients, %d rows a statement, %s, %d cores for all servers and clients together\n" % (
        format(options.rows, ","), options.clients, options.batch,
        "%d MB of memory for each server" % options.memory if options.memory else "no limit of memory", os.cpu_count()))


def write_csv(options, results):
    is_new = not os.path.exists(options.csv)
    with open(options.csv, "a", newline="") as file:
        out = csv.writer(file)
        if is_new:
            out.writerow(("commit", "engine", "nodes", "rows", "memory MB", "clients", "side", "method", "name",
                          "value"))
        for (side, method), figures in results.items():
            for name, value in figures.items():
                out.writerow((options.commit, options.engine, options.nodes, options.rows, options.memory,
                              options.clients, side, method, name, "%.6g" % value))


def run(options):
    client = Client(options.client)
    results, different = {}, []
    engines.ENGINES[options.engine].check(options.bindir, options.nodes)
    wanted = ("lsm", "btree") if options.method == "both" else (options.method,)
    version = postgres_version(options.bindir)
    major = int(re.search(r"\) (\d+)", version).group(1))
    step("%s, %s" % (version, engines.ENGINES[options.engine].title))
    expected = {}
    rows = split_rows(options, engines.ENGINES[options.engine]("lsm", options.batch), major)
    for method in wanted:
        several = engines.ENGINES[options.engine](method, options.batch)
        if options.only != "several":
            figures, expected, rows = on_site(options, client, engines.Engine(method, options.batch), 0, rows)
            results["1", method] = figures
        if options.only != "one":
            figures, answers, rows = on_site(options, client, several, options.nodes, rows)
            results[str(options.nodes), method] = figures
            different += compare(expected, answers, method)
    print_table(options, results)
    if options.csv:
        write_csv(options, results)
    if options.only:
        return 0
    for text in different:
        print("DIFFERENT: %s" % text)
    print("%d answers compared, %d different" % (len(expected) * len(wanted), len(different)))
    return 1 if different else 0


def main():
    options = parse(sys.argv[1:])
    catch_interrupts()
    try:
        return run(options)
    except engines.Missing as error:
        print("skipped: %s" % error)
        return MISSING_STATUS
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
