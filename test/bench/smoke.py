"""Runs the benchmark suite at its smallest size and checks its results. Prints TAP lines; tools/test.sh calls it.

    smoke.py TREE PG_CONFIG FOLDER

PG_CONFIG names a server in which pg_lsm is installed; FOLDER is for results. Timings are not checked. The run is
interrupted in the middle and then resumed.
"""

import csv
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

AMS = ("none", "btree", "lsm")
TIMEOUT_S = 800


class Tap:
    def __init__(self):
        self.number, self.failed = 0, 0

    def check(self, good, name):
        self.number += 1
        self.failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.number, name), flush=True)


class TapResult(unittest.TestResult):
    def __init__(self, tap):
        super().__init__()
        self.tap = tap

    def addSuccess(self, test):
        self.tap.check(True, test.id())

    def addFailure(self, test, err):
        print("# " + self._exc_info_to_string(err, test).replace("\n", "\n# "))
        self.tap.check(False, test.id())

    addError = addFailure


def unit_tests(tap, tree):
    sys.path[:0] = [os.path.join(tree, "bench"), os.path.join(tree, "test", "bench")]
    unittest.defaultTestLoader.loadTestsFromName("test_suite").run(TapResult(tap))


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def finished(out):
    try:
        return [r for r in read_csv(os.path.join(out, "results.csv")) if r["metric"] == "finished"]
    except OSError:
        return []


def start(command, environment):
    # A shell that is started with SIGINT ignored, as in the background of another one, cannot catch it.
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def major_version(pg_config):
    return re.search(r"PostgreSQL (\d+)", subprocess.check_output([pg_config, "--version"]).decode()).group(1)


def check_versions(tap, tree, pg_config):
    """The options that choose the server. No server is started."""
    def complaint(*options, **environment):
        command = [os.path.join(tree, "bench", "bars.sh"), "--no-install", *options]
        environment.update({name: value for name, value in os.environ.items() if name != "PG_CONFIG"})
        run = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=60)
        return run.stdout.decode() if run.returncode == 1 else ""

    other = "17" if major_version(pg_config) == "18" else "18"
    tap.check("not " + other in complaint("--pg", other, "--pg-config", pg_config),
              "a server of another version than --pg is refused")
    tap.check("supports" in complaint("--pg=14"), "a version that pg_lsm does not support is refused")
    missing = [major for major in ("19", "17") if not os.path.exists("/usr/lib/postgresql/" + major)]
    if missing and major_version(pg_config) not in missing:
        # An empty folder has no chroot.
        with tempfile.TemporaryDirectory() as folder:
            text = complaint("--pg", missing[0], PG_LSM_CI_CACHE=folder)
        tap.check("hint: " in text and ("root" in text or "--no-install" in text),
                  "a version that is not installed is refused, with a hint, if there can be no chroot")


def check_due_times(tap, tree, pg_config, folder):
    """A stall makes all transactions late that are due during it, not only the one that waits."""
    from suite.cgroup import ControlGroup
    from suite.client import Client
    from suite.server import Server

    with tempfile.TemporaryDirectory(dir=folder) as work:
        subprocess.check_call(["make", "-s", "-C", os.path.join(tree, "bench", "client"), "OUT=" + work,
                               "PG_CONFIG=" + pg_config])
        bindir = subprocess.check_output([pg_config, "--bindir"]).decode().strip()
        with Server(bindir, work, "", ControlGroup(0), {"fsync": "off"}) as server:
            server.start_fresh()
            server.query("CREATE TABLE t (id bigserial PRIMARY KEY, at timestamptz, till int4, customer int4, product int4, "
                         "price int4, data text);")
            client = Client(os.path.join(work, "client"))
            client.call("load", {"k": "sales", "r": 10000}, server.conninfo(), "t")
            run = client.start("run", {"k": "sales", "r": 10000, "b": 50, "a": 1000, "t": 6}, server.conninfo(), "t",
                               "copy:1", "trim:1")
            while server.query("SELECT count(*) FROM t WHERE id > 10000;") == "0":
                time.sleep(0.05)
            server.query("BEGIN; LOCK TABLE t; SELECT pg_sleep(2); COMMIT;")
            report = client.finish(run)
            rows = int(server.query("SELECT count(*) FROM t;"))
    for name in ("copy", "trim"):
        # 120 transactions, of which the lock makes some 40 wait, up to two seconds.
        tap.check(report.value(name, "ops") == 120, "a fixed rate is caught up with after a stall: " + name)
        tap.check(report.value(name, "p95_us") > 300_000, "the time of a late transaction counts from when it was due: " + name)
    tap.check(rows == 10000, "as many rows are deleted as inserted")


