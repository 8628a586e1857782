#!/usr/bin/env python3
"""Compares the output of a regression script that ran with lsm indexes with the expected one.

    output.py EXPECTED RESULT ALLOWED

Prints the differences that name neither the method nor are in ALLOWED, whose lines have the name of a script, a colon, and
a regular expression for lines that begin with "- " (expected) or "+ " (result). The exit status is 1 if there are any.
"""
import difflib
import os
import re
import sys


def normalize(text):
    """Hide the method's name in core's output."""
    text = re.sub(r'\busing (lsm|btree)\b', 'using METHOD', text, flags=re.IGNORECASE)
    text = re.sub(r'\b(lsm|btree) \(', 'METHOD (', text)
    text = re.sub(r'\b(lsm|btree), for (table|predicate)', r'METHOD, for \2', text)
    text = re.sub(r'(access method|method) "?(lsm|btree)"?', r'\1 METHOD', text)
    # The index of a constraint, and where psql prints it.
    text = re.sub(r"[ \t]+with \(lsm(?:='true')?\)", '', text, flags=re.IGNORECASE)
    # Widths of columns and of rules under headings depend on the name's length.
    text = re.sub(r'-{2,}', '--', text)
    text = re.sub(r'[ \t]+', ' ', text)
    return [line.strip() for line in text.splitlines()]


def allowed_lines(path, result):
    """The patterns of a script in a list of allowed differences."""
    script = os.path.basename(result).removesuffix('.out') + ': '
    with open(path, encoding='utf-8') as file:
        return [re.compile(line.rstrip('\n')[len(script):]) for line in file if line.startswith(script)]


def changes(want, got):
    """Yields the lists of items that differ between two lists."""
    for kind, a, b, c, d in difflib.SequenceMatcher(None, want, got, autojunk=False).get_opcodes():
        if kind != 'equal':
            yield want[a:b], got[c:d]


def report(want, got, allowed):
    """Prints the lines that differ and are not allowed. Returns whether there are any."""
    found = False
    for old, new in changes(want, got):
        lines = ['- ' + line for line in old] + ['+ ' + line for line in new]
        lines = [line for line in lines if line.strip('+- ') and not any(p.search(line) for p in allowed)]
        found = found or bool(lines)
        print(*lines, sep='\n', end='\n' if lines else '')
    return found


def main():
    expected, result, allowed = sys.argv[1:]
    lines = []
    for path in (expected, result):
        with open(path, encoding='utf-8') as file:
            lines.append(normalize(file.read()))
    return 1 if report(*lines, allowed_lines(allowed, result)) else 0


if __name__ == "__main__":
    sys.exit(main())
