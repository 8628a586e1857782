"""Draws the plots of the experiments as PNG files of 800 by 450 pixels. Needs matplotlib."""

import os
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: E402

from . import messages  # noqa: E402
from .figures import MOST_LINES, color_of, label_of  # noqa: E402
from .stats import outgrows, plain, spread, spread_apart, windows  # noqa: E402

WIDTH, HEIGHT, DPI = 800, 450, 100
SMALL, NORMAL, TITLE = 8.5, 9.5, 13         # points; a point is 1.4 pixels
TITLE_CHARS, CONDITIONS_CHARS = 66, 115     # a line
LABEL_CHARS = 24
LABEL_GAP = 16                              # pixels from one label to the next
CHAR = 7.3                                  # pixels of a character of a label
INK, PALE = "#333333", "#999999"
FORMATTER = FuncFormatter(lambda value, _: plain(value))


def wrapped(text, width):
    """Lines of about the same length."""
    def wrap(width):
        return textwrap.wrap(text, width, break_on_hyphens=False)
    count = len(wrap(width))
    while width > 20 and len(wrap(width - 1)) == count:
        width -= 1
    return wrap(width)


class Canvas:
    """A figure with one diagram, its title, and the labels at the ends of its lines."""

    def __init__(self, title, conditions, labels, left=62):
        """labels: those at the right of the diagram, which need their width."""
        lines = wrapped(title, TITLE_CHARS)
        below = textwrap.wrap(conditions, CONDITIONS_CHARS)
        self.figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI)
        y = HEIGHT - 28
        for line in lines:
            self.figure.text(0.0175, y / HEIGHT, line, fontsize=TITLE, fontweight="bold", color=INK)
            y -= 22
        for line in below:
            self.figure.text(0.0175, y / HEIGHT, line, fontsize=SMALL, color="#666666")
            y -= 15
        widest = max([len(line) for label in labels for line in textwrap.wrap(label, LABEL_CHARS)], default=0)
        right = 20 + CHAR * widest if widest else 20
        self.axes = self.figure.add_axes((left / WIDTH, 52 / HEIGHT, (WIDTH - left - right) / WIDTH, (y - 70) / HEIGHT))
        self.ends = []                      # (label, color, x, y)
        for side in ("top", "right"):
            self.axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            self.axes.spines[side].set_color(PALE)
        self.axes.tick_params(labelsize=NORMAL, which="both", color=PALE, labelcolor=INK)
        self.axes.set_axisbelow(True)

    def label_ends(self):
        """Writes the labels at the ends of lines, so that none covers another. The axes must have their limits."""
        if not self.ends:
            return
        places = [self.axes.transData.transform((x, y)) for _, _, x, y in self.ends]
        low, high = self.axes.bbox.ymin + LABEL_GAP / 2, self.axes.bbox.ymax
        texts = ["\n".join(textwrap.wrap(label, LABEL_CHARS)) for label, _, _, _ in self.ends]
        gap = LABEL_GAP * max(text.count("\n") + 1 for text in texts)
        heights = spread_apart([y for _, y in places], gap, low, high)
        for text, (_, color, _, _), (x, _), y in zip(texts, self.ends, places, heights):
            self.figure.text((x + 8) / WIDTH, y / HEIGHT, text, fontsize=NORMAL, color=color, va="center")

    def axis_names(self, unit, xlabel, logx, logy):
        self.axes.set_title(unit + (", logarithmic" if logy else ""), fontsize=NORMAL, color=INK, loc="left", pad=8,
                            x=-(self.axes.bbox.xmin - 14) / self.axes.bbox.width)
        self.axes.set_xlabel(xlabel + (", logarithmic" if logx else ""), fontsize=NORMAL, color=INK)

    def save(self, path):
        self.figure.savefig(path, dpi=DPI)
        plt.close(self.figure)


def _set_scales(axes, plot, xs):
    """Limits and ticks. A y axis begins at zero unless it is logarithmic."""
    axes.grid(True, axis="y", linewidth=0.5, color="#dddddd")
    if plot.logx:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    elif plot.kind == "lines" and 0 < len(xs) <= 8:
        axes.xaxis.set_major_locator(FixedLocator(sorted(xs)))
    axes.xaxis.set_major_formatter(FORMATTER)
    if plot.logy:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high / low > 100 else (1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1e-9))
    axes.yaxis.set_major_formatter(FORMATTER)
    if plot.kind in ("growth", "series"):
        axes.set_xlim(left=0)


