"""What plots and data say, in words: titles, and one finding for each plot. Nothing here draws."""

import re

from . import stats
from .data import SAME_ROWS
from .figures import label_of
from .stats import plain, ratio_to, si, spread

NAMES = {"none": "no index", "btree": "a B-tree"}
SAME = (0.95, 1.05)             # ratios that count as equal
FRACTIONS = ((1 / 2, "half"), (1 / 3, "a third"), (1 / 4, "a quarter"), (1 / 5, "a fifth"), (1 / 10, "a tenth"))
FALLS, KEEPS = 0.6, 0.85        # a rate that falls below, or stays above, this share of its first


def name_of(am):
    return NAMES.get(am, label_of(am))


def share(value):
    """A share in words: "a tenth", "37%"."""
    for fraction, words in FRACTIONS:
        if abs(value / fraction - 1) < 0.06:
            return words
    return percent(value)


def percent(value):
    return "%.2g%%" % (value * 100) if value < 0.1 else "%.0f%%" % (value * 100)


def times(ratio):
    """A ratio, to two digits."""
    return "%.2g" % ratio if ratio < 100 else plain(ratio)


def as_words(ratios, word):
    """Ratios of several repeats, of amounts (word "many"), durations ("long"), sizes ("large")."""
    ratio, least, greatest = spread(ratios)
    if SAME[0] <= ratio <= SAME[1] or least < 1 < greatest:
        return "about as " + word
    return "%s as %s" % (percent(ratio) if ratio < 1 else times(ratio) + " times", word)


def pair_of(ams):
    """(subject, base): lsm, or else the last method, and the B-tree, or else no index. None if there are not two."""
    subject = "lsm" if "lsm" in ams else ([am for am in ams if am not in ("none", "btree")] or ["btree"])[-1]
    bases = [am for am in ("btree", "none") if am in ams and am != subject]
    return (subject, bases[0]) if bases and subject in ams else None


def _capital(text):
    """Sentences may begin with the name lsm, which stays as it is."""
    return text if text.startswith("lsm") else text[:1].upper() + text[1:]


def _at(plot, curves):
    """The x at which a plot's claim compares these curves, or None."""
    common = [x for x in curves[0].points if all(x in curve.points for curve in curves)]
    if plot.at in common:
        return plot.at
    if not common or plot.at not in ("first", "last"):
        return None
    try:
        common.sort(key=float)
    except ValueError:
        pass
    return common[0] if plot.at == "first" else common[-1]


def _ratios(subject, base, x):
    values, others = subject.points[x], base.points[x]
    return [values[repeat] / others[repeat] for repeat in values if others.get(repeat)]


def _pairs(plot, data, experiment):
    """[(subject, base)], curves that the claim compares."""
    parts = data.curves(plot, experiment)
    if plot.pairs:
        found = [[parts[i][0] for i in pair if parts[i]] for pair in plot.pairs]
        return [tuple(pair) for pair in found if len(pair) == 2]
    names, pairs = pair_of(data.shown(plot, experiment)), []
    for curves in parts:
        by_am = {curve.am: curve for curve in curves}
        if names and names[0] in by_am and names[1] in by_am:
            pairs.append((by_am[names[0]], by_am[names[1]]))
    return pairs


def _series_ratios(plot, data, experiment):
    """[ratios] and the methods, from the figure of a series."""
    names = pair_of(data.shown(plot, experiment))
    if not names or not plot.figure:
        return [], names
    metric, x = plot.figure
    values, base = (data.values(experiment, plot.parts[0].case, metric, am).get(x) for am in names)
    ratios = [values[r] / base[r] for r in values if base.get(r)] if values and base else []
    return [ratios] if ratios else [], names


def claim(plot, data, experiment):
    """The title, if the data have what it says; otherwise the topic."""
    words = re.findall(r"\{as (\w+)\}", plot.claim)
    x = ""
    if plot.kind == "series":
        lists, names = _series_ratios(plot, data, experiment)
    else:
        pairs = _pairs(plot, data, experiment)
        names = pair_of(data.shown(plot, experiment)) if not plot.pairs else ("lsm", "btree")
        lists = []
        for pair in pairs:
            x = _at(plot, pair)
            if x is not None:
                lists.append(_ratios(*pair, x))
    if not words or not names or len(lists) < len(words) or not all(lists):
        return plot.topic
    text = plot.claim
    for word, ratios in zip(words, lists):
        text = text.replace("{as %s}" % word, as_words(ratios, word), 1)
    text = text.replace("{a}", name_of(names[0])).replace("{b}", name_of(names[1]))
    return _capital(text.replace("{x}", plain(float(x)) if x.isdigit() else x))


