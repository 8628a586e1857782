"""Calls the load generator, bench/client, and reads its output."""

import os
import subprocess

from . import BenchError


class Report:
    """The lines of one call: results by (what, name), samples as lists of words."""

    def __init__(self):
        self.results, self.samples = {}, []

    def add(self, line):
        words = line.strip().split(",")
        if words[0] == "result" and len(words) == 4:
            self.results[words[1], words[2]] = float(words[3])
        elif words[0] == "sample":
            self.samples.append(words[1:])

    def value(self, what, name):
        return self.results[what, name]

    def cpu_share(self):
        """The number of cores that the client itself used."""
        wall = self.value("client", "wall_s")
        return self.value("client", "cpu_s") / wall if wall > 0 else 0.0


class Client:
    """The program and its running calls, so that the calls can be ended."""

    def __init__(self, program):
        self.program = program
        self.calls = []

    def start(self, mode, options, conninfo, table, *classes, one_core=False):
        command = [self.program, mode]
        for name, value in options.items():
            command += ["-" + name] if value is True else ["-" + name, str(value)]
        process = subprocess.Popen(command + [conninfo, table] + list(classes), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        if one_core:
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        self.calls.append(process)
        return process

    def finish(self, process, on_line=None):
        """Reads a started call to its end. on_line(report) is called for each line."""
        report = Report()
        try:
            for line in process.stdout:
                report.add(line.decode())
                if on_line:
                    on_line(report)
            message = process.stderr.read().decode().strip()
            if process.wait() != 0:
                raise BenchError("the load generator failed: %s" % message)
        finally:
            self.end(process)
        return report

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
        if process in self.calls:
            self.calls.remove(process)

    def end_all(self):
        for process in list(self.calls):
            self.end(process)

    def call(self, mode, options, conninfo, table, *classes, one_core=False):
        return self.finish(self.start(mode, options, conninfo, table, *classes, one_core=one_core))

    def generator_rate(self, kind, rows, seed):
        """Rows a second that the client makes on one core when it does not wait for a server."""
        report = self.call("load", {"n": True, "k": kind, "r": rows, "s": seed, "e": rows}, "", "")
        return report.value("load", "rows") / report.value("load", "seconds")
