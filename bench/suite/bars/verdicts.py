"""Bars: the measured value, the bound, and whether the value meets it."""

from dataclasses import dataclass
from statistics import median
from typing import Optional

REACHED, MISSED, UNDECIDED, INFORMATION = "reached", "MISSED", "undecided", ""


@dataclass
class Verdict:
    name: str                   # of the experiment
    text: str                   # what is compared
    value: Optional[float]      # None: not measured
    bound: str                  # as the table shows it; "" if there is none
    state: str
    parts: str                  # the spread of the turns, what `value` consists of, why it is in doubt
    turns: tuple = ()           # the values of the repeats whose median is `value`


def _median(values):
    """Returns (median, values of the turns, text that shows their spread). `values` is None, one value or a list."""
    if values is None:
        return None, (), ""
    if isinstance(values, (int, float)):
        return values, (), ""
    turns = tuple(values)
    if len(turns) < 2:
        return median_or_none(turns), turns, "one turn" if turns else ""
    return median(turns), turns, "%s to %s in %d turns" % (number(min(turns)), number(max(turns)), len(turns))


def _judge(name, text, values, sign, bound, parts, doubt):
    value, turns, spread = _median(values)
    if value is None:
        state, doubt = UNDECIDED, doubt or "not measured"
    elif doubt:
        state = UNDECIDED
    else:
        state = REACHED if (value >= bound if sign == ">=" else value <= bound) else MISSED
    return Verdict(name, text, value, "%s %s" % (sign, number(bound)), state,
                   "; ".join(part for part in (spread, parts, doubt) if part), turns)


def at_least(name, text, values, bound, parts="", doubt=""):
    """values: one value, or those of the repeats, whose median counts. doubt: why the bar cannot be decided, if so."""
    return _judge(name, text, values, ">=", bound, parts, doubt)


def at_most(name, text, values, bound, parts="", doubt=""):
    return _judge(name, text, values, "<=", bound, parts, doubt)


def information(name, text, values, parts=""):
    value, turns, spread = _median(values)
    return Verdict(name, text, value, "", INFORMATION, "; ".join(part for part in (spread, parts) if part), turns)


def of_repeats(results, *methods):
    """Yields the results of each repeat that all methods have completed. Results are {method: {repeat: ...}}."""
    for repeat in sorted(results.get(methods[0], {})):
        if all(repeat in results.get(method, {}) for method in methods):
            yield tuple(results[method][repeat] for method in methods)


def median_or_none(values):
    values = list(values)
    return median(values) if values else None


def number(value):
    """A figure in readable form."""
    if value is None:
        return "-"
    if value >= 1000:
        return "{:,.0f}".format(value)
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 20 else "%.3g" % value


def line(verdict):
    return "%-10s%-9s %-46s%10s %-10s %s" % (
        verdict.state, verdict.name, verdict.text, number(verdict.value), verdict.bound, verdict.parts)


def heading():
    return "%-10s%-9s %-46s%10s %-10s %s" % ("", "", "", "figure", "bar", "parts")
