#!/usr/bin/env python3
"""The random oracle: an lsm index must return the same answers as a btree.

Starts a server of its own, makes random tables with a btree and an lsm index
over the same columns, changes them at random, and runs the same random queries
with both indexes: the rows must be the same, in the same order.  Then come
seeds that run INSERT ... ON CONFLICT and other changes of keys on two tables,
seeds that change tables with ALTER TABLE, seeds with several clients at once,
and seeds where the server is killed.

Each seed is printed; `--seed N --rounds 1` runs it again.  (With several
clients or kills the timing differs each time.)  A seed that fails leaves its
statements as a psql script in the directory that --keep names.

Needs Python 3.9, and pg_lsm installed in the server that --pg-config names.
"""

import argparse
import os
import signal
import sys
import time
import traceback

sys.dont_write_bytecode = True     # the directory may be read-only

import clients
import datatypes
from alter import AlterRound
from compare import Mismatch, Round, Statistics
from pgwire import ConnectionLost, PgError
from server import Server, ServerFailed
from upserts import UpsertRound

# How the time of a run without --rounds is divided.
SHARES = {"compare": 0.4, "upserts": 0.1, "alter": 0.1, "clients": 0.2, "crash": 0.2}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--seed", type=int, help="the first seed (default: from the clock)")
    add("--rounds", type=int,
        help="number of seeds of each mode (default: as many as --seconds give)")
    add("--seconds", type=float, default=110,
        help="time to spend on seeds, all modes together (default 110)")
    add("--mode", choices=(*SHARES, "all"), default="all")
    add("--crash", action="store_true", help="the same as --mode crash")
    add("--clients", type=int, default=4,
        help="clients in the modes clients and crash (default 4)")
    add("--types", type=lambda text: text.split(","),
        help="use only these types, e.g. int4,text_icu")
    add("--am", default="lsm",
        help="the access method to test; btree checks the oracle itself")
    add("--pg-config", default="pg_config")
    add("--keep", default="oracle-failures", metavar="DIR",
        help="where failing seeds leave their statements")
    add("--stop", action="store_true", help="stop at the first failure")
    add("--verbose", action="store_true",
        help="show layouts, and queries that the planner treats differently")
    options = parser.parse_args()
    if options.crash:
        options.mode = "crash"
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    if options.types:
        unknown = set(options.types) - {t.name for t in datatypes.TYPES}
        if unknown:
            parser.error(f"unknown types: {', '.join(sorted(unknown))}")
    return options


def prepare(server, options):
    """Extension, types and collations of the test database."""
    connection = server.connect()
    if options.am == "lsm":
        connection.query("CREATE EXTENSION pg_lsm")
    connection.query(datatypes.SETUP)
    for statement in datatypes.OPTIONAL_SETUP.split(";")[:-1]:
        connection.query(f"DO $$ BEGIN {statement};"
                         " EXCEPTION WHEN OTHERS THEN NULL; END $$")
    known = {row[0] for row in
             connection.query("SELECT collname FROM pg_collation").rows}
    known |= {row[0] for row in
              connection.query("SELECT typname FROM pg_type").rows}
    options.unavailable = ({t.collation for t in datatypes.TYPES}
                           | {"title", "textrange", "citext"}) - known - {""}
    connection.close()


