"""The experiments: a module each.

A module has ID, NAME, TITLE, SOURCE (HTML), SECTIONS (questions with their plots) and plan(options), which returns
groups. Sections of one experiment that is large are modules of the same ID. e8_billion has
no plan: bench/bars.sh measures it, and report.py shows it when it is given the file.
"""

from . import (e1_ingest, e2_reads, e3_include, e4_lineitem, e5_range, e6_flash, e7_keys, e7_sessions, e7_upkeep,
               e9_insert_benchmark, e10_alternatives, e11_updates)

MODULES = (e1_ingest, e2_reads, e3_include, e4_lineitem, e5_range, e6_flash, e7_keys, e7_sessions, e7_upkeep,
           e9_insert_benchmark, e10_alternatives, e11_updates)


def select(text):
    """The modules selected by a list of numbers and names, in order."""
    if text == "all":
        return list(MODULES)
    wanted = text.split(",")
    for word in wanted:
        if not any(word in (m.ID, m.NAME) for m in MODULES):
            raise ValueError("no experiment \"%s\"; there are %s" % (
                word, ", ".join("%s (%s)" % (m.ID, m.NAME) for m in MODULES)))
    return [m for m in MODULES if m.ID in wanted or m.NAME in wanted]
