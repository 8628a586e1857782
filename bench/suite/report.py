"""The report: one self-contained HTML file with the plots, and the plots as PNG files beside it."""

import base64
import html
import os
from collections import defaultdict, namedtuple

from . import experiments, plots
from .experiments import e8_billion
from .results import FAILED, FINISHED
from .stats import duration, ratio_to, rate, si, spread

SamplePoint = namedtuple("SamplePoint", "x value extra")

STYLE = """
body { font-family: sans-serif; max-width: 66em; margin: 1em auto; padding: 0 1em; color: #222; line-height: 1.4 }
h1, h2 { border-bottom: 1px solid #ccc } h2 { margin-top: 2em }
table { border-collapse: collapse; font-size: 85%; margin: 0.6em 0 }
td, th { border: 1px solid #ddd; padding: 0.15em 0.5em; text-align: left; vertical-align: top }
td.n { text-align: right; white-space: nowrap } th { background: #f4f4f4 }
img { max-width: 100% } summary { cursor: pointer; margin: 0.4em 0 } .small { color: #666; font-size: 85% }
.failed { background: #fdd; padding: 0.5em }
"""

HIDDEN = (FINISHED, FAILED, "client CPU")
SAME_ROWS = "rows/s, last tenth of the rows that all reached"


class Data:
    """The results, in the form that figures and tables need."""

    def __init__(self, store, results=(), samples=()):
        """results, samples: additional ones, beside those of the store."""
        self.ams = store.run["options"]["am"].split(",")
        self._variants = defaultdict(list)      # of methods, by experiment
        self._values = defaultdict(dict)        # (experiment, case, metric, x, am) -> {repeat: value}
        self._notes = {}                        # the same -> note
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
        """For stopped loads: the rate of each at the size that all reached."""
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
        """(metric, x, unit, {am: {repeat: value}}, {am: note}) of a case, in order; x of one metric together."""
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
        """(experiment, case, x, rows/s, cores of the client) of all loads without an index; the fastest first."""
        shares = []
        for experiment, case, metric, x in self._order:
            if metric == "client CPU":
                cpu = self._values.get((experiment, case, metric, x, "none"))
                speed = self._values.get((experiment, case, "rows/s", x, "none"))
                if cpu and speed:
                    shares.append((experiment, case, x, spread(list(speed.values()))[0], spread(list(cpu.values()))[0]))
        return sorted(shares, key=lambda s: -s[3])


def _escape(value):
    return html.escape(str(value))


def _facts_table(facts):
    return "<table>%s</table>" % "".join(
        "<tr><th>%s</th><td>%s</td></tr>" % (_escape(k), _escape(v)) for k, v in facts)


def _cell(values, note):
    if not values:
        return "<td></td>"
    middle, least, greatest = spread(list(values.values()))
    text = si(middle)
    if len(values) > 1:
        text += ' <span class="small">(%s to %s, n = %d)</span>' % (si(least), si(greatest), len(values))
    if note:
        text += ' <span class="small" title="%s">*</span>' % _escape(note)
    return '<td class="n">%s</td>' % text


def _table(data, experiment, case):
    """One row for each metric and x: values of all systems, and ratios to no index and to btree in the same repeat."""
    bases = [b for b in ("none", "btree") if b in data.ams]
    ams = data.ams_of(experiment)
    head = "<th>measured</th><th>at</th><th>unit</th>" + "".join(
        "<th>%s</th>" % _escape(plots.LABELS.get(am, am)) for am in ams)
    pairs = [(am, base) for base in bases for am in data.ams if am != base and am != "none"]
    head += "".join("<th>%s / %s</th>" % (_escape(am), _escape(plots.LABELS.get(base, base))) for am, base in pairs)
    lines, notes = [], []
    for metric, x, unit, values, row_notes in data.rows(experiment, case):
        cells = "".join(_cell(values.get(am), row_notes.get(am)) for am in ams)
        for am, base in pairs:
            comparable = unit != "rows" and am in values and base in values
            ratio = ratio_to(values[am], values[base]) if comparable else None
            cells += '<td class="n">%s</td>' % ("%.3g" % ratio if ratio is not None else "")
        lines.append("<tr><td>%s</td><td>%s</td><td>%s</td>%s</tr>" % (
            _escape(metric), _escape(si(float(x)) if x.isdigit() else x), _escape(unit), cells))
        for am, note in row_notes.items():
            line = "%s, %s: %s" % (metric, plots.LABELS.get(am, am), note)
            if line not in notes:
                notes.append(line)
    text = "<table><tr>%s</tr>%s</table>" % (head, "".join(lines))
    if notes:
        text += '<p class="small">* %s</p>' % "<br>".join(_escape(n) for n in notes)
    return text


def _image(path, title):
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return '<p><img alt="%s" src="data:image/png;base64,%s"></p>' % (_escape(title), data)


def _module_cases(module, all_cases, modules):
    """Sections of one experiment share its number; a case belongs to the section whose figures draw it, else the first."""
    def drawn(m):
        return {c if isinstance(c, str) else c[0] for f in m.FIGURES for p in f.panels for c in p.cases}
    others = set().union(*(drawn(m) for m in modules if m is not module and m.ID == module.ID))
    first = [m for m in modules if m.ID == module.ID][0] is module
    return [c for c in all_cases if c in drawn(module) or (first and c not in others)]


