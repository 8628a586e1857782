#!/usr/bin/env python3
"""The torture suite: what a server under fire does to lsm indexes.

Each mode is a module of this directory and has rounds. A round makes servers
of its own, does its worst, and compares what is left with what must be there.

Each seed is printed; `--modes MODE --seed N --rounds 1` runs it again. (The
timing differs each time.) A round that fails leaves the server's log and, if
it has any, its statements in the directory that --keep names.

Needs Python 3.9, and pg_lsm with assertions and stop points installed in the
server that --pg-config names: tools/torture.sh builds both.
"""

import argparse
import collections
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True     # the directory may be read-only
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "oracle")]

from compare import Mismatch
from pgwire import ConnectionLost, PgError
from server import ServerFailed

# The part of the time that each mode gets. Modes without one run only if they
# are named.
SHARES = {"kills": 0.3, "small": 0.25, "damage": 0.2, "hostile": 0.25,
          "soak": 0.0}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--seed", type=int, help="the first seed (default: from the clock)")
    add("--seconds", type=float, default=60,
        help="time for all modes together (default 60)")
    add("--rounds", type=int,
        help="rounds of each mode (default: as many as --seconds give)")
    add("--modes", type=lambda text: text.split(","), default=[mode for mode in SHARES if SHARES[mode]],
        help="default: all but soak, of " + ", ".join(SHARES))
    add("--pg-config", default="pg_config")
    add("--commit", default="", help=argparse.SUPPRESS)
    add("--keep", default="torture-failures", metavar="DIR",
        help="where rounds that fail leave their logs")
    options = parser.parse_args()
    unknown = set(options.modes) - set(SHARES)
    if unknown:
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    return options


class Torture:
    """What rounds need, and what they have done."""

    def __init__(self, options):
        self.options = options
        self.version = int(re.search(r"\d+", subprocess.check_output(
            [options.pg_config, "--version"], text=True)).group())
        self.counts = collections.Counter()
        self.tables = {}            # of counts: table, row, column
        self.lacking = collections.Counter()
        self.passed = 0
        self.failed = []

    def count(self, what, n=1):
        self.counts[what] += n

    def tally(self, table, row, column, n=1):
        """Count in a table, which the report shows. With 0, add only the row."""
        self.tables.setdefault(table, {}).setdefault(row, collections.Counter())[column] += n

    def lack(self, what):
        """A round could not have this here."""
        self.lacking[what] += 1

    def one(self, mode, seed):
        """Run a round, and report the result."""
        started = time.monotonic()
        current = None
        try:
            current = importlib.import_module(mode).Round(self, seed)
            current.run()
            self.passed += 1
            print(f"ok {mode} seed {seed} ({time.monotonic() - started:.1f} s)",
                  flush=True)
        except (Mismatch, PgError, ConnectionLost, ServerFailed) as error:
            self.fail(mode, seed, current, error)
        except Exception as error:      # a fault of the suite fails too
            traceback.print_exc()
            self.fail(mode, seed, current, error)
        finally:
            if current is not None:
                current.close()

    def fail(self, mode, seed, current, error):
        self.failed.append(f"{mode} seed {seed}")
        print(f"FAILED {mode} seed {seed}: {type(error).__name__}: {error}")
        print(f"again: tools/torture.sh --modes {mode} --seed {seed} --rounds 1",
              flush=True)
        path = os.path.join(self.options.keep, f"{mode}-{seed}")
        os.makedirs(path, exist_ok=True)
        log = getattr(current, "log", None)
        if log is not None:
            log.save(os.path.join(path, "statements.sql"))
        for number, server in enumerate(getattr(current, "servers", ())):
            if os.path.exists(server.log):
                shutil.copy(server.log, os.path.join(path, f"{number}.log"))
        print(f"its logs: {path}", flush=True)

    def mode(self, mode, seconds):
        seed = self.options.seed
        deadline = time.monotonic() + seconds
        while True:
            self.one(mode, seed)
            seed += 1
            if self.options.rounds:
                if seed >= self.options.seed + self.options.rounds:
                    return
            elif time.monotonic() >= deadline:
                return

    def report(self):
        for what in sorted(self.counts):
            print(f"{self.counts[what]:8} {what}")
        for table in self.tables:
            self.report_table(table)
        if self.lacking:
            print("not available: " + ", ".join(f"{what} ({n} rounds)" for what, n in sorted(self.lacking.items())))
        for what in self.failed:
            print(f"failed: {what}")
        print(f"torture: {self.passed} rounds passed, "
              f"{len(self.failed)} failed")

    def report_table(self, table):
        rows = self.tables[table]
        total = sum(rows.values(), collections.Counter())
        columns = list(dict.fromkeys(column for counts in rows.values() for column in counts))
        width = max(map(len, [*rows, table, "total"])) + 2
        print(f"{table:{width}}  " + "  ".join(columns))
        for row, counts in [*rows.items(), ("total", total)]:
            print(f"{'  ' + row:{width}}  " + "  ".join(f"{counts[column]:{len(column)}}" for column in columns))


def main():
    options = parse_arguments()
    torture = Torture(options)
    total = sum(SHARES[mode] for mode in options.modes) or 1
    # Leave no server behind when terminated by a signal. tools/torture.sh starts us with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(1))
    print(f"torture: first seed {options.seed}, modes {', '.join(options.modes)},"
          f" PostgreSQL {torture.version}"
          + (f", commit {options.commit}" if options.commit else ""), flush=True)
    for mode in options.modes:
        torture.mode(mode, options.seconds * SHARES[mode] / total)
    torture.report()
    return 1 if torture.failed or not torture.passed else 0


if __name__ == "__main__":
    sys.exit(main())
