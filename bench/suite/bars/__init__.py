"""Checks the bars, the goals of the project. bench/bars.sh starts it; bench/README.md says what it measures.

    command_line    the options
    bench           loading, running, watching and settling, for all measurements; the raw CSV
    verdicts        a bar, and the table of all bars
    loads           bars on loads by COPY
    sessions        bars on single-row INSERTs, and on lookups beside a load
    reads           bars on reads, fresh and settled; on loops, updates and queues
    flash           bars on the prefetching scan, cold and in memory
    types           bars on key types
    replay          bars on workers, and on a standby beside a load
    billion         a load of a billion rows, which is not among "all"
    builds          bars on CREATE INDEX and on small indexes

An experiment is an object with `name`, `title`, `methods`, `measure(bench)` and `verdicts()`. measure() prints as it
proceeds. verdicts() covers what has been measured so far.
"""
