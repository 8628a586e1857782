"""The measurements, their order, and how long they will take.

A group is the unit of a run: one system, in one repeat, from an empty cluster to its results. A group is measured
completely or not at all, even if a run is interrupted and resumed.
"""

from dataclasses import dataclass, field
from typing import Callable

from .stats import duration


@dataclass
class Group:
    """One system in one repeat of a case."""
    experiment: str         # its ID
    case: str               # unique within the experiment
    am: str                 # access method, or "none"
    repeat: int             # from 1
    estimate_s: float
    work: Callable = field(repr=False)      # work(context) measures
    memory_share: float = 1.0               # of the memory that the options give the server

    @property
    def key(self):
        return "%s/%s/%s/%d" % (self.experiment, self.case, self.am, self.repeat)


def interleave(experiment, case, ams, repeats, estimate, work, memory_share=1.0):
    """The groups of a case: all systems in each repeat. Each repeat begins with a different system.

    estimate(am) gives seconds.
    """
    groups = []
    for repeat in range(1, repeats + 1):
        turn = (repeat - 1) % len(ams)
        for am in ams[turn:] + ams[:turn]:
            groups.append(Group(experiment, case, am, repeat, estimate(am), work, memory_share))
    return groups


class Progress:
    """Estimates the time left from the estimates of groups and the time of finished ones."""

    def __init__(self, groups, finished_keys):
        self.total = len(groups)
        self.left_s = sum(g.estimate_s for g in groups if g.key not in finished_keys)
        self.done = sum(1 for g in groups if g.key in finished_keys)
        self.estimated_s = 0.0
        self.taken_s = 0.0

    def finished(self, group, seconds):
        self.done += 1
        self.left_s -= group.estimate_s
        self.estimated_s += group.estimate_s
        self.taken_s += seconds

    def remaining_s(self):
        """The estimate, corrected by the error of earlier estimates. The first minute counts for little."""
        prior = 60.0
        factor = (self.taken_s + prior) / (self.estimated_s + prior)
        return max(self.left_s, 0) * factor

    def text(self):
        return "[%d/%d] about %s left" % (self.done, self.total, duration(self.remaining_s()))


# --- what things cost: rows a second on a small machine (2 cores), only for estimates ---

COPY_RATES = {"none": 430e3, "btree": 130e3}
OTHER_COPY_RATE = 220e3
START_S = 0.5               # a fresh cluster


def load_seconds(am, rows, limit_s, width=1.0, indexes=1):
    """Seconds to load narrow rows; wider rows take `width` times as long."""
    none = rows / COPY_RATES["none"] * width
    with_index = rows / COPY_RATES.get(am, OTHER_COPY_RATE)
    seconds = none if am == "none" else none + indexes * max(with_index - rows / COPY_RATES["none"], 0) * width
    if am == "btree" and rows > 8e6:
        seconds += (rows - 8e6) / 25e3      # beyond memory
    return min(seconds, limit_s) + START_S
