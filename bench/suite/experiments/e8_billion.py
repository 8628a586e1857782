"""Experiment 8: a billion rows. bench/bars.sh measures it; the report shows its results."""

import csv

from .. import BenchError
from ..figures import Part, Plot, Section
from ..results import Result, Sample

ID, NAME = "8", "billion"
TITLE = "A load that outgrows memory several times"
SOURCE = "Ours; <code>bench/bars.sh --bars billion</code>, at commit %(commit)s."

CASE = "a billion rows"
LONGEST = "longest transaction, ms"
SECTIONS = [Section("How fast is a load of a billion rows?", """COPY fills t(k int4, f char(10)) with an index on
random k, 1000 rows to a transaction, by one client, in a server of %(memory)s MB. Then workers stop, and keys are
looked up in the index as the load left it (<i>fresh</i>); then they merge until nothing is due, and the same is done
again (<i>settled</i>); last come lsm_check, lsm_check with the table, and lsm_compact. The table is larger than the
server's memory from the first pixels on.""", [
    Plot("e8-billion", "growth", "Rows loaded per second, up to a billion rows", [Part(CASE)], "rows/s",
         "rows in the table",
         conditions="random int4 keys, COPY of 1000 rows, one client; dashed: the rate of the first twentieth"),
    Plot("e8-billion-stalls", "series", "The longest transactions of a load of a billion rows", [Part(CASE, LONGEST)],
         "ms",
         "rows in the table", conditions="the longest transaction of 1000 rows in each two-hundredth of the load")])]
SHOWN_OF_LATENCIES = (" rate", " p50", " p99", " max")


def read(path):
    """(results, samples, options) of the latest run in a file of bars.sh; raises BenchError if there is none."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    runs = [row["run"] for row in rows if row.get("experiment") == NAME and row.get("record") == "figure"]
    if not runs:
        raise BenchError("%s has no load of the bar \"%s\"" % (path, NAME))
    rows = [row for row in rows if row["run"] == runs[-1]]
    results, samples = [], []
    for row in rows:
        if row["experiment"] != NAME:
            continue
        at = {"group": NAME, "experiment": ID, "case": CASE, "am": row["method"], "repeat": row["repeat"], "x": row["x"]}
        if row["record"] == "sample" and row["name"] == "load":
            for series, value in (("load", row["value"]), (LONGEST, row["extra"])):
                samples.append(Sample(series=series, value=value, extra="", **at))
        elif row["record"] == "figure" and _is_shown(row["name"]):
            results.append(Result(metric=row["name"], value=row["value"], unit=row["extra"], note="", **at))
    return results, samples, {row["name"]: row["value"] for row in rows if row["record"] == "option"}


def _is_shown(name):
    is_latency = name.startswith(("lookup ", "range "))
    return not is_latency or name.endswith(SHOWN_OF_LATENCIES)
