"""Bars: what was found, what it should be, and whether it is."""

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
    parts: str                  # what the value is made of


def _judge(name, text, value, sign, bound, parts, doubt):
    if value is None:
        state, doubt = UNDECIDED, doubt or "not measured"
    elif doubt:
        state = UNDECIDED
    else:
        state = REACHED if (value >= bound if sign == ">=" else value <= bound) else MISSED
    return Verdict(name, text, value, "%s %s" % (sign, number(bound)), state,
                   "; ".join(part for part in (parts, doubt) if part))


def at_least(name, text, value, bound, parts="", doubt=""):
    """doubt: why the value cannot decide, if so."""
    return _judge(name, text, value, ">=", bound, parts, doubt)


def at_most(name, text, value, bound, parts="", doubt=""):
    return _judge(name, text, value, "<=", bound, parts, doubt)


def information(name, text, value, parts=""):
    return Verdict(name, text, value, "", INFORMATION, parts)


def of_repeats(results, *methods):
    """Yields for each repeat that all the methods have done what they gave. Results are {method: {repeat: ...}}."""
    for repeat in sorted(results.get(methods[0], {})):
        if all(repeat in results.get(method, {}) for method in methods):
            yield tuple(results[method][repeat] for method in methods)


def median_or_none(values):
    values = list(values)
    return median(values) if values else None


def number(value):
    """A figure for people."""
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