def kept(samples, total):
    """The rate over the last tenth of a load, as a share of that over the first tenth of `total` rows."""
    return stats.last_tenth(samples) / stats.rate(samples, 0, min(total, samples[-1][0]) * 0.1)


def growth(shares, ratio, topic):
    """The title of a load over table size.

    shares: {method: kept()}. ratio: the rate of the subject over that of the base, for each repeat, or None.
    """
    if len(shares) == 1:
        (am, value), = shares.items()
        subject = _capital(name_of(am)) + "'s rate "
        return subject + ("does not fall as the table grows" if value >= KEEPS else
                          "falls to %s as the table grows" % share(value))
    ams = pair_of(list(shares))
    if not ams or ams[1] != "btree":
        return topic
    ours, base = shares[ams[0]], shares["btree"]
    if base >= FALLS:
        if not ratio:
            return topic
        return "%s loads %s rows a second as a B-tree" % (ams[0], as_words(ratio, "many"))
    if ours >= KEEPS:
        return "A B-tree's rate falls to %s as the table grows; %s's does not" % (share(base), name_of(ams[0]))
    return "As the table grows, a B-tree's rate falls to %s, %s's to %s" % (share(base), name_of(ams[0]), share(ours))


def _growth_title(plot, data, experiment):
    case = plot.parts[0].case
    loads = {am: data.median_load(experiment, case, am) for am in data.shown(plot, experiment)}
    loads = {am: samples for am, samples in loads.items() if samples}
    if not loads:
        return plot.topic
    total = max(samples[-1][0] for samples in loads.values())
    ams, ratios = pair_of(list(loads)), None
    if ams:
        values, base = (data.values(experiment, case, "rows/s", am).get("", {}) for am in ams)
        ratios = [values[r] / base[r] for r in values if base.get(r)]
    return growth({am: kept(samples, total) for am, samples in loads.items()}, ratios, plot.topic)


def title(plot, data, experiment):
    return (_growth_title if plot.kind == "growth" else claim)(plot, data, experiment)


# --- findings

def compared(values, unit):
    """Values {method: {repeat: value}} in words, with the ratios of the subject."""
    text = ", ".join("%s %s" % (label_of(am), si(spread(list(v.values()))[0])) for am, v in values.items())
    text += " " + unit if unit else ""
    pair = pair_of(list(values))
    ratios = []
    for base in ("none", "btree"):
        ratio = ratio_to(values[pair[0]], values[base]) if pair and base in values and base != pair[0] else None
        if ratio is not None:
            ratios.append("%s times %s" % (times(ratio), name_of(base)))
    return text + ("; %s is %s" % (label_of(pair[0]), " and ".join(ratios)) if ratios else "")


def _growth_finding(plot, data, experiment):
    case = plot.parts[0].case
    for metric, what in ((SAME_ROWS, "Over the last tenth of the rows that all reached"),
                         ("rows/s, last tenth", "Over the last tenth of the rows")):
        found = {am: data.values(experiment, case, metric, am).get("") for am in data.shown(plot, experiment)}
        found = {am: values for am, values in found.items() if values}
        if found:
            return "%s: %s." % (what, compared(found, "rows/s"))
    return ""


def _place(plot, x):
    """An x in words: "8 clients", "round 3"."""
    if not x.isdigit() or not plot.xlabel:
        return plot.names.get(x, x)
    return "round " + x if plot.xlabel == "round" else "%s %s" % (plain(float(x)), plot.xlabel)


def finding(plot, data, experiment):
    """One sentence with the numbers behind the title, or an empty one."""
    if plot.kind == "growth":
        return _growth_finding(plot, data, experiment)
    if plot.kind == "series":
        if not plot.figure:
            return ""
        metric, x = plot.figure
        found = {am: data.values(experiment, plot.parts[0].case, metric, am).get(x) for am in data.shown(plot, experiment)}
        found = {am: values for am, values in found.items() if values}
        return _capital("%s%s: %s." % (metric, ", " + x if x else "", compared(found, ""))) if found else ""
    lists = data.curves(plot, experiment)
    if plot.pairs:
        curves = [curve for curves in lists for curve in curves]
        x = _at(plot, curves) if curves else None
        values = ["%s %s" % (c.label, si(spread(list(c.points[x].values()))[0])) for c in curves if x]
        return _capital("%s: %s (%s)." % (_place(plot, x), "; ".join(values), plot.unit)) if x else ""
    sentences = []
    for part, curves in zip(plot.parts, lists):
        x = _at(plot, curves) if curves else None
        if x is not None:
            head = ", ".join(t for t in (part.label, _place(plot, x)) if t)
            text = compared({c.am: c.points[x] for c in curves}, plot.unit)
            sentences.append(_capital((head + ": " if head else "") + text) + ".")
    return " ".join(sentences)