def _mark_memory(canvas, plot, experiment, data, ams):
    """A vertical line for each index that outgrows the cache within the diagram."""
    if not data.memory_mb:
        return
    marks = []
    for am in ams:
        bytes_a_row = data.index_bytes(experiment, plot.parts[0].case, am)
        rows = outgrows(bytes_a_row, data.memory_mb, data.shared_buffers_mb) if bytes_a_row else 0
        if 0 < rows < canvas.axes.get_xlim()[1]:
            marks.append((rows, am))
    for rows, am in marks:
        canvas.axes.axvline(rows, color=color_of(am), linewidth=1, linestyle=":")
        side = "left" if rows < canvas.axes.get_xlim()[1] / 2 else "right"
        canvas.axes.annotate("%s outgrows the cache" % label_of(am), (rows, 1.02), ha=side, va="bottom",
                             xycoords=("data", "axes fraction"), fontsize=SMALL, color=color_of(am))


def _draw_growth(plot, experiment, data, title):
    case = plot.parts[0].case
    loads = [(am, data.median_load(experiment, case, am)) for am in data.shown(plot, experiment)]
    loads = [(am, samples) for am, samples in loads if samples][:MOST_LINES]
    if not loads:
        return None
    labels = [label_of(am) for am, _ in loads]
    alone = len(loads) == 1
    canvas = Canvas(title, plot.conditions, labels + (["at the start"] if alone else []))
    for (am, samples), label in zip(loads, labels):
        points = windows(samples)
        canvas.axes.plot(*zip(*points), color=color_of(am), linewidth=2)
        canvas.ends.append((label, color_of(am)) + points[-1])
    if alone:
        # No method to compare with, so the load's own first twentieth is the baseline.
        first = windows(loads[0][1], 20)[0][1]
        canvas.axes.axhline(first, color=PALE, linewidth=1, linestyle="--")
        canvas.ends.append(("at the start", PALE, points[-1][0], first))
    _set_scales(canvas.axes, plot, ())
    canvas.axes.set_xlim(right=max(samples[-1][0] for _, samples in loads))
    _mark_memory(canvas, plot, experiment, data, [am for am, _ in loads])
    return canvas


def _relative(lists):
    """Curves divided by those of a B-tree in the same part and repeat; the B-tree's own are left out."""
    result = []
    for curves in lists:
        base = next((curve for curve in curves if curve.am == "btree"), None)
        for curve in curves:
            if base is None or curve is base:
                continue
            points = {x: {r: v / base.points[x][r] for r, v in values.items() if base.points[x].get(r)}
                      for x, values in curve.points.items() if x in base.points}
            points = {x: values for x, values in points.items() if values}
            if points:
                result.append(curve._replace(points=points))
    return result


def _draw_lines(plot, experiment, data, title):
    lists = data.curves(plot, experiment)
    curves = _relative(lists) if plot.relative else [curve for curves in lists for curve in curves]
    curves = [c._replace(points={x: v for x, v in c.points.items() if x != ""}) for c in curves]
    curves = [c for c in curves if c.points][:MOST_LINES - plot.relative]
    if not curves:
        return None
    canvas = Canvas(title, plot.conditions, [c.label for c in curves] + (["B-tree = 1"] if plot.relative else []))
    all_xs = {float(x) for c in curves for x in c.points}
    for curve in curves:
        xs = sorted(curve.points, key=float)
        points = [spread(list(curve.points[x].values())) for x in xs]
        canvas.axes.errorbar([float(x) for x in xs], [p[0] for p in points],
                             yerr=[[p[0] - p[1] for p in points], [p[2] - p[0] for p in points]], color=curve.color,
                             linestyle="--" if curve.dashed else "-", marker="o", markersize=4, capsize=3,
                             linewidth=2, elinewidth=1)
        canvas.ends.append((curve.label, curve.color, float(xs[-1]), points[-1][0]))
    if plot.relative:
        canvas.axes.plot([min(all_xs), max(all_xs)], [1, 1], color=color_of("btree"), linewidth=2)
        canvas.ends.append(("B-tree = 1", color_of("btree"), max(all_xs), 1))
    _set_scales(canvas.axes, plot, all_xs)
    return canvas


