#!/usr/bin/env python3
"""Compares two outputs of a regression script: does it return the same rows?

    rows.py EXPECTED RESULT ALLOWED

Prints the differences, except for plans, the order of rows without ORDER BY, the name of the access method, and what
ALLOWED lists (see output.py). The exit status is 1 if there are any.
"""
import re
import sys

from output import allowed_lines, changes, normalize, report

RULE = re.compile(r'^-[-+]{2,}$')
ROWS = re.compile(r'^\(\d+ rows?\)$')
ORDERED = re.compile(r'\border\s+by\b', re.IGNORECASE)


def blocks(path):
    """The text between tables, line by line, and tables: (statement, heading, rows)."""
    statement = []
    lines = []
    with open(path, encoding='utf-8', errors='replace') as file:
        text = [line.rstrip('\n') for line in file]
    i = 0
    while i < len(text):
        end = i + 1
        if end < len(text) and RULE.match(text[end]) and text[i].startswith(' ') and text[i].strip() != '^':
            # The output of \d has no row count, but a blank line after it.
            while end < len(text) and text[end] and not ROWS.match(text[end]):
                end += 1
            lines.append(table(statement, text[i].strip(), text[i + 2:end]))
            statement = []
            i = end + 1
            continue
        statement.append(text[i])
        lines.append(hide(text[i]))
        i += 1
    return lines


def table(statement, heading, rows):
    # Some scripts have functions that print one.
    if heading == 'QUERY PLAN' or heading.startswith('explain_'):
        return '(a plan)'
    rows = [hide(row) for row in rows]
    query = statement[max((i for i, line in enumerate(statement[:-1]) if line.endswith(';')), default=-1) + 1:]
    if not ORDERED.search(' '.join(query)):
        rows.sort()
    return '\n'.join([hide(heading)] + rows)


def hide(line):
    """Without the method's name, and with single blanks."""
    return ''.join(normalize(line))


def main():
    expected, result, allowed = sys.argv[1:]
    patterns = allowed_lines(allowed, result)
    found = False
    # Tables are compared as a whole first, so that rows of different tables do not match.
    for want, got in changes(blocks(expected), blocks(result)):
        found |= report('\n'.join(want).split('\n'), '\n'.join(got).split('\n'), patterns)
    return 1 if found else 0


sys.exit(main())
