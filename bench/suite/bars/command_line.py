"""The command line of bars.sh."""

import argparse

from .. import hidden_options, positive
from . import billion, builds, flash, large_types, loads, reads, replay, sessions, types

METHODS = ("none", "lsm", "btree")
QUICK = {"rows": 2_000_000, "seconds": 8.0, "warmup": 1.0, "limit": 120.0}
FULL = {"rows": 100_000_000, "seconds": 60.0, "warmup": 10.0, "limit": 1500.0}
# Names that stand for several experiments.
ALIASES = {"space": ["int4"], "wal": ["int4"], "worst": ["int4"],
           "walsize": ["wal-" + size for size in loads.MAX_WAL_SIZES],
           "types": [experiment.name for experiment in types.EXPERIMENTS],
           "large": [experiment.name for experiment in large_types.EXPERIMENTS]}

DESCRIPTION = """Checks the project's bars: ratios of lsm to no index and to btree, taken within this run, with the systems in turns,
in a server of PostgreSQL's own settings (but shared_buffers) within a memory control group."""
EPILOG = """Bars, by name:
%s
  int4 is also called wal, space and worst; walsize stands for all that begin with wal-,
  types for all that begin with type-, large for all that begin with large-. All sizes are shares of --rows. What has been measured is in the file of
  --csv, which runs append to, also after an interrupt. The exit status is 0 when no bar is missed, 1 when one is, 2 when
  something could not be measured. bench/README.md says how it is measured."""


def experiments():
    return [experiment for module in (loads, sessions, reads, flash, replay, builds, types, large_types, billion)
            for experiment in module.EXPERIMENTS]


def make_parser():
    parser = argparse.ArgumentParser(
        prog="bars.sh", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG % "\n".join("  %-9s %s" % (e.name, e.title) for e in experiments()))
    hidden_options(parser, "--bindir", "--client", "--work", "--user")
    parser.add_argument("--bars", default="all", metavar="NAME,...", help="which ones, see below (default: all but billion)")
    parser.add_argument("--rows", type=positive, help="rows of the largest load (default 100 million; of billion a billion)")
    parser.add_argument("--btree-rows", type=positive, help="most rows to load into a btree (default: all)")
    parser.add_argument("--limit", type=float, metavar="S",
                        help="a load is stopped after S seconds, which is meant for btree (default 1500)")
    parser.add_argument("--methods", default=",".join(METHODS), metavar="NAME,...",
                        help="which ones, in which order they begin (default: none,lsm,btree)")
    parser.add_argument("--repeats", type=positive, help="turns of each method (default: 1 for loads, 2 for INSERTs "
                        "in memory, 3 for CREATE INDEX)")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each measurement that is not a load (default 60)")
    parser.add_argument("--warmup", type=float, metavar="S", help="before each of them (default 10)")
    parser.add_argument("--rest", type=float, default=3.0, metavar="S", help="an index is settled when nothing has changed "
                        "for S seconds more than pg_lsm.idle_delay (default 3)")
    parser.add_argument("--settle-limit", type=float, default=900, metavar="S",
                        help="longest time to wait until an index is settled (default 900)")
    parser.add_argument("--quick", action="store_true",
                        help="2 million rows, 8 seconds: a few minutes. Nothing is beyond memory then, so some bars are "
                        "not decided")
    parser.add_argument("--batch", type=positive, default=1000, help="rows in a transaction (default 1000)")
    parser.add_argument("--binary", action="store_true", help="COPY in binary format instead of text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", type=int, default=768, metavar="MB",
                        help="memory of the control group (default 768, 0: no limit)")
    parser.add_argument("--shared-buffers", default="384MB")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting for the server")
    parser.add_argument("--check", action="store_true", help="run lsm_check on each index that was loaded")
    parser.add_argument("--csv", default="bars.csv", help="file for the raw figures (default bars.csv)")
    return parser


def _select(text):
    known = {experiment.name: experiment for experiment in experiments()}
    if text == "all":
        return [experiment for experiment in known.values() if not getattr(experiment, "only_by_name", False)]
    names = [name for word in text.split(",") for name in ALIASES.get(word, [word])]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError("there is no bar \"%s\"" % unknown[0])
    return [known[name] for name in known if name in names]


def parse(arguments):
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.rows is None and options.bars == "billion" and not options.quick:
        options.rows = billion.ROWS
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.methods = options.methods.split(",")
    if not set(options.methods) <= set(METHODS):
        parser.error("methods are %s" % ", ".join(METHODS))
    try:
        options.experiments = _select(options.bars)
        options.settings = dict(setting.split("=", 1) for setting in options.set)
    except ValueError as error:
        parser.error(str(error))
    options.settings.setdefault("shared_buffers", options.shared_buffers)
    return options
