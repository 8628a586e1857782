"""Draws the figures of the experiments as PNG files. Needs matplotlib."""

import os
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

from .stats import si, spread, windows  # noqa: E402

COLORS = {"none": "#888888", "btree": "#1f77b4", "lsm": "#d62728"}
MORE_COLORS = ("#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf")
LABELS = {"none": "no index"}
MOST_INSIDE = 4             # longer legends go beside the diagram
STYLES = ("-", "--", ":", "-.", (0, (8, 2, 1, 2, 1, 2)), (0, (1, 4)), (0, (12, 3)))


def _method(am):
    """Without the variant, which may follow the method."""
    return am.partition(",")[0]


def color_of(am, ams):
    others = [a for a in ams if _method(a) not in COLORS]
    return COLORS.get(_method(am)) or MORE_COLORS[others.index(am) % len(MORE_COLORS)]


def _cases(panel):
    """(case, label) pairs; the label is empty when there is only one case."""
    return [(c, "") if isinstance(c, str) else c for c in panel.cases]


def _label(am, case_label):
    return LABELS.get(am, am) + (", " + case_label if case_label else "")


def _number_axes(axes, panel):
    formatter = FuncFormatter(lambda value, _: si(value))
    axes.yaxis.set_major_formatter(formatter)
    if panel.kind != "bars":
        axes.xaxis.set_major_formatter(formatter)
    ticks = sorted({x for line in axes.get_lines() for x in line.get_xdata()}) if panel.kind == "lines" else []
    if panel.logx:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(formatter)
    elif 0 < len(ticks) <= 8:
        axes.set_xticks(ticks)
    if panel.logy:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(formatter)
        low, high = axes.get_ylim()
        if high / low < 20:             # else the powers of ten have labels, which are enough
            axes.yaxis.set_minor_formatter(formatter)
        else:
            axes.yaxis.set_minor_formatter(NullFormatter())
    elif axes.get_ylim()[0] > 0:
        axes.set_ylim(bottom=0)


def _draw_throughput(axes, panel, experiment, data, ams):
    for case, label in _cases(panel):
        for am in ams:
            for repeat, samples in sorted(data.loads(experiment, case, am).items()):
                points = windows([(s.x, s.value) for s in samples])
                axes.plot([p[0] for p in points], [p[1] for p in points], color=color_of(am, ams),
                          alpha=1 if repeat == 1 else 0.45, linewidth=1.5,
                          label=_label(am, label) if repeat == 1 else None)


def _draw_lines(axes, panel, experiment, data, ams):
    for number, (case, label) in enumerate(_cases(panel)):
        for am in ams:
            by_x = {x: values for x, values in data.values(experiment, case, panel.metric, am).items() if x != ""}
            if not by_x:
                continue
            xs = sorted(by_x, key=float)
            points = [spread(list(by_x[x].values())) for x in xs]
            axes.errorbar([float(x) for x in xs], [p[0] for p in points],
                          yerr=[[p[0] - p[1] for p in points], [p[2] - p[0] for p in points]],
                          color=color_of(am, ams), linestyle=STYLES[number % len(STYLES)], marker="o", markersize=3.5,
                          capsize=3, linewidth=1.5, label=_label(am, label))


def _draw_bars(axes, panel, experiment, data, ams):
    """Returns whether each bar has its label below, so that there is no need for a legend."""
    groups = []                         # (label, {am: {repeat: value}})
    for case, label in _cases(panel):
        by_x = defaultdict(dict)
        for am in ams:
            for x, values in data.values(experiment, case, panel.metric, am).items():
                by_x[x][am] = values
        for x in by_x:
            groups.append((x or label or (case if len(panel.cases) > 1 else ""), by_x[x]))
    shown = [am for am in ams if any(am in values for _, values in groups)]
    width = 0.8 / max(len(shown), 1)
    top = 0
    for column, am in enumerate(shown):
        for place, (_, values) in enumerate(groups):
            if am not in values:
                continue
            middle, least, greatest = spread(list(values[am].values()))
            at = place + (column - (len(shown) - 1) / 2) * width
            axes.bar(at, middle, width * 0.94, color=color_of(am, ams),
                     label=_label(am, "") if place == min(i for i, g in enumerate(groups) if am in g[1]) else None)
            if greatest > least:
                axes.errorbar(at, middle, yerr=[[middle - least], [greatest - middle]], color="black", capsize=2,
                              linewidth=1)
            axes.annotate(si(middle), (at, greatest), ha="center", va="bottom", fontsize=6.5,
                          rotation=90 if len(groups) * len(shown) > 8 else 0, xytext=(0, 2),
                          textcoords="offset points")
            top = max(top, greatest)
    direct = len(groups) == 1 and not groups[0][0]
    if direct:
        axes.set_xticks([(column - (len(shown) - 1) / 2) * width for column in range(len(shown))])
        axes.set_xticklabels([_label(am, "").replace(", ", "\n") for am in shown])
    else:
        axes.set_xticks(range(len(groups)))
        axes.set_xticklabels([label for label, _ in groups])
    if top > 0:
        axes.set_ylim(0, top * 1.3)
    return direct


def _draw_series(axes, panel, experiment, data, ams):
    for case, label in _cases(panel):
        for am in ams:
            for repeat, samples in sorted(data.series(experiment, case, am, panel.metric).items()):
                axes.plot([s.x for s in samples], [s.value for s in samples], color=color_of(am, ams), linewidth=1.2,
                          alpha=1 if repeat == 1 else 0.45, label=_label(am, label) if repeat == 1 else None)


DRAW = {"throughput": _draw_throughput, "lines": _draw_lines, "bars": _draw_bars, "series": _draw_series}


def draw(figure, experiment, data, folder):
    """Writes the PNG of a figure and returns its name, or None if there is nothing to draw."""
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    picture, grid = plt.subplots(rows, columns, figsize=(5.2 * columns if columns > 1 else 7.5, 3.2 * rows), squeeze=False)
    drawn = False
    for number, panel in enumerate(figure.panels):
        axes = grid[number // columns][number % columns]
        labelled = DRAW[panel.kind](axes, panel, experiment, data, [am for am in data.ams_of(experiment) if am not in panel.skip])
        axes.set_title(panel.title, fontsize=9)
        axes.set_xlabel(panel.xlabel, fontsize=8)
        axes.set_ylabel(panel.ylabel, fontsize=8)
        axes.tick_params(labelsize=7.5, which="both")
        axes.grid(True, axis="y" if panel.kind == "bars" else "both", linewidth=0.3)
        axes.set_axisbelow(True)
        _number_axes(axes, panel)
        if axes.get_legend_handles_labels()[0]:
            if labelled:
                pass
            elif len(axes.get_legend_handles_labels()[0]) > MOST_INSIDE:
                axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), handlelength=4)
            else:
                axes.legend(fontsize=6.5, framealpha=0.6)
            drawn = True
        else:
            axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", fontsize=8)
    for number in range(len(figure.panels), rows * columns):
        grid[number // columns][number % columns].axis("off")
    name = None
    if drawn:
        picture.suptitle(figure.title, fontsize=11)
        picture.tight_layout(rect=(0, 0, 1, 0.98))
        name = figure.name + ".png"
        picture.savefig(os.path.join(folder, name), dpi=100)
    plt.close(picture)
    return name
