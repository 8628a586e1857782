"""The arithmetic of the report. Nothing here depends on a server."""

from statistics import median


def spread(values):
    """(median, least, greatest) of some values."""
    return median(values), min(values), max(values)


def ratio_to(values, base):
    """The median of the ratios of two systems within the same repeat.

    Both are dictionaries from repeat to value. None if they have no repeat in common.
    """
    ratios = [values[repeat] / base[repeat] for repeat in values if base.get(repeat)]
    return median(ratios) if ratios else None


def time_at(samples, rows):
    """The seconds after which this many rows were there. Samples are (rows, seconds), ascending; values between them
    are interpolated.

    With the pairs swapped, the result is the number of rows at a time.
    """
    before = (0, 0.0)
    for sample in samples:
        if sample[0] >= rows:
            if sample[0] == before[0]:
                return sample[1]
            share = (rows - before[0]) / (sample[0] - before[0])
            return before[1] + share * (sample[1] - before[1])
        before = sample
    raise ValueError("no sample at %d rows" % rows)


def rate(samples, begin, end):
    """Rows a second between two row counts."""
    seconds = time_at(samples, end) - time_at(samples, begin)
    return (end - begin) / seconds if seconds > 0 else float("inf")


def last_tenth(samples):
    total = samples[-1][0]
    return rate(samples, total * 0.9, total)


def windows(samples, count=40):
    """Throughput over table size: (rows in the table, rows a second at that size), for equal pieces of the time."""
    swapped = [(seconds, rows) for rows, seconds in samples]
    count = min(count, len(samples))
    length = samples[-1][1] / count
    points, before = [], 0.0
    for i in range(1, count + 1):
        rows = time_at(swapped, min(i * length, samples[-1][1]))
        points.append(((before + rows) / 2, (rows - before) / length))
        before = rows
    return points


def si(value):
    """A number in readable form: three digits and k, M or G."""
    if value is None:
        return ""
    for limit, suffix in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= limit:
            return "%.3g%s" % (value / float(limit if suffix != " k" else 1e3), suffix)
    if value == 0 or abs(value) >= 100:
        return "{:,.0f}".format(value)
    return "%.3g" % value


def duration(seconds):
    """A time in readable form."""
    if seconds < 90:
        return "%d s" % round(seconds)
    if seconds < 90 * 60:
        return "%d min" % round(seconds / 60)
    return "%.1f h" % (seconds / 3600)


def plain(value):
    """A number for axes and labels, of at most three digits: 0.25, 12, 2.5 k, 100 k, 1.2 M."""
    for limit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit * 0.9995:
            return "%.3g%s" % (value / limit, suffix)
    return "%.3g" % value if abs(value) < 100 else "%.0f" % value


def spread_apart(places, gap, low, high):
    """Moves places, as little as it takes, so that they are at least `gap` apart, and within low and high if they fit.
    Returns them in the given order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups = []                 # [sum of (place - offset), members]: neighbors that touch
    for number, i in enumerate(order):
        groups.append([places[i] - number * gap, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, members = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += members
    firsts = [total / members for total, members in groups for _ in range(members)]
    most = high - (len(places) - 1) * gap
    result = [0.0] * len(places)
    for number, i in enumerate(order):
        result[i] = max(min(firsts[number], most), low) + number * gap
    return result


def outgrows(bytes_a_row, memory_mb, shared_buffers_mb):
    """The number of rows at which an index is larger than the cache. A block may be in shared buffers and in the system's
    cache at once, so only the larger of them counts."""
    return max(shared_buffers_mb, memory_mb - shared_buffers_mb) * 2 ** 20 / bytes_a_row


def megabytes(setting):
    """The value of a memory setting, "384MB" or "1 GB", or None."""
    number, unit = setting.strip().rstrip("kMGTB "), setting.strip().lstrip("0123456789 ")
    factor = {"kB": 1 / 1024, "MB": 1, "GB": 1024, "TB": 1 << 20}.get(unit)
    return int(number) * factor if factor and number.strip().isdigit() else None
