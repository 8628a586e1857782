"""Measures the requested experiments, and reports which bars are met."""

import sys
import time

from .. import BenchError, catch_interrupts
from ..cgroup import ControlGroup
from ..client import Client
from ..server import Server
from . import command_line
from .bench import Bench, RawLog, say
from .verdicts import MISSED, REACHED, UNDECIDED, at_most, heading, line, number

STALL_MS = 1000
FAILURES = (BenchError, OSError, ValueError, KeyError, IndexError, ZeroDivisionError)


def elapsed(begin):
    minutes, seconds = divmod(int(time.monotonic() - begin), 60)
    return "%d:%02d:%02d" % (minutes // 60, minutes % 60, seconds)


def measure(bench, experiment):
    """Returns whether the measurement succeeded."""
    try:
        experiment.measure(bench)
        return True
    except FAILURES as error:
        bench.client.end_all()
        say("  failed: %s: %s" % (type(error).__name__, error))
        for text in bench.server.complaints():
            say("  " + text)
        bench.raw.add("failure", type(error).__name__, "", "", str(error))
        return False
    finally:
        bench.raw.flush()


def stalls(bench):
    """Returns the verdict on stalls, over all that was measured."""
    lsm = [l for l in bench.longest if l[1] == "lsm"]
    if not lsm:
        return []
    worst, gap = max(lsm, key=lambda l: l[3]), max(lsm, key=lambda l: l[4])
    none = [l[3] for l in bench.longest if l[1] == "none"]
    parts = "%s, %s; longest time in which no client finished anything %s ms (%s, %s)" % (
        worst[0], worst[2], number(gap[4]), gap[0], gap[2])
    if none:
        parts += "; longest wait without an index %s ms" % number(max(none))
    return [at_most("all", "longest wait of a client, ms", worst[3], STALL_MS - 1, parts)]


def conclude(bench, measured):
    """Prints and stores all verdicts. Returns whether a bar was missed."""
    verdicts = [v for experiment in measured for v in experiment.verdicts()] + stalls(bench)
    if not verdicts:
        return False
    bench.raw.turn = ["", "", ""]
    say("\n" + heading())
    for verdict in verdicts:
        say(line(verdict))
        bench.raw.turn[0] = verdict.name
        for repeat, value in enumerate(verdict.turns, 1):
            bench.raw.turn[2] = repeat
            bench.raw.add("turn", verdict.text, "", "%.6g" % value)
        bench.raw.turn[2] = ""
        bench.raw.add("bar", verdict.text, verdict.bound, "" if verdict.value is None else "%.6g" % verdict.value,
                      "; ".join(text for text in (verdict.state, verdict.parts) if text))
    bench.raw.flush()
    say("\n%d reached, %d missed, %d undecided; raw figures in %s" % (
        *(sum(v.state == state for v in verdicts) for state in (REACHED, MISSED, UNDECIDED)), bench.raw.path))
    return any(v.state == MISSED for v in verdicts)


def run(options, bench):
    begin = time.monotonic()
    for name in ("commit", "rows", "memory", "shared_buffers", "set", "methods", "batch", "binary", "seed", "seconds",
                 "warmup", "limit", "btree_rows", "repeats"):
        value = getattr(options, name)
        bench.raw.add("option", name, "", ",".join(value) if isinstance(value, list) else value)
    bench.raw.add("option", "server", "", bench.server.version())
    measured, failed = [], False
    try:
        for number_, experiment in enumerate(options.experiments, 1):
            say("\n[%s] %d of %d, %s: %s" % (elapsed(begin), number_, len(options.experiments), experiment.name,
                                           experiment.title))
            measured.append(experiment)
            failed |= not measure(bench, experiment)
            for verdict in experiment.verdicts():
                say(line(verdict))
    except KeyboardInterrupt:
        bench.client.end_all()
        say("\nInterrupted after %s." % elapsed(begin))
        conclude(bench, measured)
        return 130
    missed = conclude(bench, measured)
    return 2 if failed else 1 if missed else 0


def main(arguments):
    options = command_line.parse(arguments)
    catch_interrupts()
    group = client = None
    try:
        raw = RawLog(options.csv)
        group = ControlGroup(options.memory, required=True)
        client = Client(options.client)
        server = Server(options.bindir, options.work, options.user, group, options.settings)
        return run(options, Bench(options, server, client, raw))
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    finally:
        if client is not None:
            client.end_all()
        if group is not None:
            group.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
