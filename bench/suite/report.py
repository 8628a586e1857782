"""The report: one self-contained HTML file with the plots, and the plots as PNG files beside it."""

import base64
import copy
import html
import os
import re

from . import experiments, messages, plots
from .data import SAME_ROWS, Data
from .experiments import e1_ingest, e8_billion, reads
from .figures import label_of
from .stats import duration, megabytes, plain, ratio_to, si, spread

STYLE = """
body { font-family: sans-serif; max-width: 820px; margin: 2em auto; padding: 0 1em; color: #222; line-height: 1.5 }
h1 { line-height: 1.2 } h2 { margin-top: 2.5em; border-top: 1px solid #ccc; padding-top: 0.8em }
table { border-collapse: collapse; font-size: 85%; margin: 0.6em 0; display: block; overflow-x: auto }
td, th { border: 1px solid #ddd; padding: 0.15em 0.5em; text-align: left; vertical-align: top }
td.n { text-align: right; white-space: nowrap } th { background: #f4f4f4 }
table.main { font-size: 100% } caption { text-align: left; color: #666; font-size: 85%; caption-side: bottom }
img { max-width: 100%; display: block } summary { cursor: pointer; margin: 0.4em 0; color: #666; font-size: 85% }
.small { color: #666; font-size: 85% } .failed { background: #fdd; padding: 0.5em }
"""

HEADLINE = "e1-table-size"      # the plot at the top

# The table at the top: text, experiment, case, metric, x. Without an x, the least one.
MAIN = (
    ("Load of the largest table, rows/s over its last tenth", "1", e1_ingest.RANDOM, "rows/s, last tenth", ""),
    ("WAL bytes a row of this load", "1", e1_ingest.RANDOM, "WAL bytes/row", ""),
    ("Index bytes a row", "1", e1_ingest.RANDOM, "index bytes/row", ""),
    ("Lookups/s in memory, one client, index as loaded", "2", reads.SMALL, "lookups/s, fresh", None),
    ("Range of ten rows in memory, ms, index as loaded", "2", reads.SMALL, "range, fresh", None),
)


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
        "<th>%s</th>" % _escape(label_of(am)) for am in ams)
    pairs = [(am, base) for base in bases for am in data.ams if am != base and am != "none"]
    head += "".join("<th>%s / %s</th>" % (_escape(label_of(am)), _escape(label_of(base))) for am, base in pairs)
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
            line = "%s, %s: %s" % (metric, label_of(am), note)
            if line not in notes:
                notes.append(line)
    text = "<table><tr>%s</tr>%s</table>" % (head, "".join(lines))
    if notes:
        text += '<p class="small">* %s</p>' % "<br>".join(_escape(n) for n in notes)
    return text


def _image(path, title):
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return '<p><img width="800" alt="%s" src="data:image/png;base64,%s"></p>' % (_escape(title), data)


def _fold(summary, text):
    return "<details><summary>%s</summary>%s</details>" % (_escape(summary), text)


def _cases_of(section, module, modules, data):
    """The cases of a section are those that its plots draw. The first section of an experiment has also those that no
    plot draws."""
    def drawn(sections):
        return {part.case for s in sections for plot in s.plots for part in plot.parts}
    sections = [s for m in modules if m.ID == module.ID for s in m.SECTIONS]
    extra = set(data.cases(module.ID)) - drawn(sections) if section is sections[0] else set()
    return [case for case in data.cases(module.ID) if case in drawn([section]) | extra]


def anchor(question):
    return re.sub(r"[^a-z0-9]+", "-", question.lower()).strip("-")


def _plot(plot, module, data, folder):
    """The picture of a plot and its finding, or nothing."""
    drawn = plots.draw(plot, module.ID, data, folder)
    if not drawn:
        return ""
    picture = _image(os.path.join(folder, drawn[0]), drawn[1]) if plot.name != HEADLINE else ""
    return picture + "<p>%s</p>" % _escape(messages.finding(plot, data, module.ID))


