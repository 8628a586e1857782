#!/usr/bin/env python3
"""Generates what SQL and the documentation say about the counters, from src/base/counter_list.h.

    tools/make_counters.py             brings the generated parts up to date
    tools/make_counters.py --check     changes nothing; the exit status is 1 if a part is out of date

The generated parts stand between lines with "generated: NAME" and "generated: end".
"""

import pathlib
import re
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
LIST = "src/base/counter_list.h"
SQL = "sql/pg_lsm--0.2.0.sql"
DOCUMENT = "docs/monitoring-counters.md"

ENTRY = re.compile(r'^LSM_(COUNTER|READ_COUNTER|STATE)\(((?:[^()"]|"[^"]*")*)\)$', re.M)
ARGUMENT = re.compile(r'"[^"]*"|\w+')

# The SQL type of each kind.
TYPES = {
    "count": "bigint",
    "blocks": "bigint",
    "microseconds": "double precision",
    "bytes": "bigint",
    "number": "integer",
    "ratio": "double precision",
    "time": "timestamptz",
}


class Column:
    def __init__(self, macro, arguments):
        words = [word.strip('"') for word in ARGUMENT.findall(arguments)]
        self.description = words[-1]
        self.explain = ""
        if macro == "STATE":
            self.name, self.kind = words[:2]
        elif macro == "COUNTER":
            self.name, self.kind = words[1:3]
        else:
            self.explain, self.name = words[:2]
            self.kind = "count"
        self.type = TYPES[self.kind]

    def in_function(self):
        return f"\tOUT {self.name} {self.type}"

    def in_view(self):
        return f"\ts.{self.name}"

    def comment(self):
        text = self.description.replace("'", "''")
        return f"COMMENT ON COLUMN pg_stat_lsm_indexes.{self.name} IS '{text}';"

    def in_document(self):
        explain = f"`{self.explain}`" if self.explain else ""
        return f"| `{self.name}` | {self.type} | {explain} | {self.description} |"


def read_columns():
    text = (TREE / LIST).read_text()
    columns = [Column(*match.groups()) for match in ENTRY.finditer(text)]
    if len(columns) != len(re.findall(r"^LSM_", text, re.M)):
        sys.exit(f"{LIST}: an entry has a form that tools/make_counters.py does not know")
    return columns


def replace_part(text, path, name, lines):
    """The text, with these lines in the generated part of that name."""
    pattern = re.compile(rf"(^.*generated: {name}\b.*\n)(?:.*\n)*?(^.*generated: end\b)", re.M)
    result, count = pattern.subn(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)
    if count != 1:
        sys.exit(f"{path}: {count} generated parts are called {name}")
    return result


def main():
    columns = read_columns()
    parts = [
        (SQL, "function", [",\n".join(column.in_function() for column in columns)]),
        (SQL, "view", [",\n".join(column.in_view() for column in columns)]),
        (SQL, "comments", [column.comment() for column in columns]),
        (DOCUMENT, "table", ["", "| column | type | in EXPLAIN | what it shows |", "|---|---|---|---|"]
            + [column.in_document() for column in columns] + [""]),
    ]
    texts = {path: (TREE / path).read_text() for path in (SQL, DOCUMENT)}
    status = 0
    for path, name, lines in parts:
        new = replace_part(texts[path], path, name, lines)
        if new != texts[path] and "--check" in sys.argv:
            print(f'{path}: the generated part "{name}" is out of date; run tools/make_counters.py')
            status = 1
        texts[path] = new
    if "--check" not in sys.argv:
        for path, text in texts.items():
            (TREE / path).write_text(text)
    sys.exit(status)


main()
