"""How experiments describe their plots. messages.py words them, plots.py draws them."""

from dataclasses import dataclass, field
from zlib import crc32

# The same color for a method in every plot. Others get one of MORE_COLORS by their name.
COLORS = {"none": "#777777", "btree": "#1f77b4", "lsm": "#d62728", "hash": "#2ca02c", "brin": "#9467bd", "gin": "#8c564b",
          "gist": "#bcbd22", "lsm3": "#e377c2"}
MORE_COLORS = ("#17becf", "#ff7f0e", "#7f6000")
LABELS = {"none": "no index", "btree": "B-tree", "brin": "BRIN"}
MOST_LINES = 4


@dataclass
class Part:
    """What a plot shows of a case: a metric of all methods, or only of one."""
    case: str
    metric: str = ""
    label: str = ""
    am: str = ""                # only this one; the label then says all
    dashed: bool = False


@dataclass
class Plot:
    """One diagram with one message.

    kind: "growth" (rows a second over table size, from samples), "lines" (metrics over a numeric x), "bars" (a metric
    for each x and method) or "series" (samples over time).
    """
    name: str                   # of the PNG file
    kind: str
    topic: str                  # the title, if the data do not support the claim
    parts: list
    unit: str = "rows/s"
    xlabel: str = ""
    # The title. {as many} becomes "1.4 times as many", "60% as many" or "about as many", for part after part; {a} and {b}
    # are the methods compared, {x} is the value of x at which.
    claim: str = ""
    at: str = "last"            # the x of the claim: "first", "last", or its value
    figure: tuple = ()          # of a series: (metric, x) that the claim compares
    pairs: tuple = ()           # the parts that the claim compares, if not the methods of each: (part, base)
    conditions: str = ""        # the line below the title
    relative: bool = False      # values are divided by those of a B-tree
    logx: bool = False
    logy: bool = False
    names: dict = field(default_factory=dict)       # of x, if they need any
    skip: tuple = ()            # methods that are not drawn; tables show them


@dataclass
class Section:
    question: str
    conditions: str             # HTML
    plots: list = field(default_factory=list)


def method_of(am):
    """Without the variant, which may follow the method."""
    return am.partition(",")[0]


def color_of(am):
    method = method_of(am)
    return COLORS.get(method) or MORE_COLORS[crc32(method.encode()) % len(MORE_COLORS)]


def label_of(am):
    method, comma, variant = am.partition(",")
    return LABELS.get(method, method) + comma + variant


def in_order(ams):
    """The baselines and lsm first, so that they are drawn if there are too many."""
    first = [am for am in ("none", "btree", "lsm") if am in ams]
    return first + [am for am in ams if am not in first]
