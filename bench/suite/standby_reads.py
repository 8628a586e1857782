"""Reads on two standbys: lookups and ranges of 10 rows, alone and while the primary takes a load of random keys.

Each method has a cluster of its own, with two standbys. Each server has a memory control group of its own, as on a
machine of its own, but all share the processors and the disk. The readers find a standby through libpq, in the order of
their connection string or at random, or through HAProxy. After the load, the standbys must give the primary's answers.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from . import BenchError, catch_interrupts, hidden_options, positive, say
from .cgroup import ControlGroup
from .client import Client
from .context import BackgroundWatch
from .server import PORT, Server, Standby, postgres_version

QUICK = {"rows": 300_000, "seconds": 3.0, "warmup": 0.5}
FULL = {"rows": 22_000_000, "seconds": 15.0, "warmup": 2.0}
STANDBYS = (1, 2)
PROXY_PORT = str(int(PORT) + 9)
RANGE_ROWS = 10
BATCH = 1000
MB = 1 << 20
LINE = "%-6s %-6s %9s %9s %8s %9s %8s %8s %7s %7s %7s %9s  %-7s %s"
# A standby cancels a query that conflicts with replay at once, so no query delays replay.
STANDBY_SETTINGS = {"hot_standby_feedback": "off", "max_standby_streaming_delay": "0"}
CANCELED = ("SELECT confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock "
             "FROM pg_stat_database_conflicts WHERE datname = 'postgres';")
READERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reader';"
# The answer of a standby to the check: a row with one column of one byte, 't'.
IN_RECOVERY = "440000000b00010000000174"
PROXY = """global
    maxconn 200
defaults
    mode tcp
    timeout connect 5s
    timeout check 2s
    timeout client 1h
    timeout server 1h
listen standbys
    bind unix@{sockets}/.s.PGSQL.{port} mode 777
    balance leastconn
    option tcp-check
    tcp-check connect
    tcp-check send-binary {startup}
    tcp-check send-binary {query}
    tcp-check send-binary 5800000004
    tcp-check expect binary {answer}
    default-server inter 1s
