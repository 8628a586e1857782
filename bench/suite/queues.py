"""Job queues and idempotency keys on small tables in memory: jobs per second with B-trees and with lsm.

The methods take turns, each turn in a new database. For lsm, lsm_convert converts all B-trees, keys included, before the
first job is enqueued. Each ratio compares two consecutive turns. The figure of a queue is the median of its ratios.
"""

import argparse
import os
import statistics
import subprocess
import sys

from . import BenchError, catch_interrupts, hidden_options, positive, say
from .cgroup import ControlGroup
from .server import Server, postgres_version

METHODS = ("btree", "lsm")
LINE = "%-20s %-8s %10s %10s %10s"
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "4GB", "max_connections": "50"}
# {name: (interpreter, program, file that exists if its packages are installed)}
QUEUES = {
    "procrastinate": ("python/bin/python", "procrastinate_jobs.py", "python/ready"),
    "pgqueuer": ("python/bin/python", "pgqueuer_jobs.py", "python/ready"),
    "graphile-worker": ("node", "graphile_jobs.js", "node_modules/ready"),
    "pg-boss": ("node", "pg_boss_jobs.js", "node_modules/ready"),
}
DATABASE = "jobs"
KEYS = "idempotency-keys"
KEY_CLIENTS = 8
KEY_TABLE = "CREATE TABLE seen (key uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());"
# At first, half of the keys are new.
KEY_SCRIPT = """\\set n random(1, 1000000)
INSERT INTO seen (key) VALUES (md5((:n %% %d)::text)::uuid) ON CONFLICT (key) DO NOTHING RETURNING at;
"""
# The B-trees on tables outside the system schemas; of a partitioned index, only the topmost.
BTREES = "SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relkind " \
    "IN ('i', 'I') AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace, " \
    "'information_schema'::regnamespace) AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid);"


class Turns:
    def __init__(self, options, server):
        self.options, self.server = options, server

    def new_database(self):
        self.server.query("DROP DATABASE IF EXISTS %s;" % DATABASE)
        self.server.query("CREATE DATABASE %s;" % DATABASE)
        self.in_database("CREATE EXTENSION pg_lsm;")

    def convert(self, method):
        for index in self.in_database(BTREES).splitlines() if method == "lsm" else ():
            self.in_database("CALL lsm_convert($$%s$$);" % index)
        self.server.query("CHECKPOINT;")

    def in_database(self, sql):
        return self.server.query(sql, DATABASE)

    def address(self):
        return "postgres://postgres@/%s?host=%s&port=%s" % (DATABASE, self.server.sockets, self.server.port)

    def call(self, command):
        done = subprocess.run(command, cwd=self.options.programs, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BenchError("failed: %s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
        return done.stdout

    def queue(self, name, method):
        """Returns (jobs enqueued per second, jobs worked per second)."""
        interpreter, program, _ = QUEUES[name]
        if "/" in interpreter:
            interpreter = os.path.join(self.options.programs, interpreter)
        command = [interpreter, program, self.address()]
        self.call(command + ["0", str(self.options.concurrency)])
        self.convert(method)
        words = self.call(command + [str(self.options.jobs), str(self.options.concurrency)])
        return tuple(self.options.jobs / float(seconds) for seconds in words.split())

    def keys(self, method):
        """Returns (keys per second,)."""
        self.in_database(KEY_TABLE)
        self.convert(method)
        script = os.path.join(self.options.programs, "keys.sql")
        count = self.options.jobs * 20
        with open(script, "w") as file:
            file.write(KEY_SCRIPT % count)
        self.in_database("INSERT INTO seen (key) SELECT md5(i::text)::uuid FROM generate_series(1, %d, 2) i;" % count)
        self.in_database("VACUUM ANALYZE seen;")
        text = self.call([self.server.program("pgbench"), "-n", "-c", str(KEY_CLIENTS), "-j", "2", "-M", "prepared", "-f", script,
                          "-T", str(max(round(self.options.seconds), 1)), self.server.conninfo(DATABASE)])
        return (float(text.rpartition("tps = ")[2].split()[0]),)

    def measure(self, name):
        """Runs all turns of a queue, and prints their rates and the median ratios."""
        ratios = []
        for _ in range(self.options.repeats):
            rates = {}
            for method in METHODS:
                self.new_database()
                rates[method] = self.keys(method) if name == KEYS else self.queue(name, method)
                left = self.in_database(BTREES)
                if left and method == "lsm":
                    raise BenchError("%s still has B-trees: %s" % (name, left.replace("\n", ", ")))
                say(LINE % (name, method, "", "%.0f" % rates[method][-1],
                            "%.0f" % rates[method][0] if len(rates[method]) > 1 else ""))
            ratios.append([a / b for a, b in zip(rates["lsm"], rates["btree"])])
        columns = list(zip(*ratios))
        say(LINE % (name, "lsm of", "B-tree", "%.2f" % statistics.median(columns[-1]),
                    "%.2f" % statistics.median(columns[0]) if len(columns) > 1 else ""))
        say()


def parse(arguments):
    parser = argparse.ArgumentParser(prog="queues.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    hidden_options(parser, "--bindir", "--work", "--user", "--programs")
    parser.add_argument("--jobs", type=positive, default=5_000, metavar="N",
                        help="jobs per turn, a multiple of 100 (default 5000)")
    parser.add_argument("--concurrency", type=positive, default=4, metavar="N", help="jobs to run at once (default 4)")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S",
                        help="seconds per turn with idempotency keys (default 5)")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="turns of each method (default 5)")
    parser.add_argument("--only", metavar="TEXT", help="only queues whose name contains this")
    parser.add_argument("--quick", action="store_true",
                        help="1000 jobs, one turn per method: shows only that everything works")
    options = parser.parse_args(arguments)
    if options.jobs % 100:
        parser.error("--jobs must be a multiple of 100")
    if options.quick:
        options.jobs, options.repeats, options.seconds = 1000, 1, 1.0
    return options


def main(arguments):
    options = parse(arguments)
    catch_interrupts()
    say("commit %s, %s\n" % (options.commit, postgres_version(options.bindir)))
    say(LINE % ("queue", "method", "", "worked/s", "enqueued/s"))
    names = [name for name, (_, _, ready) in QUEUES.items() if os.path.exists(os.path.join(options.programs, ready))]
    try:
        with Server(options.bindir, options.work, options.user, ControlGroup(0), SETTINGS) as server:
            server.start_fresh()
            turns = Turns(options, server)
            for name in [*names, KEYS]:
                if not options.only or options.only in name:
                    turns.measure(name)
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
