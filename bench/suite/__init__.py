"""The benchmark suite of pg_lsm. bench/run.sh starts it; bench/README.md says what it measures."""

import argparse
import signal


class BenchError(Exception):
    """A measurement, or the whole run, cannot go on. The message is for the user."""


def positive(text):
    """A number of something, as an option; 1_000_000 is fine."""
    value = int(text.replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError("must be positive")
    return value


def _interrupt(*_):
    # Once: what is done then, stopping a server in order, is not to be interrupted again.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def catch_interrupts():
    """SIGINT and SIGTERM raise KeyboardInterrupt, also when we were started with them ignored."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
