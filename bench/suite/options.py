"""The command line of run.sh."""

import argparse
import os

from . import experiments, positive

EPILOG = """Experiments, by number or name:
%s
A run that was interrupted goes on where it was when it is started again with the same options. bench/README.md says how
to read the report."""

QUICK = {"rows": 20000, "repeats": 1, "clients": "1,2", "limit": 20.0, "seconds": 0.05, "warmup": 0.01}
FULL = {"rows": 20_000_000, "repeats": 2, "clients": "1,4,8", "limit": 240.0, "seconds": 4.0, "warmup": 1.0}

# Options that decide what is measured. A resumed run must use the same ones.
RUN_OPTIONS = ("rows", "memory", "shared_buffers", "clients", "am", "experiments", "repeats", "limit", "seconds",
               "warmup", "set", "seed", "quick", "source", "server_version")


def make_parser():
    parser = argparse.ArgumentParser(
        prog="run.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Reproduces published experiments on indexes under heavy inserts, and draws the results.",
        epilog=EPILOG % "\n".join("  %s  %-12s %s" % (m.ID, m.NAME, m.TITLE) for m in experiments.MODULES))
    for name in ("--bindir", "--client", "--work", "--user", "--source", "--commit"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=positive, help="rows of the largest table; others are fractions of it "
                        "(default 20000000)")
    parser.add_argument("--memory", type=int, default=768, metavar="MB",
                        help="memory of the control group that the server runs in (default 768, 0: no limit); without the "
                        "right to make a group there is no limit, and the report says so")
    parser.add_argument("--shared-buffers", default="384MB", metavar="SIZE", help="default 384MB")
    parser.add_argument("--clients", metavar="N,...", help="numbers of connections (default 1,4,8)")
    parser.add_argument("--am", default="none,btree,lsm", metavar="NAME,...",
                        help="access methods to compare; none is a table without the index (default none,btree,lsm)")
    parser.add_argument("--experiments", default="all", metavar="NAME,...", help="which ones, see below (default all)")
    parser.add_argument("--repeats", type=positive, help="of each case (default 2); the largest loads of random keys always run "
                        "three times, the other large ones once")
    parser.add_argument("--limit", type=float, metavar="S", help="a load that takes longer is stopped and reported as "
                        "such (default 240)")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each measurement of queries (default 4)")
    parser.add_argument("--warmup", type=float, metavar="S", help="before each of them (default 1)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="another setting for the server, the same for all systems; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of all random keys (default 1)")
    parser.add_argument("--out", default="bench-results", metavar="DIR", help="folder for results (default bench-results)")
    parser.add_argument("--quick", action="store_true", help="tiny tables: shows in about a minute whether everything works; "
                        "its figures mean nothing")
    parser.add_argument("--fresh", action="store_true", help="delete the results in the folder")
    parser.add_argument("--bars", metavar="FILE", help="show the billion rows that bench/bars.sh has written to this file, "
                        "too")
    parser.add_argument("--report-only", action="store_true", help="only draw the report of the existing results")
    return parser


def parse(arguments):
    parser = make_parser()
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    try:
        options.clients = sorted({positive(n) for n in options.clients.split(",")})
        options.settings = dict(setting.split("=", 1) for setting in options.set)
    except (ValueError, argparse.ArgumentTypeError):
        parser.error("--clients takes numbers with commas between them, --set takes NAME=VALUE")
    options.am = options.am.split(",")
    if len(set(options.am)) != len(options.am):
        parser.error("an access method is named twice")
    if options.rows < 10000:
        parser.error("--rows must be at least 10000")
    try:
        options.modules = experiments.select(options.experiments)
    except ValueError as error:
        parser.error(str(error))
    options.experiments = ",".join(m.NAME for m in options.modules)
    options.out = os.path.abspath(options.out)
    options.settings.setdefault("shared_buffers", options.shared_buffers)
    if options.quick:
        options.settings.setdefault("fsync", "off")
    return options


def run_options(options):
    """The values that identify a run, as stored in run.json."""
    values = {name: getattr(options, name) for name in RUN_OPTIONS}
    values["clients"] = ",".join(map(str, options.clients))
    values["am"] = ",".join(options.am)
    values["set"] = ",".join("%s=%s" % item for item in sorted(options.settings.items()))
    return values