def _experiment(module, modules, data, folder, facts=None):
    """facts: values for the placeholders in the module's texts."""
    cases = _module_cases(module, data.cases(module.ID), modules)
    parts = ["<h2 id=\"%s\">Experiment %s: %s</h2>" % (module.NAME, module.ID, _escape(module.TITLE)),
             "<p><b>Source.</b> %s</p><p><b>What is done.</b> %s</p><p><b>How to read it.</b> %s</p>" % tuple(
                 text % facts if facts else text for text in (module.SOURCE, module.WHAT, module.READ))]
    for figure in module.FIGURES:
        name = plots.draw(figure, module.ID, data, folder)
        if name:
            parts.append(_image(os.path.join(folder, name), figure.title))
    for case in cases:
        parts.append("<details%s><summary>Figures: %s</summary>%s</details>" % (
            " open" if len(cases) <= 2 else "", _escape(case), _table(data, module.ID, case)))
    return "\n".join(parts)


def _client_section(store, data):
    generator = store.run["facts"].get("generator", {})
    parts = ["<h2>The load generator is not the bottleneck</h2><p>The rows it makes on one core without a server, "
             "and how much CPU it used while it loaded tables without an index. As long as that is well below one "
             "core a client, the server limits the load.</p>",
             "<table><tr><th>kind of rows</th><th>generator alone, rows/s</th></tr>%s</table>" % "".join(
                 '<tr><td>%s</td><td class="n">%s</td></tr>' % (_escape(kind), si(value))
                 for kind, value in generator.items())]
    shares = data.client_shares()[:8]
    if shares:
        parts.append("<table><tr><th>load without an index</th><th>rows/s</th><th>cores used by the client</th></tr>%s"
                     "</table>" % "".join(
                         '<tr><td>experiment %s, %s %s</td><td class="n">%s</td><td class="n">%.2f</td></tr>' % (
                             _escape(e), _escape(c), _escape(x), si(speed), cpu) for e, c, x, speed, cpu in shares))
    return "".join(parts)


def _head(store):
    facts, options = store.run["facts"], store.run["options"]
    shown = [("begun", facts.get("begun")), ("time measured", duration(facts.get("measured_s", 0)))]
    shown += sorted(facts.get("machine", {}).items())
    shown += [("server", facts.get("server")), ("pg_lsm", "%s, commit %s" % (facts.get("extension"), facts.get("source"))),
              ("memory limit of the server", facts.get("memory limit")),
              ("shared_buffers", facts.get("settings", {}).get("shared_buffers")),
              ("max_wal_size", facts.get("settings", {}).get("max_wal_size")),
              ("seed", "%s in the first repeat, then 1000 more in each" % options.get("seed"))]
    settings = sorted(facts.get("settings", {}).items())
    text = "<h1>pg_lsm: benchmark report</h1>"
    if options.get("quick"):
        text += ("<p class='failed'>A --quick run, one cluster for all: it shows that everything works. Its figures mean "
                 "nothing.</p>")
    text += ("<p>All systems have the same server, the same settings, pg_lsm's library loaded, and the same rows in the "
             "same order (about so with several clients); a repeat has keys of its own. Each case begins with an empty "
             "cluster; within a repeat the systems follow each other, and each repeat begins with another one. Values are medians, with the least and "
             "the greatest where a case was repeated (n); ratios are those within the same repeat. Loads have no warm-up: "
             "they count from the first row on. Stopped and failed loads are marked; nothing is extrapolated.</p>")
    text += _facts_table(shown)
    text += ("<details><summary>Options of the run, and the settings of the server that matter or are not the default</summary>"
             "%s%s</details>") % (_facts_table(sorted(options.items())), _facts_table(settings))
    return text


def _failures(store):
    if not store.failures():
        return ""
    return '<div class="failed"><b>These measurements failed:</b><ul>%s</ul></div>' % "".join(
        "<li>%s: <pre>%s</pre></li>" % (_escape(f.group), _escape(f.note)) for f in store.failures())


def write(store, bars=None):
    """Draws everything and returns the path of the report. bars: a file of bars.sh with a billion rows, or None."""
    results, samples, bars_options = e8_billion.read(bars) if bars else ((), (), None)
    data = Data(store, results, samples)
    names = store.run["options"]["experiments"].split(",")
    modules = [m for m in experiments.MODULES if m.NAME in names]
    shown = modules + ([e8_billion] if bars else [])
    parts = [_head(store), _failures(store)]
    parts.append("<ul>%s</ul>" % "".join('<li><a href="#%s">Experiment %s: %s</a></li>' % (
        m.NAME, m.ID, _escape(m.TITLE)) for m in shown))
    parts.append(_client_section(store, data))
    parts += [_experiment(m, modules, data, store.folder) for m in modules]
    if bars:
        parts.append(_experiment(e8_billion, [e8_billion], data, store.folder, bars_options))
    path = os.path.join(store.folder, "report.html")
    with open(path + ".new", "w") as file:
        file.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>pg_lsm: benchmark report</title>'
                   "<style>%s</style></head><body>\n%s\n</body></html>\n" % (STYLE, "\n".join(parts)))
    os.replace(path + ".new", path)
    return path