def _section(section, module, modules, data, folder, facts=None):
    """facts: values for the placeholders in the module's texts."""
    pictures = [_plot(plot, module, data, folder) for plot in section.plots]
    cases = _cases_of(section, module, modules, data)
    if not cases and not any(pictures):
        return ""
    texts = [text % facts if facts else text for text in (section.conditions, module.SOURCE)]
    parts = ['<h2 id="%s">%s</h2>' % (anchor(section.question), _escape(section.question))] + pictures
    parts.append('<p class="small">%s</p><p class="small">Experiment %s. Source: %s</p>' % (texts[0], module.ID, texts[1]))
    parts += [_fold("All figures: " + case, _table(data, module.ID, case)) for case in cases]
    return "\n".join(parts)


def main_rows(data):
    """[(text, {method: value}, ratio to the B-tree or None)], for the table at the top."""
    rows = []
    for text, experiment, case, metric, x in MAIN:
        found = {}
        for am in data.ams:
            # A load that was stopped counts as far as all came.
            values = metric.endswith("last tenth") and data.values(experiment, case, SAME_ROWS, am)
            values = values or data.values(experiment, case, metric, am)
            key = min(values, key=float) if values and x is None else x
            if key in values:
                found[am] = values[key]
        pair = messages.pair_of(list(found))
        ratio = ratio_to(found[pair[0]], found[pair[1]]) if pair else None
        if found:
            rows.append((text, {am: spread(list(v.values()))[0] for am, v in found.items()}, ratio))
    return rows


def _main_table(data):
    rows = main_rows(data)
    pair = messages.pair_of(data.ams)
    if not rows:
        return ""
    head = "<th></th>" + "".join("<th>%s</th>" % _escape(label_of(am)) for am in data.ams)
    if pair:
        head += "<th>%s / %s</th>" % tuple(_escape(label_of(am)) for am in pair)
    lines = ""
    for text, values, ratio in rows:
        cells = "".join('<td class="n">%s</td>' % (si(values[am]) if am in values else "") for am in data.ams)
        if pair:
            cells += '<td class="n">%s</td>' % (plain(ratio) if ratio is not None else "")
        lines += "<tr><td>%s</td>%s</tr>" % (_escape(text), cells)
    return ('<table class="main"><caption>Random int4 keys, one client, COPY of 1000 rows. More is better for rates, less for '
            "sizes and times.</caption><tr>%s</tr>%s</table>" % (head, lines))


def _client_section(store, data):
    generator, shares = store.run["facts"].get("generator", {}), data.client_shares()[:8]
    parts = ['<h2 id="client">Does the load generator limit the results?</h2>']
    if shares:
        parts.append("<p>In the fastest load without an index, %s rows/s, the client used %s of a core.</p>" % (
            si(shares[0][3]), plain(shares[0][4])))
    parts.append('<p class="small">As long as the client uses well below one core for each connection, the server limits the '
                 "load. The generator alone makes rows on one core without a server.</p>")
    tables = "<table><tr><th>kind of rows</th><th>generator alone, rows/s</th></tr>%s</table>" % "".join(
        '<tr><td>%s</td><td class="n">%s</td></tr>' % (_escape(kind), si(value)) for kind, value in generator.items())
    if shares:
        head = "<th>load without an index</th><th>rows/s</th><th>cores used by the client</th>"
        tables += "<table><tr>%s</tr>%s</table>" % (head, "".join('<tr><td>experiment %s, %s %s</td><td class="n">%s</td><td class="n">%.2f</td></tr>' % (
                _escape(e), _escape(c), _escape(x), si(speed), cpu) for e, c, x, speed, cpu in shares))
    return "".join(parts) + _fold("All figures of the client", tables)


def version_of(server):
    """PostgreSQL's version, from what the server program says: "postgres (PostgreSQL) 15.20 (...)"."""
    found = re.search(r"PostgreSQL\)? (\S+)", server or "")
    return "PostgreSQL " + found.group(1) if found else "PostgreSQL"