def _draw_series(plot, experiment, data, title):
    part = plot.parts[0]
    found = []
    for am in data.shown(plot, experiment):
        by_repeat = data.series(experiment, part.case, am, part.metric)
        if by_repeat:
            # In an interval without a finished operation the longest takes 0, which a logarithmic axis cannot have.
            found.append((am, [s for s in by_repeat[min(by_repeat)] if s.value > 0 or not plot.logy]))
    found = [(am, samples) for am, samples in found if samples][:MOST_LINES]
    if not found:
        return None
    canvas = Canvas(title, plot.conditions, [label_of(am) for am, _ in found])
    for am, samples in found:
        canvas.axes.plot([s.x for s in samples], [s.value for s in samples], color=color_of(am), linewidth=2)
        canvas.ends.append((label_of(am), color_of(am), samples[-1].x, samples[-1].value))
    _set_scales(canvas.axes, plot, ())
    canvas.axes.set_xlim(right=max(samples[-1].x for _, samples in found))
    return canvas


def _groups(plot, lists):
    """[(name, [(curve, {repeat: value})])]: the bars, by x if there are several, otherwise by part."""
    groups = {}
    for part, curves in zip(plot.parts, lists):
        for curve in curves:
            for x, values in curve.points.items():
                groups.setdefault(", ".join(t for t in (part.label, plot.names.get(x, x)) if t), []).append((curve, values))
    if len(groups) == 1:
        for bars in groups.values():
            if len(bars) > 3:           # more than the usual methods, whose order is always the same
                bars.sort(key=lambda bar: -spread(list(bar[1].values()))[0])
    return list(groups.items())


def _draw_bars(plot, experiment, data, title):
    """Horizontal bars. Each has its method and its value at its end, in one group only the value."""
    groups = _groups(plot, data.curves(plot, experiment))
    if not groups:
        return None
    names = [name for name, _ in groups] if len(groups) > 1 else [label_of(c.am) for c, _ in groups[0][1]]
    labels = ["%s  %s" % (label_of(c.am) if len(groups) > 1 else "", plain(1234)) for _, bars in groups for c, _ in bars]
    canvas = Canvas(title, plot.conditions, [label.strip() for label in labels], 30 + CHAR * max(map(len, names)))
    axes, y, ticks = canvas.axes, 0, []
    for _, bars in groups:
        first = y
        for curve, values in bars:
            middle, least, greatest = spread(list(values.values()))
            axes.barh(y, middle, 0.85, color=curve.color)
            if greatest > least:
                axes.errorbar(middle, y, xerr=[[middle - least], [greatest - middle]], color=INK, capsize=2, linewidth=1)
            text = plain(middle) if len(groups) == 1 else "%s  %s" % (label_of(curve.am), plain(middle))
            axes.annotate(text, (greatest, y), xytext=(5, 0), textcoords="offset points", va="center",
                          fontsize=NORMAL if len(groups) == 1 else SMALL, color=curve.color)
            if len(groups) == 1:
                ticks.append(y)
            y += 1
        if len(groups) > 1:
            ticks.append((first + y - 1) / 2)
        y += 0.6
    axes.set_yticks(ticks)
    axes.set_yticklabels(names)
    axes.tick_params(axis="y", length=0)
    room = max(0, 3.9 - (y + 0.3)) / 2         # so that few bars are not thick
    axes.set_ylim(y - 0.6 + room, -0.9 - room)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FORMATTER)
    axes.grid(True, axis="x", linewidth=0.5, color="#dddddd")
    return canvas


DRAW = {"growth": _draw_growth, "lines": _draw_lines, "bars": _draw_bars, "series": _draw_series}


def render(plot, experiment, data):
    """(canvas, title) of a plot, or None if there is nothing to draw."""
    title = messages.title(plot, data, experiment)
    canvas = DRAW[plot.kind](plot, experiment, data, title)
    if canvas is None:
        return None
    if plot.kind == "bars":
        canvas.axis_names("", plot.unit, False, False)
    else:
        unit = ("time" if plot.unit == "ms" else plot.unit) + ", B-tree = 1" if plot.relative else plot.unit
        canvas.axis_names(unit, plot.xlabel, plot.logx, plot.logy)
    canvas.label_ends()
    return canvas, title


def draw(plot, experiment, data, folder):
    """Writes the PNG of a plot and returns its name and its title, or None if there is nothing to draw."""
    rendered = render(plot, experiment, data)
    if rendered is None:
        return None
    canvas, title = rendered
    name = plot.name + ".png"
    canvas.save(os.path.join(folder, name))
    return name, title