def nothing_left(folder):
    return not [name for name in os.listdir(folder) if name.startswith("pg_lsm-bench")]


class Suite:
    def __init__(self, tree, pg_config, folder):
        self.out = os.path.join(folder, "out")
        self.environment = dict(os.environ, TMPDIR=folder, MPLCONFIGDIR=os.path.join(folder, "matplotlib"))
        self.command = [os.path.join(tree, "bench", "run.sh"), "--quick", "--installed", "--no-install", "--pg-config",
                        pg_config, "--out", self.out]

    def start(self, *more):
        return start(self.command + list(more), self.environment)

    def run(self, *more):
        """(exit status, output)"""
        process = self.start(*more)
        output = process.communicate(timeout=TIMEOUT_S)[0].decode(errors="replace")
        return process.returncode, output


def show(output):
    print("# " + output.strip().replace("\n", "\n# "))


def interrupted(tap, suite, after):
    """Starts a run, and interrupts it when this many groups are finished."""
    process = suite.start()
    deadline = time.monotonic() + TIMEOUT_S
    while len(finished(suite.out)) < after and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0].decode(errors="replace")
    tap.check(process.returncode == 130, "an interrupted run ends with status 130")
    if process.returncode != 130:
        show(output)
    done = len(finished(suite.out))
    tap.check(done >= after, "an interrupted run keeps its results")
    tap.check(nothing_left(os.path.dirname(suite.out)), "an interrupted run leaves no server and no folder")
    return done


def check_report(tap, out):
    with open(os.path.join(out, "report.html")) as file:
        text = file.read()
    tap.check(len(text) < 3_000_000, "the report is small")
    references = re.findall(r'(?:src|href)="([^"]*)"', text)
    links = [r for r in references if not r.startswith(("#", "data:"))]
    tap.check("<script" not in text and "url(" not in text and
              all(r.startswith("https://") and 'href="%s"' % r in text for r in links),
              "the report needs no other file")
    tap.check(text.count("data:image/png") >= 15, "the report has its plots")
    tap.check(0 < text.find("data:image/png") < text.find('class="main"') < text.find("<h2"),
              "the report begins with the main plot and table")
    tap.check("<table" not in re.sub(r"<details>.*?</details>", "", text[text.find("<h2"):], flags=re.S),
              "the other tables are folded")
    pictures = [name for name in os.listdir(out) if name.endswith(".png")]
    tap.check(len(pictures) == text.count("data:image/png"), "the plots are there as PNG files")
    tap.check(all(os.path.getsize(os.path.join(out, name)) > 5000 for name in pictures), "no plot is empty")


def check_results(tap, out):
    results = read_csv(os.path.join(out, "results.csv"))
    there = {(r["experiment"], r["am"]) for r in results if r["metric"] == "finished"}
    for experiment in ("1", "2", "3", "4", "5", "6", "7", "9", "10", "11"):
        tap.check(all((experiment, am) in there for am in AMS), "experiment %s has results of all systems" % experiment)
    failed = [r for r in results if r["metric"] == "failed"]
    for r in failed:
        show("%s: %s" % (r["group"], r["note"]))
    tap.check(not failed, "nothing failed")
    groups = [r["group"] for r in results if r["metric"] == "finished"]
    tap.check(len(groups) == len(set(groups)), "no group was measured twice")
    loads = [r for r in results if r["metric"] == "rows" and r["note"] == ""]
    tap.check(loads and all(float(r["value"]) >= 500 for r in loads), "tables were loaded")
    figures = {(r["experiment"], r["am"], r["metric"], r["x"]): float(r["value"]) for r in results}
    steps = ["qr1000", "qr500", "qr100", "qp1000", "qp500", "qp100"]
    tap.check(all(figures["9", am, metric, step] > 0 for am in AMS[1:] for step in steps
                  for metric in ("inserts/s", "deletes/s", "queries/s", "share of the rate", "server CPU/operation")),
              "the insert benchmark has all its steps")
    tap.check(len({am for experiment, am, _, _ in figures if experiment == "10"}) == 5, "the alternatives are there")
    tap.check(all(figures["11", am, metric, ""] > 0 for am in AMS[1:] for metric in ("upserts/s", "updates/s")) and
              all(figures["11", am, "index size", "VACUUM 3"] > 0 for am in AMS[1:]), "updates have rates and sizes")
    runs = {when: [float(r["value"]) for r in results if r["metric"] == "runs, fresh, " + when]
            for when in ("before", "afterwards")}
    tap.check(runs["before"] and max(runs["before"]) > 1 and runs["before"] == runs["afterwards"],
              "a fresh index has the same runs when it has been read")


