"""The files of a run: results.csv, samples.csv and run.json.

results.csv has a row for each figure. A group's rows are written at once when it is finished, behind its samples, and end
with one of the metric "finished", whose value is the seconds that the group took, or "failed", whose note is the message.
"""

import csv
import json
import os
from collections import namedtuple

from . import BenchError

Result = namedtuple("Result", "group experiment case x am repeat metric value unit note")
Sample = namedtuple("Sample", "group experiment case am repeat series x value extra")

FINISHED, FAILED = "finished", "failed"


def _read(path, kind):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        rows = csv.reader(file)
        if next(rows, None) != list(kind._fields):
            raise BenchError("%s is not a file of this version of the suite; use --fresh or another --out" % path)
        # An interrupted write may have left half a line at the end.
        return [kind(*row) for row in rows if len(row) == len(kind._fields)]


def _write(path, kind, rows, mode):
    with open(path, mode, newline="") as file:
        writer = csv.writer(file)
        if mode == "w":
            writer.writerow(kind._fields)
        writer.writerows(rows)
        file.flush()
        os.fsync(file.fileno())


class ResultStore:
    """The results in a folder, including those of earlier runs with the same options."""

    def __init__(self, folder, run_options, fresh=False, must_exist=False):
        self.folder = folder
        self.results_path = os.path.join(folder, "results.csv")
        self.samples_path = os.path.join(folder, "samples.csv")
        self.run_path = os.path.join(folder, "run.json")
        self.results, self.samples = [], []
        if must_exist and not os.path.exists(self.run_path):
            raise BenchError("%s has no results yet" % folder)
        os.makedirs(folder, exist_ok=True)
        if fresh or not os.path.exists(self.run_path):
            self.run = {"options": run_options, "facts": {}}
            self.save_run()
            _write(self.results_path, Result, [], "w")
            _write(self.samples_path, Sample, [], "w")
        else:
            with open(self.run_path) as file:
                self.run = json.load(file)
            if run_options is not None:
                self._check_options(run_options)
            self._load()

    def _check_options(self, run_options):
        other = ["%s: %s there, %s now" % (name, self.run["options"].get(name), run_options.get(name))
                 for name in sorted(set(run_options) | set(self.run["options"]))
                 if self.run["options"].get(name) != run_options.get(name)]
        if other:
            raise BenchError("%s holds results of a run with other options (%s)\n"
                             "Use --fresh to delete them, or another --out." % (self.folder, "; ".join(other)))

    def _load(self):
        """Keeps the rows of finished groups. Everything else is measured again."""
        results, samples = _read(self.results_path, Result), _read(self.samples_path, Sample)
        finished = {r.group for r in results if r.metric == FINISHED}
        self.results = [r for r in results if r.group in finished and r.metric != FAILED]
        self.samples = [s for s in samples if s.group in finished]
        if len(self.results) != len(results):
            _write(self.results_path, Result, self.results, "w")
        if len(self.samples) != len(samples):
            _write(self.samples_path, Sample, self.samples, "w")

    def save_run(self):
        with open(self.run_path + ".new", "w") as file:
            json.dump(self.run, file, indent=1, sort_keys=True)
            file.write("\n")
        os.replace(self.run_path + ".new", self.run_path)

    def finished_keys(self):
        return {r.group for r in self.results if r.metric == FINISHED}

    def failures(self):
        return [r for r in self.results if r.metric == FAILED]

    def add(self, results, samples):
        """Writes the rows of a group. The results decide whether the group counts, so they come last."""
        results = [Result(*(str(v) for v in r)) for r in results]
        samples = [Sample(*(str(v) for v in s)) for s in samples]
        _write(self.samples_path, Sample, samples, "a")
        _write(self.results_path, Result, results, "a")
        self.results += results
        self.samples += samples
