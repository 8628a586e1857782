"""Experiment 7, third part: updates with VACUUM, CREATE INDEX, recovery after a crash."""

from ..figures import Part, Plot, Section
from ..plan import START_S, interleave, load_seconds
from ..context import SizeWatch

ID, NAME = "7", "upkeep"
TITLE = "UPDATE churn with VACUUM; CREATE INDEX; recovery"
SOURCE = "Ours."

CHURN, BUILD, RECOVERY = "churn", "create index", "recovery"
ROUNDS = 3

SECTIONS = [
    Section("How fast are updates, and how large does the index become?", """churn(id int4 primary key, k int4, f)
with an index on k. Four clients (or the largest number of --clients, if that is smaller) change k of random rows, so
each update adds an index entry. Then VACUUM runs. Three rounds, autovacuum off. The primary key is a B-tree in all
systems.""", [
        Plot("e7-churn", "lines", "Updates per second, round by round", [Part(CHURN, "updates/s")], "updates/s",
             "round",
             "In round {x}, {a} takes {as many} updates a second as {b}",
             conditions="updates of an indexed column; more is better"),
        Plot("e7-churn-vacuum", "lines", "Time of VACUUM after updates", [Part(CHURN, "VACUUM")], "seconds", "round",
             "After updates, VACUUM takes {a} {as long} as {b}",
             conditions="VACUUM after each round of updates; less is better"),
        Plot("e7-churn-size", "lines", "Size of the index after updates and VACUUM", [
            Part(CHURN, "index bytes/row after VACUUM")], "bytes a row", "round", "After {x} rounds of updates, the {a} index is {as large} as {b}", skip=("none",),
             conditions="index files after VACUUM; growth is bloat")]),
    Section("How long does CREATE INDEX take?", """On a filled table of random int4 keys, with the default
maintenance_work_mem. Peak temporary space is that of sort files.""", [
        Plot("e7-create-index", "bars", "Time of CREATE INDEX", [Part(BUILD, "CREATE INDEX")], "seconds",
             claim="CREATE INDEX takes {a} {as long} as {b}", skip=("none",),
             conditions="random int4 keys; less is better")]),
    Section("How long does recovery from a crash take?", """When seven tenths of the rows are loaded, SIGKILL ends
all server processes. The time is that from the next start of the server until it answers a query. It depends on the
amount of WAL since the last checkpoint, which the table of figures also shows. lsm_check then verifies the lsm index
against its table. B-trees are not verified.""", [
        Plot("e7-recovery", "bars", "Time of recovery after kill -9 during a load", [Part(RECOVERY, "recovery time")],
             "seconds",
             claim="Recovery takes {a} {as long} as {b}",
             conditions="kill -9 during a load, until the server answers; less is better")]),
]


def _churn(context, rows):
    clients = min(max(context.options.clients), 4)
    context.create_table("churn")
    loaded = context.load("churn", rows)
    for number in range(1, ROUNDS + 1):
        report = context.run(["update:%d" % clients], loaded, kind="churn", warmup=0)
        context.record_latencies(report, "update", "updates", number)
        context.record("VACUUM", context.server.timed("VACUUM t"), "s", number)
        paths = context.index_paths()
        if paths:
            size = context.server.relation_bytes(paths)
            context.record("index bytes/row after VACUUM", size / loaded, "bytes", number)


def _build(context, rows):
    server = context.server
    context.create_table("int4_random", indexes=())
    loaded = context.load("int4_random", rows)
    before = server.query("VACUUM t; CHECKPOINT; SELECT pg_current_wal_insert_lsn();")
    with SizeWatch(server, []) as watch:
        seconds = server.timed("CREATE INDEX t_1 ON t USING %s (k)" % context.am)
    context.record("CREATE INDEX", seconds, "s")
    context.record("index bytes/row, new", server.relation_bytes(context.index_paths()) / loaded, "bytes")
    context.record("peak temporary bytes/row", watch.peak_temporary / loaded, "bytes")
    wal = float(server.query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % before))
    context.record("WAL bytes/row of CREATE INDEX", wal / loaded, "bytes")


def _recovery(context, rows):
    server, client = context.server, context.client
    context.create_table("int4_random")
    server.query("CHECKPOINT;")
    load = client.start("load", {"k": "int4_random", "r": rows, "s": context.seed, "e": max(rows // 100, 1000),
                                 "t": context.options.limit}, server.conninfo(), "t")
    try:
        for line in load.stdout:
            words = line.decode().split(",")
            if words[0] == "result" or int(words[2]) >= rows * 0.7:
                break
        wal = float(server.query("SELECT pg_current_wal_insert_lsn() - redo_lsn FROM pg_control_checkpoint();"))
        server.kill()
    finally:
        client.end(load)
    context.record("recovery time", server.recover(), "s")
    context.record("WAL to replay", wal / 1e6, "MB")
    survived = int(server.query("SELECT count(*) FROM t;"))
    context.record("rows that survived", survived, "rows")
    if context.am == "lsm":
        server.query("SELECT lsm_check('t_1', true);")
        context.record("lsm_check after recovery", 1, "", note="found nothing wrong")


def plan(options):
    rows = options.rows // 40
    build_rows = options.rows // 5
    crash_rows = options.rows // 20
    limit = options.limit
    with_index = [am for am in options.am if am != "none"]
    groups = interleave(ID, CHURN, options.am, options.repeats,
                        lambda am: load_seconds(am, rows, limit) + ROUNDS * (options.seconds + 1),
                        lambda context: _churn(context, rows))
    if with_index:
        groups += interleave(ID, BUILD, with_index, options.repeats,
                             lambda am: load_seconds("none", build_rows, limit) + build_rows / 1e6 * 1.5,
                             lambda context: _build(context, build_rows))
    groups += interleave(ID, RECOVERY, options.am[-1:] if options.quick else options.am, options.repeats,
                         lambda am: load_seconds(am, crash_rows, limit) + START_S + 2,
                         lambda context: _recovery(context, crash_rows))
    return groups