class Bars:
    """bars.sh, with tables so small that a turn takes a second or two."""

    def __init__(self, tree, pg_config, folder):
        self.folder = folder
        self.csv = os.path.join(folder, "bars.csv")
        self.environment = dict(os.environ, TMPDIR=folder)
        self.command = [os.path.join(tree, "bench", "bars.sh"), "--installed", "--no-install", "--pg-config", pg_config,
                        "--pg", major_version(pg_config), "--csv", self.csv, "--memory", "0", "--repeats", "1", "--seconds", "0.3", "--warmup", "0.1",
                        "--rest", "0.3", "--set", "pg_lsm.idle_delay=100ms", "--set", "fsync=off",
                        "--set", "shared_buffers=32MB"]

    def rows(self):
        return read_csv(self.csv) if os.path.exists(self.csv) else []

    def interrupted(self, tap):
        process = start(self.command + ["--bars", "clients", "--rows", "200000", "--repeats", "100"], self.environment)
        deadline = time.monotonic() + TIMEOUT_S
        while not any(r["record"] == "figure" for r in self.rows()) and process.poll() is None \
                and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0].decode(errors="replace")
        tap.check(process.returncode == 130, "interrupted bars end with status 130")
        if process.returncode != 130:
            show(output)
        tap.check(any(r["record"] == "bar" for r in self.rows()), "interrupted bars keep what was measured")
        tap.check(nothing_left(self.folder), "interrupted bars leave no server and no folder")

    def measured(self, tap):
        names = ("int4", "onetx", "wal-1GB", "wal-16GB", "cover", "inserts", "beyond", "lookups", "flash-memory",
                 "workers", "standby", "build", "small", "type-C", "type-inet", "large-numeric", "billion")
        before = len(self.rows())
        process = start(self.command + ["--bars", ",".join(names), "--rows", "20000", "--check"], self.environment)
        output = process.communicate(timeout=TIMEOUT_S)[0].decode(errors="replace")
        tap.check(process.returncode in (0, 1), "all bars are measured")
        rows = self.rows()[before:]
        tap.check(before > 0 and rows, "runs are appended to one file")
        tap.check({r["experiment"] for r in rows if r["record"] == "bar"} == set(names) | {"all"}, "each bar has a verdict")
        judged = [r for r in rows if r["record"] == "bar" and r["x"]]
        # Of a standby there is nothing to be seen, at best.
        good = all(r["value"] and (float(r["value"]) > 0 or r["experiment"] == "standby") for r in judged)
        good &= not any("not measured" in r["extra"] for r in judged)
        tap.check(good, "each bar has a figure")
        undecided = {r["experiment"] for r in judged if r["extra"].startswith("undecided")}
        tap.check(undecided == {"cover", "beyond", "large-numeric"}, "what has to be beyond memory is not decided without a limit")
        self.check_loads(tap, rows)
        if process.returncode not in (0, 1) or not good:
            show(output)

    @staticmethod
    def check_loads(tap, rows):
        figures = {}
        for r in rows:
            if r["record"] == "figure":
                figures.setdefault((r["experiment"], r["method"]), {})[r["name"]] = float(r["value"])
        loads = [figures["int4", method] for method in AMS]
        tap.check(all(load["server CPU us/row"] > 0 and load["server CPU us/row, until settled"] >= load["server CPU us/row"]
                      for load in loads), "the server's CPU is kept for all systems, until all have rested")
        tap.check(all("debt bytes at the end" in load and "seconds until, settled" in load for load in loads),
                  "debt at the end, and the rest, are kept for all systems")
        lsm = figures["int4", "lsm"]
        tap.check(0 < lsm["live index bytes/row"] <= lsm["peak index bytes/row"] and lsm["runs at the end"] > 0,
                  "what is live is kept beside the peak")
        sizes = {(r["experiment"], r["value"]) for r in rows if r["record"] == "setting" and r["name"] == "max_wal_size"}
        tap.check({("wal-1GB", "1GB"), ("wal-16GB", "16GB")} <= sizes, "max_wal_size is kept, and is what it should be")
        tap.check(any(r["record"] == "turn" for r in rows), "the ratio of each turn is kept")
        billion = figures["billion", "lsm"]
        tap.check(all(name in billion for name in (
            "runs at the end", "file bytes, settled", "lookup key there, 1 client, fresh rate", "lsm_check",
            "lookup key there, 1 client, settled rate", "lsm_compact")), "the largest load has what belongs to it")