def opening(facts, options):
    """The first paragraph, in HTML: what was measured, and on what."""
    names = [messages.name_of(am) for am in options["am"].split(",")]
    listed = (", ".join(names[:-1]) + " and " if len(names) > 1 else "") + names[-1]
    machine = facts.get("machine", {})
    limit = re.search(r"(\d+) MB$", facts.get("memory limit") or "")
    text = "This page compares loads of rows, and queries, with %s on %s. " % (listed, version_of(facts.get("server")))
    text += "pg_lsm is version %s, commit %s. " % (facts.get("extension"), facts.get("source"))
    text += "The machine has %s, and %s of memory; " % (machine.get("CPU", "unknown CPUs"), machine.get("memory", "unknown"))
    text += "the server may use %s. " % (limit.group(1) + " MB of it" if limit else "all of it")
    begun = (facts.get("begun") or "unknown day")[:10]
    text += "The run began on %s and took %s. " % (begun, duration(facts.get("measured_s", 0)))
    text += "The largest table has %s rows." % plain(options["rows"])
    return _escape(text)


HOW = """All systems have the same server, the same settings, pg_lsm's library loaded, and the same rows in the same
order (about so with several clients); a repeat has keys of its own. Each case begins with an empty cluster. Within a
repeat the systems follow each other, and each repeat begins with another one. Values are medians, with the least and
the greatest where a case was repeated (n); whiskers show the same. Ratios are those within the same repeat. Gray is
no index, blue is a B-tree, red is lsm. Loads have no warm-up: they count from the first row on. Stopped and failed
loads are marked; nothing is extrapolated."""


def _facts(store):
    facts, options = store.run["facts"], store.run["options"]
    shown = [("begun", facts.get("begun")), ("time measured", duration(facts.get("measured_s", 0)))]
    shown += sorted(facts.get("machine", {}).items())
    shown += [("server", facts.get("server")), ("pg_lsm", "%s, commit %s" % (facts.get("extension"), facts.get("source"))),
              ("memory limit of the server", facts.get("memory limit")),
              ("seed", "%s in the first repeat, then 1000 more in each" % options.get("seed"))]
    return (_fold("Machine and versions", _facts_table(shown)) +
            _fold("Options of the run, and the settings of the server that matter or are not the default",
                  _facts_table(sorted(options.items())) + _facts_table(sorted(facts.get("settings", {}).items()))))


def _headline(data, folder):
    """The plot at the top, if its experiment is among those of the run."""
    plot = e1_ingest.SECTIONS[0].plots[0]
    path = os.path.join(folder, HEADLINE + ".png")
    return _image(path, messages.title(plot, data, e1_ingest.ID)) if os.path.exists(path) else ""


def _head(store, data):
    options = store.run["options"]
    text = "<h1>pg_lsm: benchmark report</h1>"
    if options.get("quick"):
        text += ("<p class='failed'>A --quick run, one cluster for all: it shows that everything works. Its figures, and what "
                 "the titles say, mean nothing.</p>")
    text += "<p>%s</p>" % opening(store.run["facts"], options)
    return text + _failures(store) + _headline(data, store.folder) + _main_table(data)


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
    sections = [(s, m) for m in modules for s in m.SECTIONS]
    texts = [(s.question, _section(s, m, modules, data, store.folder)) for s, m in sections]
    if bars:
        largest = copy.copy(data)
        largest.memory_mb = int(bars_options["memory"]) or None
        largest.shared_buffers_mb = megabytes(bars_options["shared_buffers"])
        texts += [(s.question, _section(s, e8_billion, [e8_billion], largest, store.folder, bars_options))
                  for s in e8_billion.SECTIONS]
    texts = [(question, text) for question, text in texts if text]
    contents = "<ul>%s</ul>" % "".join(
        '<li><a href="#%s">%s</a></li>' % (anchor(question), _escape(question)) for question, _ in texts)
    parts = [_head(store, data), contents] + [text for _, text in texts] + [_client_section(store, data)]
    parts.append('<h2 id="how">How this was measured</h2><p class="small">%s</p>%s' % (HOW, _facts(store)))
    path = os.path.join(store.folder, "report.html")
    with open(path + ".new", "w") as file:
        file.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>pg_lsm: benchmark report</title>'
                   "<style>%s</style></head><body>\n%s\n</body></html>\n" % (STYLE, "\n".join(parts)))
    os.replace(path + ".new", path)
    return path
