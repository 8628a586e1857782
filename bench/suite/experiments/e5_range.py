"""Experiment 5: Pachot's, an index-only scan of the last 50000 rows of a growing table."""

import json
import os
import re
import subprocess

from .. import BenchError
from ..figures import Part, Plot, Section
from ..plan import interleave

ID, NAME = "5", "last-rows"
TITLE = "The last 50000 rows by index-only scan"
SOURCE = """Franck Pachot, "Performance of range queries in B-Tree and LSM indexes"
(<a href="https://dev.to/yugabyte/performance-of-range-queries-in-b-tree-and-lsm-indexes-3pbj">dev.to</a>)."""

BEFORE, AFTER = "before VACUUM", "after VACUUM"
SECTIONS = [Section("How fast does a query read the last rows?", """demo(id bigserial primary key, value timestamptz)
with an index on (value desc, id), filled by INSERT ... SELECT clock_timestamp(), 10000 rows a statement. The query
reads the latest 50000 rows in order: the median of five runs after two for warm-up. Bytes are buffers times 8 kB,
hits included. Then pgbench with ten clients. Before VACUUM, the scan looks up each row in the table; afterwards, it
reads only the index. The primary key is a B-tree in all systems. Autovacuum is off for the table. Without an index,
the query sorts the table.""", [
    Plot("e5-last-rows", "bars", "Time to read the last 50,000 rows", [
        Part(BEFORE, "query", BEFORE), Part(AFTER, "query", AFTER)], "ms", claim="The last 50,000 rows take {a} {as long} as {b} before VACUUM, {as long} after it",
         conditions="one query, the latest rows in order of time, by index-only scan; less is better")])]

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