def check_standby_reads(tap, tree, pg_config, folder):
    command = [os.path.join(tree, "bench", "standby_reads.sh"), "--installed", "--no-install", "--pg-config", pg_config,
               "--pg", major_version(pg_config), "--memory", "0", "--rows", "20000", "--seconds", "0.5", "--warmup", "0.1",
               "--set", "fsync=off"]
    process = start(command, dict(os.environ, TMPDIR=folder))
    output = process.communicate(timeout=TIMEOUT_S)[0].decode(errors="replace")
    tap.check(process.returncode == 0, "reads on standbys are measured, and the standbys answer as the primary does")
    tap.check(all(re.search("^%s +both +[0-9,.]+ +[0-9,.]+ " % am, output, re.M) for am in AMS[1:]),
              "both methods have figures for reads beside a load")
    tap.check(nothing_left(folder), "standbys are stopped and removed")
    if process.returncode != 0:
        show(output)


def check_queues(tap, tree, pg_config, folder):
    command = [os.path.join(tree, "bench", "queues.sh"), "--installed", "--no-install", "--pg-config", pg_config,
               "--pg", major_version(pg_config), "--quick"]
    process = start(command, dict(os.environ, TMPDIR=folder))
    output = process.communicate(timeout=TIMEOUT_S)[0].decode(errors="replace")
    tap.check(process.returncode == 0 and re.search(r"^idempotency-keys +lsm of +B-tree +[0-9.]+", output, re.M),
              "idempotency keys are measured with both methods")
    tap.check(nothing_left(folder), "the server of the queues is stopped and removed")
    if process.returncode != 0:
        show(output)


def main():
    tree, pg_config, folder = sys.argv[1:]
    tap = Tap()
    unit_tests(tap, tree)
    check_versions(tap, tree, pg_config)
    check_due_times(tap, tree, pg_config, folder)
    bars = Bars(tree, pg_config, folder)
    bars.interrupted(tap)
    bars.measured(tap)
    check_standby_reads(tap, tree, pg_config, folder)
    check_queues(tap, tree, pg_config, folder)
    suite = Suite(tree, pg_config, folder)
    done = interrupted(tap, suite, 3)
    status, output = suite.run()
    tap.check(status == 0, "the run goes on and ends well")
    if status != 0:
        show(output)
    tap.check("%d of " % done in output, "the run goes on behind what is there")
    check_results(tap, suite.out)
    check_report(tap, suite.out)

    before = read_csv(os.path.join(suite.out, "results.csv"))
    status, output = suite.run()
    tap.check(status == 0 and read_csv(os.path.join(suite.out, "results.csv")) == before and "0 measurements" in output,
              "a finished run measures nothing again")
    status, output = suite.run("--seed", "2")
    tap.check(status == 2 and "--fresh" in output, "other options are refused, with a hint")
    status, output = suite.run("--report-only", "--bars", bars.csv)
    tap.check(status == 0, "the report can be drawn again, with the largest load")
    check_report(tap, suite.out)
    tap.check(os.path.exists(os.path.join(suite.out, "e8-billion.png")), "which is drawn, too")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
