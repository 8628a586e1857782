"""Runs the suite. bench/run.sh calls this with the programs it built."""

import datetime
import sys
import time

from . import BenchError, catch_interrupts, machine, options as options_module
from .cgroup import ControlGroup
from .client import Client
from .context import COLUMNS, Context
from .plan import Progress
from .results import FAILED, FINISHED, ResultStore
from .server import Server
from .stats import duration


def collect_facts(options, store, server, client, group):
    """The report's facts about the run. A resumed run keeps those of the first start."""
    facts = store.run["facts"]
    facts.setdefault("begun", datetime.datetime.now().astimezone().isoformat(timespec="seconds"))
    facts["memory limit"] = group.note
    if "machine" not in facts:
        print("Examining the machine", flush=True)
        facts["machine"] = machine.facts(server.work, options.quick)
        facts["server"] = server.version()
        facts["source"] = options.commit
        rows = 50_000 if options.quick else 2_000_000
        facts["generator"] = {kind: round(client.generator_rate(kind, rows, options.seed))
                              for kind in ["int4_random", "int4_seq"] + sorted(COLUMNS)}
        server.start_fresh()
        server.query("CREATE EXTENSION pg_lsm;")
        facts["extension"] = server.query("SELECT extversion FROM pg_extension WHERE extname = 'pg_lsm';")
        facts["settings"] = server.stated_settings()
        server.stop()
    store.save_run()


def measure(group, options, store, server, client):
    """Measures a group. A failure is recorded and returned."""
    context = Context(group, options, server, client)
    begin = time.monotonic()
    try:
        if options.quick:
            server.empty()
        else:
            server.start_fresh(group.memory_share)
        context.prepare_database()
        group.work(context)
        if not options.quick:
            server.stop()
    except (BenchError, OSError, ValueError, KeyError, ZeroDivisionError) as error:
        client.end_all()
        complaints = server.complaints()
        server.stop()
        context = Context(group, options, server, client)
        context.record(FAILED, 0, note=("%s: %s" % (type(error).__name__, error)).strip()[:2000])
        store.add(context.results, [])
        print("  failed: %s" % "\n  ".join([str(error)] + complaints), flush=True)
        return time.monotonic() - begin
    seconds = time.monotonic() - begin
    context.experiment, context.case = group.experiment, group.case
    context.record(FINISHED, seconds, "s")
    store.add(context.results, context.samples)
    return seconds


def run(options, store, server, client, group):
    collect_facts(options, store, server, client, group)
    groups = [g for module in options.modules for g in module.plan(options)]
    finished = store.finished_keys()
    progress = Progress(groups, finished)
    if finished:
        print("%d of %d measurements exist already" % (progress.done, len(groups)))
    todo = [g for g in groups if g.key not in finished]
    print("%d measurements, about %s" % (len(todo), duration(progress.left_s)), flush=True)
    begin = time.monotonic()
    for g in todo:
        print("%s  experiment %s, %s: %s%s" % (progress.text(), g.experiment, g.case, g.am,
                                               ", repeat %d" % g.repeat if options.repeats > 1 else ""), flush=True)
        progress.finished(g, measure(g, options, store, server, client))
    store.run["facts"]["measured_s"] = store.run["facts"].get("measured_s", 0) + round(time.monotonic() - begin)
    store.save_run()


def write_report(store, options):
    from . import report        # needs matplotlib, which --help does not
    print("The report is %s" % report.write(store, options.bars))


def main(arguments):
    options = options_module.parse(arguments)
    catch_interrupts()
    if options.report_only:
        store = ResultStore(options.out, None, must_exist=True)
        write_report(store, options)
        return 1 if store.failures() else 0

    group = client = None
    try:
        group = ControlGroup(options.memory)
        if options.memory and not group.limit_mb:
            print("note: the server's memory is not limited (%s)" % group.note)
        server = Server(options.bindir, options.work, options.user, group, options.settings)
        options.server_version = server.version()
        client = Client(options.client)
        store = ResultStore(options.out, options_module.run_options(options), options.fresh)
        with server:
            run(options, store, server, client, group)
        write_report(store, options)
    except KeyboardInterrupt:
        print("\nInterrupted. The same command continues from here.", flush=True)
        return 130
    finally:
        if client is not None:
            client.end_all()
        if group is not None:
            group.remove()
    for failure in store.failures():
        print("failed: %s: %s" % (failure.group, failure.note.splitlines()[0]), file=sys.stderr)
    return 1 if store.failures() else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        sys.exit(2)
