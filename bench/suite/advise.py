"""Checks lsm_advise: runs workloads on a B-tree, asks for advice, and measures what lsm would have gained.

Each workload runs with each method in a new cluster. One session runs the workload in a procedure, so that client and
network time do not hide the index's cost. The advice agrees with the measurement if it names an index exactly when
lsm's rate is at least 1.4 times the B-tree's. With --cpu, the server's CPU time decides instead."""

import argparse
import collections
import statistics
import sys
import time

from . import BenchError, catch_interrupts, hidden_options, positive
from .cgroup import ControlGroup
from .server import Server

GAIN = 1.4
# Workloads that fit in memory get this many times the memory of the others.
ROOM = 8

TABLE = """CREATE TABLE t (id bigint, k uuid, n int DEFAULT 0);
INSERT INTO t SELECT i, md5(i::text)::uuid FROM generate_series(1, {preload}) i;
CREATE UNIQUE INDEX t_id ON t (id);
CREATE INDEX t_k ON t USING {method} (k);"""
ASCENDING = """CREATE TABLE t (id bigint, k uuid, n int DEFAULT 0);
INSERT INTO t SELECT i, md5(i::text)::uuid FROM generate_series(1, {preload}) i;
CREATE UNIQUE INDEX t_id ON t USING {method} (id);"""
# A turn is a transaction. first is the number of rows before the first turn, and i is the number of the turn.
PROCEDURE = """CREATE PROCEDURE run(turns int, first bigint) LANGUAGE plpgsql AS $$
DECLARE
	key uuid;
	victim bigint;
BEGIN
	FOR i IN 1 .. turns LOOP
		{turn}
		COMMIT;
	END LOOP;
END $$;"""
MANY = """INSERT INTO t SELECT j, md5(j::text)::uuid
	FROM generate_series(first + (i - 1) * 1000 + 1, first + i * 1000) j;"""
ONE = "INSERT INTO t VALUES (first + i, md5((first + i)::text)::uuid);"
READS = """INSERT INTO t VALUES (first + i, md5((first + i)::text)::uuid);
		FOR j IN 1 .. 20 LOOP
			key := md5((1 + random() * (first - 1))::bigint::text)::uuid;
			PERFORM n FROM t WHERE k = key;
		END LOOP;"""
QUEUE = "INSERT INTO t VALUES (first + i); DELETE FROM t WHERE id = (SELECT id FROM t ORDER BY id LIMIT 1);"
UPDATE = """victim := 1 + random() * (first - 1);
		UPDATE t SET k = md5(random()::text)::uuid WHERE id = victim;"""

# preload and turns are shares of --rows.
Workload = collections.namedtuple("Workload", "name fits table turn preload turns")
WORKLOADS = (
    Workload("ascending keys", False, ASCENDING, MANY, 0, 0.001),
    Workload("random keys in memory, single rows", True, TABLE, ONE, 0.1, 0.04),
    Workload("random keys in memory, many rows", True, TABLE, MANY, 0, 0.0006),
    Workload("random keys beyond memory, single rows", False, TABLE, ONE, 1, 0.04),
    Workload("random keys beyond memory, many rows", False, TABLE, MANY, 1, 0.0003),
    Workload("read-mostly", False, TABLE, READS, 1, 0.002),
    Workload("queue", False, ASCENDING, QUEUE, 0.001, 0.04),
    Workload("updates in memory", True, TABLE, UPDATE, 0.1, 0.04),
    Workload("updates beyond memory", False, TABLE, UPDATE, 1, 0.04),
)

# Turns per second, CPU seconds of the server, and the indexes that lsm_advise names.
Figures = collections.namedtuple("Figures", "rate cpu advice")


def run(options, workload, method):
    """Runs a workload in an empty cluster. Returns its Figures."""
    memory = options.memory * (ROOM if workload.fits else 1)
    group = ControlGroup(memory, required=True)
    settings = {"shared_buffers": "%dMB" % (memory // 8), "effective_cache_size": "%dMB" % (memory // 4),
                "max_connections": "10", "synchronous_commit": "off", "maintenance_work_mem": "4MB",
                "max_parallel_maintenance_workers": "0"}
    try:
        with Server(options.bindir, options.work, options.user, group, settings) as server:
            server.start_fresh()
            preload, turns = int(options.rows * workload.preload), max(int(options.rows * workload.turns), 1)
            server.query("CREATE EXTENSION pg_lsm;\n" + workload.table.format(preload=preload, method=method)
                         + PROCEDURE.format(turn=workload.turn))
            server.query("VACUUM ANALYZE t; CHECKPOINT; SELECT pg_stat_reset();")
            cpu = server.cpu_seconds()
            seconds = server.timed("CALL run(%d, %d)" % (turns, preload))
            cpu = server.cpu_seconds() - cpu
            server.query("ANALYZE t; SELECT pg_stat_force_next_flush();")
            advice = server.query("SELECT string_agg(index::text, ' ' ORDER BY index::text) FROM lsm_advise();")
            return Figures(turns / seconds, max(cpu, 0.01), advice)
    finally:
        group.remove()


def measure(options, workload):
    """Prints a line. Returns whether the advice agrees with the measurement. Each repeat gives one ratio, that of two
    consecutive runs. The line shows the median of the ratios."""
    turns = []
    for repeat in range(options.repeats):
        order = ("btree", "lsm") if repeat % 2 == 0 else ("lsm", "btree")
        turns.append({method: run(options, workload, method) for method in order})
    advice = " or ".join(sorted({turn["btree"].advice or "-" for turn in turns}))
    rate = statistics.median(turn["lsm"].rate / turn["btree"].rate for turn in turns)
    cpu = statistics.median(turn["btree"].cpu / turn["lsm"].cpu for turn in turns)
    agrees = advice == "-" if (cpu if options.cpu else rate) < GAIN else "-" not in advice
    print("%-40s %10.0f %10.0f %7.2f %7.2f  %-8s %s" % (
        workload.name, statistics.median(turn["btree"].rate for turn in turns),
        statistics.median(turn["lsm"].rate for turn in turns), rate, cpu, advice,
        "agree" if agrees else "DISAGREE"), flush=True)
    return agrees


def main(arguments):
    parser = argparse.ArgumentParser(prog="advise.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    hidden_options(parser, "--bindir", "--work", "--user")
    parser.add_argument("--rows", type=positive, default=1000000,
                        help="rows in workloads that exceed memory (default 1000000)")
    parser.add_argument("--memory", type=positive, default=64, metavar="MB",
                        help="memory in workloads that exceed it (default 64)")
    parser.add_argument("--repeats", type=positive, default=3, help="turns of each method (default 3)")
    parser.add_argument("--cpu", action="store_true", help="judge by CPU time, for a machine that also does other work")
    parser.add_argument("--only", default="", metavar="TEXT", help="only workloads whose name contains the text")
    options = parser.parse_args(arguments)
    catch_interrupts()
    begin = time.monotonic()
    print("commit %s, %d rows, %d MB\n" % (options.commit, options.rows, options.memory))
    print("%-40s %10s %10s %7s %7s  %-8s" % ("workload", "btree/s", "lsm/s", "ratio", "CPU", "advice"))
    try:
        chosen = [workload for workload in WORKLOADS if options.only in workload.name]
        agreed = sum([measure(options, workload) for workload in chosen])
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print("\n%d of %d agree, %d s" % (agreed, len(chosen), time.monotonic() - begin))
    return 0 if agreed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
