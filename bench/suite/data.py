"""The results of a run, in the form that plots, messages and tables need."""

import re
from collections import defaultdict, namedtuple

from .figures import color_of, in_order, label_of
from .results import FAILED, FINISHED
from .stats import megabytes, rate, si, spread

SamplePoint = namedtuple("SamplePoint", "x value extra")
# A line, or the bars of a method: points is {x: {repeat: value}}.
Curve = namedtuple("Curve", "label am color dashed points")

HIDDEN = (FINISHED, FAILED, "client CPU")
SAME_ROWS = "rows/s, last tenth of the rows that all reached"


class Data:
    """The results, in the form that figures and tables need."""

    def __init__(self, store, results=(), samples=()):
        """results, samples: additional ones, besides those of the store."""
        self.ams = store.run["options"]["am"].split(",")
        # The memory that the server had; None if there was no limit.
        limit = re.search(r"(\d+) MB$", store.run["facts"].get("memory limit") or "")
        self.memory_mb = int(limit.group(1)) if limit else None
        self.shared_buffers_mb = megabytes(store.run["options"].get("shared_buffers", "")) or 0
        self._variants = defaultdict(list)      # of methods, by experiment
        self._values = defaultdict(dict)        # (experiment, case, metric, x, am) -> {repeat: value}
        self._notes = {}                        # the same keys -> note
        self._units = {}                        # (experiment, case, metric) -> unit
        self._order = []                        # (experiment, case, metric, x), as first seen
        for r in store.results + list(results):
            if r.metric not in (FINISHED, FAILED):
                self._add(r.experiment, r.case, r.metric, r.x, r.am, int(r.repeat), float(r.value), r.unit, r.note)
        self._samples = defaultdict(lambda: defaultdict(list))
        for s in store.samples + list(samples):
            self._samples[s.experiment, s.case, s.am, s.series][int(s.repeat)].append(
                SamplePoint(float(s.x), float(s.value), s.extra))
        self._add_same_rows()

    def _add(self, experiment, case, metric, x, am, repeat, value, unit, note=""):
        key = (experiment, case, metric, x)
        if key not in self._order:
            self._order.append(key)
        if am not in self.ams and am not in self._variants[experiment]:
            self._variants[experiment].append(am)
        self._values[key + (am,)][repeat] = value
        if note:
            self._notes[key + (am,)] = note
        self._units[experiment, case, metric] = unit

    def _add_same_rows(self):
        """If loads ended at different sizes: the rate of each over the last tenth of the rows that all reached."""
        for experiment, case in {key[:2] for key in self._samples}:
            loads = {am: self.loads(experiment, case, am) for am in self.ams}
            repeats = set.intersection(*({r for r in by_repeat} for by_repeat in loads.values()))
            for repeat in repeats:
                ends = [loads[am][repeat][-1].x for am in self.ams]
                if max(ends) > min(ends):
                    for am in self.ams:
                        points = [(p.x, p.value) for p in loads[am][repeat]]
                        self._add(experiment, case, SAME_ROWS, "", am, repeat, rate(points, min(ends) * 0.9, min(ends)),
                                  "rows/s", "up to %s rows" % si(min(ends)))

    def values(self, experiment, case, metric, am):
        """{x: {repeat: value}}"""
        return {key[3]: self._values[key + (am,)] for key in self._order
                if key[:3] == (experiment, case, metric) and key + (am,) in self._values}

    def ams_of(self, experiment):
        """The methods of the run, and the variants of them that an experiment has."""
        return self.ams + self._variants.get(experiment, [])

    def loads(self, experiment, case, am):
        """{repeat: samples} of the load of a case."""
        return self._samples.get((experiment, case, am, "load"), {})

    def series(self, experiment, case, am, name):
        return self._samples.get((experiment, case, am, name), {})

    def cases(self, experiment):
        cases = []
        for key in self._order:
            if key[0] == experiment and key[1] not in cases:
                cases.append(key[1])
        return cases

    def rows(self, experiment, case):
        """Yields (metric, x, unit, {am: {repeat: value}}, {am: note}) of a case. A metric's entries are adjacent."""
        keys = [k for k in self._order if k[:2] == (experiment, case) and k[2] not in HIDDEN]
        metrics = []
        for key in keys:
            if key[2] not in metrics:
                metrics.append(key[2])
        for metric in metrics:
            for key in keys:
                if key[2] == metric:
                    yield (metric, key[3], self._units[experiment, case, metric],
                           {am: self._values[key + (am,)] for am in self.ams_of(experiment) if key + (am,) in self._values},
                           {am: self._notes[key + (am,)] for am in self.ams_of(experiment) if key + (am,) in self._notes})

    def client_shares(self):
        """(experiment, case, x, rows/s, cores that the client used) of all loads without an index, fastest first."""
        shares = []
        for experiment, case, metric, x in self._order:
            if metric == "client CPU":
                cpu = self._values.get((experiment, case, metric, x, "none"))
                speed = self._values.get((experiment, case, "rows/s", x, "none"))
                if cpu and speed:
                    shares.append((experiment, case, x, spread(list(speed.values()))[0], spread(list(cpu.values()))[0]))
        return sorted(shares, key=lambda s: -s[3])

    # --- for plots

    def shown(self, plot, experiment):
        return [am for am in in_order(self.ams_of(experiment)) if am not in plot.skip]

    def curves(self, plot, experiment):
        """Returns a list of curves for each part of a plot. Methods without values have no curve."""
        lists = []
        for part in plot.parts:
            curves = []
            for am in ([part.am] if part.am else self.shown(plot, experiment)):
                points = self.values(experiment, part.case, part.metric, am)
                if points:
                    label = part.label if part.am else ", ".join(t for t in (label_of(am), part.label) if t)
                    curves.append(Curve(label, am, color_of(am), part.dashed, points))
            lists.append(curves)
        return lists

    def median_load(self, experiment, case, am):
        """[(rows, seconds)] of the repeat that took the median time, or None."""
        loads = sorted(self.loads(experiment, case, am).values(), key=lambda samples: samples[-1].value)
        return [(s.x, s.value) for s in loads[len(loads) // 2]] if loads else None

    def index_bytes(self, experiment, case, am):
        """Returns the index's bytes per row, or None."""
        values = self.values(experiment, case, "index bytes/row", am).get("")
        return spread(list(values.values()))[0] if values else None