class Run:
    def __init__(self, options):
        self.options = options
        self.statistics = Statistics()
        self.passed = 0
        self.failed = []
        self.server = None

    def new_server(self):
        if self.server:
            self.server.destroy()
        self.server = Server(self.options.pg_config,
                             preload=self.options.am == "lsm")
        self.server.create()
        prepare(self.server, self.options)

    def make_round(self, mode, seed):
        if mode == "compare":
            return Round(self.server, seed, self.options, self.statistics)
        if mode == "upserts":
            return UpsertRound(self.server, seed, self.options, self.statistics)
        if mode == "alter":
            return AlterRound(self.server, seed, self.options, self.statistics)
        return clients.ClientsRound(self.server, seed, self.options,
                                    self.statistics, crash=mode == "crash")

    def one(self, mode, seed):
        """Run a seed; report and record the result."""
        started = time.monotonic()
        current = None
        try:
            current = self.make_round(mode, seed)
            if self.options.verbose:
                print(f"  {mode} {seed}: {current.layout.describe()}")
            current.run_all()
            alarms = self.server.alarms()
            if alarms:
                raise Mismatch("the server's log has:\n" + "\n".join(alarms))
        except (Mismatch, PgError, ConnectionLost, ServerFailed) as error:
            self.fail(mode, seed, current, error)
            return False
        except Exception as error:      # a fault of the oracle fails too
            traceback.print_exc()
            self.fail(mode, seed, current, error)
            return False
        self.passed += 1
        print(f"ok {mode} seed {seed} ({time.monotonic() - started:.1f} s)",
              flush=True)
        return True

    def fail(self, mode, seed, current, error):
        self.failed.append((mode, seed))
        print(f"FAILED {mode} seed {seed}: {type(error).__name__}")
        if current is not None:
            print(f"layout: {current.layout.describe()}")
        print(error)
        if current is not None:
            os.makedirs(self.options.keep, exist_ok=True)
            path = os.path.join(self.options.keep, f"{mode}-{seed}.sql")
            current.log.save(path)
            print(f"statements: {path}")
        print(f"again: {sys.argv[0]} --mode {mode} --seed {seed} --rounds 1"
              + (f" --clients {self.options.clients}"
                 if mode in ("clients", "crash") else ""))
        print("last lines of the server's log:")
        print(self.server.log_tail(), flush=True)
        # Leftovers must not make the next seed fail.
        self.new_server()

    def mode(self, mode, seconds):
        options = self.options
        seed = options.seed
        deadline = time.monotonic() + seconds
        while True:
            good = self.one(mode, seed)
            seed += 1
            if options.stop and not good:
                return False
            if options.rounds:
                if seed >= options.seed + options.rounds:
                    return True
            elif time.monotonic() >= deadline:
                return True

    def report(self):
        counts = self.statistics
        twins, failed = counts.twins()
        print(f"{counts.changes} changes, {counts.queries} queries, "
              f"{counts.fetches} cursor steps compared; "
              f"{counts.other_plans} with another plan shape, "
              f"{counts.without_index} without an index, "
              f"{counts.btree_wrong} wrong by btree; "
              f"{counts.index_missed} of {counts.index_due} beside other "
              "clients did not use the index; counts compared "
              f"{counts.counts - counts.counts_given_up} times of {counts.counts}; "
              f"{twins} statements on twin tables, {failed} failed on both")
        if counts.shapes:
            runs, levels, building = zip(*counts.shapes)
            print(f"indexes of up to {max(runs)} runs and {max(levels)} levels,"
                  f" {sum(n > 0 for n in building)} of {len(runs)} with a merge"
                  " under way")
        if self.options.verbose:
            histogram = {n: levels.count(n) for n in sorted(set(levels))} \
                if counts.shapes else {}
            print(f"  deepest levels: {histogram}")
            for error, count in sorted(counts.errors.items()):
                print(f"  error {error}: {count}")
            for verb, outcomes in sorted(counts.twin_changes.items()):
                print(f"  {verb} on twin tables: {outcomes}")
            for sql, plan, other in counts.plan_samples:
                print(f"  {sql}\n    btree: {plan}\n    "
                      f"{self.options.am}: {other}")
        for mode, seed in self.failed:
            print(f"failed: {mode} seed {seed}")
        for what in counts.too_little():
            print(f"FAILED: {what}")
            self.failed.append(("all", what))
        print(f"oracle: {self.passed} seeds passed, "
              f"{len(self.failed)} failed")


def main():
    options = parse_arguments()
    modes = list(SHARES) if options.mode == "all" else [options.mode]
    total = sum(SHARES[mode] for mode in modes)
    run = Run(options)
    # Leave no server behind when terminated by a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"oracle: first seed {options.seed}, modes {', '.join(modes)}",
          flush=True)
    try:
        run.new_server()
        for mode in modes:
            if not run.mode(mode, options.seconds * SHARES[mode] / total):
                break
    finally:
        if run.server:
            run.server.destroy()
    run.report()
    return 1 if run.failed or not run.passed else 0


if __name__ == "__main__":
    sys.exit(main())
