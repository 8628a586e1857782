"""Experiment 7, third part: updates with VACUUM, CREATE INDEX, recovery after a crash."""

from ..figures import Figure, Panel
from ..plan import START_S, interleave, load_seconds
from ..context import SizeWatch

ID, NAME = "7", "upkeep"
TITLE = "UPDATE churn with VACUUM; CREATE INDEX; recovery"
SOURCE = "Ours."
WHAT = """Churn: churn(id int4 primary key, k int4, f) with an index on k; four clients (or the most, if fewer) change
k of random rows, so that each update is a new index entry; then VACUUM. Three rounds, autovacuum off. The primary key
is a btree in all systems. CREATE INDEX: on a filled table of random int4 keys, with the default maintenance_work_mem;
peak temporary space is that of sort files. Recovery: while rows are loaded all server processes are killed with
SIGKILL at seven tenths of the rows; the time is that from the start of the server until it answers. lsm_check then
verifies the lsm index against the table; a btree is not verified."""
READ = """Lower is better but for updates a second. Recovery time depends on how much WAL there is since the last
checkpoint; the table has it."""

CHURN, BUILD, RECOVERY = "churn", "create index", "recovery"
ROUNDS = 3

FIGURES = [
    Figure("e7-churn", "UPDATE churn, round by round", [
        Panel("lines", "updates", [CHURN], "updates/s", "round", "updates/s"),
        Panel("lines", "VACUUM", [CHURN], "VACUUM", "round", "seconds"),
        Panel("lines", "size of the index on k after VACUUM", [CHURN], "index bytes/row after VACUUM", "round",
              "bytes a row", skip=("none",)),
        Panel("lines", "99th percentile of updates", [CHURN], "updates p99", "round", "ms")]),
    Figure("e7-upkeep", "CREATE INDEX, and recovery after kill -9", [
        Panel("bars", "CREATE INDEX", [BUILD], "CREATE INDEX", ylabel="seconds", skip=("none",)),
        Panel("bars", "size of the new index", [BUILD], "index bytes/row, new", ylabel="bytes a row", skip=("none",)),
        Panel("bars", "recovery", [RECOVERY], "recovery time", ylabel="seconds"),
        Panel("bars", "WAL to replay", [RECOVERY], "WAL to replay", ylabel="MB")]),
]


def _churn(context, rows):
    clients = min(max(context.options.clients), 4)
    context.create_table("churn", with_options=" WITH (autovacuum_enabled = off)")
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
    groups += interleave(ID, RECOVERY, options.am, options.repeats,
                         lambda am: load_seconds(am, crash_rows, limit) + START_S + 2,
                         lambda context: _recovery(context, crash_rows))
    return groups