"""


def message(kind, body):
    """A message of the frontend protocol, in hexadecimal digits."""
    return (kind + struct.pack("!i", len(body) + 4) + body).hex()


class Proxy:
    """HAProxy in front of all three servers. Use it in a `with` statement."""

    def __init__(self, servers):
        self.folder, self.sockets = servers[0].work, servers[0].sockets
        self.ports = [server.port for server in servers]

    def __enter__(self):
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(PROXY.format(
                sockets=self.sockets, port=PROXY_PORT, answer=IN_RECOVERY,
                startup=message(b"", struct.pack("!i", 3 << 16) + b"user\0postgres\0database\0postgres\0\0"),
                query=message(b"Q", b"SELECT pg_is_in_recovery()\0")))
            for port in self.ports:
                file.write("    server s%s unix@%s/.s.PGSQL.%s check\n" % (port, self.sockets, port))
        self.log = open(os.path.join(self.folder, "haproxy.log"), "w")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", path], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, start_new_session=True)
        # Servers count as up until their first check.
        time.sleep(4)
        if self.process.poll() is not None:
            with open(self.log.name) as log:
                raise BenchError("HAProxy did not start:\n%s" % log.read())
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()

    def conninfo(self):
        return "host=%s port=%s" % (self.sockets, PROXY_PORT)


class Lag(BackgroundWatch):
    """Follows how far replay is behind the primary, in bytes and in seconds, for all standbys."""

    def __init__(self, primary, standbys):
        super().__init__(0.5)
        self.primary, self.standbys = primary, standbys
        self.written = []           # (time, position) of the primary
        self.behind_bytes, self.behind_s = [0.0], [0.0]
        self.readers = [0 for _ in standbys]

    def __enter__(self):
        self._look()
        return super().__enter__()

    def _look(self):
        try:
            self._measure()
        except BenchError:
            pass                    # the caller sees it when its own queries fail

    def _measure(self):
        self.written.append((time.monotonic(), written(self.primary)))
        for i, standby in enumerate(self.standbys):
            position = replayed(standby)
            now = time.monotonic()
            self.behind_bytes.append(max(self.written[-1][1] - position, 0.0))
            self.behind_s.append(self._seconds_behind(position, now))
            self.readers[i] = max(self.readers[i], int(standby.query(READERS)))

    def _seconds_behind(self, position, now):
        if position >= self.written[-1][1]:
            return 0.0
        earlier = [(t, p) for t, p in self.written if p <= position]
        if not earlier:
            return now - self.written[0][0]
        # The position was written between two looks.
        (t1, p1), (t2, p2) = earlier[-1], self.written[len(earlier)]
        return now - (t1 + (t2 - t1) * (position - p1) / (p2 - p1))


def written(primary):
    return float(primary.query("SELECT pg_current_wal_lsn() - '0/0';"))


def replayed(standby):
    return float(standby.query("SELECT pg_last_wal_replay_lsn() - '0/0';"))


class Measurement:
    """One method: a primary and its standbys, which are running, and the client."""

    def __init__(self, options, method, primary, standbys, client):
        self.options, self.method = options, method
        self.primary, self.standbys, self.client = primary, standbys, client
        self.rows = 0               # in the table

    def prepare(self):
        """Loads the table, creates the index, and copies the primary."""
        self.primary.start_fresh()
        self.primary.query("CREATE EXTENSION pg_lsm; CREATE TABLE t (k int4, f char(10));")
        self._finish_load(self._start_load(rows=self.options.rows))
        # Random keys would leave a B-tree about as full as this.
        self.primary.query("CREATE INDEX t_k ON t USING %s (k)%s; VACUUM ANALYZE t; CHECKPOINT;" % (
            self.method, " WITH (fillfactor = 70)" if self.method == "btree" else ""))
        for standby in self.standbys:
            standby.start_fresh(STANDBY_SETTINGS)
        self.catch_up()

    def _start_load(self, rows=10 ** 12, seconds=0):
        return self.client.start("load", {"k": "int4_random", "r": rows, "f": self.rows, "b": BATCH, "t": seconds,
                                          "s": self.options.seed, "e": 100 * BATCH}, self.primary.conninfo(), "t")

    def _finish_load(self, process):
        report = self.client.finish(process)
        self.rows += int(report.value("load", "rows"))
        return report

    def catch_up(self):
        """Waits until the standbys have replayed all that the primary has written. Returns the seconds."""
        target, begin = written(self.primary), time.monotonic()
        while min(replayed(standby) for standby in self.standbys) < target:
            time.sleep(0.05)
            if time.monotonic() - begin > 600:
                raise BenchError("a standby does not catch up\n%s" % self.standbys[0].log_tail())
        return time.monotonic() - begin

    def _start_readers(self, conninfos):
        options = {"k": "int4_random", "r": self.options.rows, "s": self.options.seed, "t": self.options.seconds,
                   "w": self.options.warmup, "l": RANGE_ROWS}
        return [self.client.start("run", options, conninfo, "t", "lookup:2", "range:1") for conninfo in conninfos]

    def phase(self, name, conninfos, load):
        """Runs readers, a load, or both, and prints a line. Returns the number of canceled queries."""
        servers = [self.primary] + self.standbys
        canceled = sum(int(standby.query(CANCELED)) for standby in self.standbys)
        cpu = [server.cpu_seconds() for server in servers]
        begin = time.monotonic()
        with Lag(self.primary, self.standbys) as lag:
            loading = self._start_load(seconds=self.options.warmup + self.options.seconds) if load else None
            reports = [self.client.finish(reader) for reader in self._start_readers(conninfos)]
            report = self._finish_load(loading) if load else None
        seconds = time.monotonic() - begin
        caught_up = self.catch_up()
        cpu = [(server.cpu_seconds() - before) / seconds for server, before in zip(servers, cpu)]
        canceled = sum(int(standby.query(CANCELED)) for standby in self.standbys) - canceled
        seen = sum(int(r.value(what, "conflicts")) for r in reports for what in ("lookup", "range"))
        rate = report.value("load", "rows") / report.value("load", "seconds") if load else None
        say(LINE % (
            self.method, name, number(rate), *self._reads(reports, "lookup"), *self._reads(reports, "range"),
            number(max(lag.behind_bytes) / MB), "%.2f" % (sum(lag.behind_s) / len(lag.behind_s)),
            "%.2f" % max(lag.behind_s), "%.2f" % caught_up, max(canceled, seen),
            "/".join(str(n) for n in lag.readers), " ".join("%.2f" % c for c in cpu)))
        return max(canceled, seen)

    @staticmethod
    def _reads(reports, what):
        if not reports:
            return "-", "-"
        return (number(sum(r.value(what, "rate") for r in reports)),
                "%.2f" % (max(r.value(what, "p99_us") for r in reports) / 1000))

    def state(self):
        return "%s rows, index of %d MB" % (format(self.rows, ","),
                                            int(self.primary.query("SELECT pg_relation_size('t_k');")) / MB)

    def differences(self):
        """What the standbys answer otherwise than the primary does without the index, or find damaged."""
        generator, width = random.Random(self.options.seed), 2 ** 32 // max(self.rows // 1000, 1)
        starts = [generator.randrange(-2 ** 31, 2 ** 31 - width) for _ in range(8)]
        conditions = ["k BETWEEN %d AND %d" % (start, start + width) for start in starts]
        answer = "SELECT count(*), md5(string_agg(k::text, ' ' ORDER BY k)) FROM (%s) s;"
        right = self.primary.query(answer % ("SELECT k FROM t WHERE " + " OR ".join(conditions)),
                                   enable_indexscan="off", enable_indexonlyscan="off", enable_bitmapscan="off")
        by_index = answer % " UNION ALL ".join("SELECT k FROM t WHERE " + c for c in conditions)
        found = []
        for server in [self.primary] + self.standbys:
            if server.query(by_index, enable_seqscan="off", enable_bitmapscan="off") != right:
                found.append("port %s gives another answer by index" % server.port)
            if self.method == "lsm":
                server.query("SELECT lsm_check('t_k');")
        return found


def number(value):
    return "-" if value is None else format(int(value), ",") if value >= 10 else "%.1f" % value


def measure(options, method):
    """Measures one method. Returns whether the answers are right, and lsm has canceled no query."""
    with contextlib.ExitStack() as stack:
        def group():
            made = ControlGroup(options.memory)
            stack.callback(made.remove)
            return made

        client = Client(options.client)
        primary = stack.enter_context(Server(options.bindir, options.work, options.user, group(), options.settings))
        standbys = [stack.enter_context(Standby(primary, i, group())) for i in STANDBYS]
        stack.callback(client.end_all)
        run = Measurement(options, method, primary, standbys, client)
        run.prepare()
        say("%-6s %s; %s" % (method, run.state(), primary.group.note))
        canceled = 0
        readers = [conninfo(options, primary, standbys, i) for i in range(len(standbys))]
        with Proxy([primary] + standbys) if options.through == "haproxy" else contextlib.nullcontext() as proxy:
            if proxy:
                readers = [proxy.conninfo() + SESSION for _ in standbys]
            canceled += run.phase("reads", readers, False)
            canceled += run.phase("load", [], True)
            canceled += run.phase("both", readers, True)
        differences = run.differences()
        say("%-6s %s; %s" % (method, run.state(), ", ".join(differences) or "the standbys give the primary's answers"))
        for server in [primary] + standbys:
            for line in server.complaints():
                say("       " + line)
        return not differences and (canceled == 0 or method != "lsm")


SESSION = " user=postgres dbname=postgres application_name=reader"


def conninfo(options, primary, standbys, i):
    """For libpq: all servers in one string. Unless the choice is random, it is the first standby."""
    servers = [primary] + standbys[i:] + standbys[:i]
    text = "host=%s port=%s target_session_attrs=prefer-standby" % (
        ",".join(server.sockets for server in servers), ",".join(server.port for server in servers))
    return text + (" load_balance_hosts=random" if options.through == "random" else "") + SESSION


def parse(arguments):
    parser = argparse.ArgumentParser(prog="standby_reads.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    hidden_options(parser, "--bindir", "--client", "--work", "--user")
    parser.add_argument("--rows", type=positive, help="rows before the measurement (default 22 million)")
    parser.add_argument("--memory", type=int, default=128, metavar="MB",
                        help="memory of the control group of each server (default 128, 0: no limit)")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each measurement (default 15)")
    parser.add_argument("--warmup", type=float, metavar="S", help="before each of them (default 2)")
    parser.add_argument("--am", default="btree,lsm", metavar="NAME,...", help="access methods (default btree,lsm)")
    parser.add_argument("--through", choices=("order", "random", "haproxy"), default="order",
                        help="how readers find a standby: libpq takes the first one in the string, and half of the readers "
                        "name the other one first (default); libpq chooses at random (16 and later); haproxy")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="another setting for all servers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true",
                        help="300,000 rows, 3 seconds: shows only that everything works")
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.settings = {"wal_keep_size": "8GB", "max_connections": "30", "maintenance_work_mem": "32MB",
                        "shared_buffers": "%dMB" % (options.memory // 4 or 128)}
    try:
        options.settings.update(setting.split("=", 1) for setting in options.set)
    except ValueError:
        parser.error("--set takes NAME=VALUE")
    if options.through == "haproxy" and not shutil.which("haproxy"):
        parser.error("HAProxy is not installed")
    return options


def main(arguments):
    options = parse(arguments)
    catch_interrupts()
    version = postgres_version(options.bindir)
    if options.through == "random" and int(re.search(r"\d+", version).group()) < 16:
        print("error: libpq chooses at random from version 16 on", file=sys.stderr)
        return 2
    say("commit %s, %s, readers through %s\n" % (options.commit, version, options.through))
    say(LINE % (
        "method", "phase", "load", "lookups", "p99", "ranges", "p99", "behind", "mean", "most", "caught", "canceled",
        "readers", "cores used by"))
    say(LINE % (
        "", "", "rows/s", "/s", "ms", "/s", "ms", "MB", "s", "s", "up, s", "queries", "", "each server"))
    try:
        results = [measure(options, method) for method in options.am.split(",")]
    except BenchError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
