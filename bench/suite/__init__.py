"""The benchmark suite of pg_lsm. bench/run.sh starts it; bench/README.md says what it measures."""

import argparse
import signal


class BenchError(Exception):
    """A measurement, or the whole run, cannot continue. The message is for the user."""


def say(text=""):
    print(text, flush=True)


def hidden_options(parser, *names):
    """Adds the options that a script passes to its module, and --commit."""
    for name in names:
        parser.add_argument(name, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--commit", default="unknown", help=argparse.SUPPRESS)


def positive(text):
    """Converts an option's value to a positive integer. 1_000_000 is allowed."""
    value = int(text.replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError("must be positive")
    return value


def _interrupt(*_):
    # Only the first signal counts: a second one must not interrupt the cleanup, which stops the servers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def catch_interrupts():
    """SIGINT and SIGTERM raise KeyboardInterrupt, even if we were started with them ignored."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
