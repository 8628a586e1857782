"""How experiments describe their figures; plots.py draws them."""

from dataclasses import dataclass, field


@dataclass
class Panel:
    """One diagram.

    kind: "throughput" (rows a second over table size, from samples), "lines" (a metric over a numeric x), "bars" (a
    metric for each x, a bar for each system) or "series" (samples over time).
    cases: names of cases, or (case, label) pairs; several are told apart by the style of the line.
    """
    kind: str
    title: str
    cases: list
    metric: str = ""
    xlabel: str = ""
    ylabel: str = ""
    logx: bool = False
    logy: bool = False
    skip: tuple = ()                # systems that are not drawn; tables show them


@dataclass
class Figure:
    name: str                       # of the PNG file
    title: str
    panels: list = field(default_factory=list)
    columns: int = 2
