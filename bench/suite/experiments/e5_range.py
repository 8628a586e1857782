"""Experiment 5: Pachot's, an index-only scan of the last 50000 rows of a growing table."""

import json
import os
import re
import subprocess

from .. import BenchError
from ..figures import Figure, Panel
from ..plan import interleave

ID, NAME = "5", "last-rows"
TITLE = "The last 50000 rows by index-only scan"
SOURCE = """Franck Pachot, "Performance of range queries in B-Tree and LSM indexes"
(<a href="https://dev.to/yugabyte/performance-of-range-queries-in-b-tree-and-lsm-indexes-3pbj">dev.to</a>)."""
WHAT = """demo(id bigserial primary key, value timestamptz) with an index on (value desc, id), filled by INSERT ...
SELECT clock_timestamp(), 10000 rows a statement. The query reads the latest 50000 rows in order. EXPLAIN (ANALYZE,
BUFFERS) after two runs for warm-up; bytes are buffers times 8 kB, hits included; milliseconds are the median of five
runs. Then pgbench with ten clients. All before and after VACUUM, which makes that the index alone is enough. The
primary key is a btree in all systems; only the other index changes. Autovacuum is off for the table. Without an index
the primary key does not help: the table is sorted."""
READ = """Before VACUUM each row needs a look at the table as well: the buffers are those of the heap. Lower is better
but for tps."""

FIGURES = [Figure("e5-last-rows", "The last 50000 rows: before and after VACUUM", [
    Panel("bars", "time of one query", ["before VACUUM", "after VACUUM"], "query", ylabel="ms"),
    Panel("bars", "buffers of one query", ["before VACUUM", "after VACUUM"], "buffers", ylabel="buffers of 8 kB"),
    Panel("bars", "pgbench, 10 clients", ["before VACUUM", "after VACUUM"], "pgbench tps", ylabel="queries/s"),
    Panel("bars", "VACUUM", ["after VACUUM"], "VACUUM", ylabel="seconds")])]

CLIENTS = 10


def _query(limit):
    return "SELECT * FROM demo WHERE value < now() ORDER BY value DESC LIMIT %d;" % limit


def _explain(context, sql):
    """Five measured runs after two warm-up runs: (median ms, buffers, plan)."""
    times = []
    for run in range(7):
        plan = json.loads(context.server.query("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + sql))[0]
        if run >= 2:
            times.append(plan["Execution Time"])
    top = plan["Plan"]
    buffers = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    names = []
    while top:
        names.append(top["Node Type"])
        top = top.get("Plans", [None])[0]
    return sorted(times)[2], buffers, " / ".join(names)


def _pgbench(context, sql):
    script = os.path.join(context.server.work, "last-rows.sql")
    with open(script, "w") as file:
        file.write(sql + "\n")
    time_or_count = ["-t", "5"] if context.options.quick else ["-T", str(max(round(context.options.seconds), 1))]
    result = subprocess.run(
        [context.server.program("pgbench"), "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-f", script]
        + time_or_count + [context.server.conninfo()],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    text = result.stdout.decode(errors="replace")
    match = re.search(r"^tps = ([0-9.]+)", text, re.M)
    if result.returncode != 0 or not match:
        raise BenchError("pgbench failed: %s" % text[-500:])
    return float(match.group(1))


def _measure(context, limit):
    ms, buffers, plan = _explain(context, _query(limit))
    context.record("query", ms, "ms", note=plan)
    context.record("buffers", buffers, "buffers")
    context.record("bytes", buffers * 8192, "bytes")
    context.record("pgbench tps", _pgbench(context, _query(limit)), "1/s")


def plan(options):
    rows = min(max(options.rows // 20, 20_000), 1_000_000)
    limit = min(50_000, rows // 2)

    def work(context):
        server = context.server
        server.query("CREATE TABLE demo (id bigserial PRIMARY KEY, value timestamptz) WITH (autovacuum_enabled = off);")
        if context.am != "none":
            server.query("CREATE INDEX demo_value ON demo USING %s (value DESC, id);" % context.am)
        server.query("INSERT INTO demo (value) SELECT clock_timestamp() FROM generate_series(1, 10000);\n" * (rows // 10000))
        server.query("ANALYZE demo; CHECKPOINT;")
        context.case = "before VACUUM"
        _measure(context, limit)
        context.case = "after VACUUM"
        seconds = context.server.query("\\timing on\nVACUUM demo;").split("Time: ")[1].split(" ms")[0]
        context.record("VACUUM", float(seconds) / 1000, "s")
        _measure(context, limit)

    return interleave(ID, "last rows", options.am, options.repeats,
                      lambda am: 6 + rows / 1e6 * 12 + 2 * options.seconds, work)
