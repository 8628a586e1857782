"""The benchmark suite of pg_lsm. bench/run.sh starts it; bench/README.md says what it measures."""


class BenchError(Exception):
    """A measurement, or the whole run, cannot go on. The message is for the user."""
