#!/usr/bin/env python3
"""Compares two outputs of a regression script: does it return the same rows?

    forced.py EXPECTED RESULT ALLOWED

Prints the differences, except for plans, the order of rows without ORDER BY, and what ALLOWED lists (one regular
expression a line, applied to lines that begin with "- " or "+ "). The exit status is 1 if there are any.
"""
import difflib
import re
import sys

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
        lines.append(text[i])
        i += 1
    return lines


def table(statement, heading, rows):
    # Some scripts have functions that print one.
    if heading == 'QUERY PLAN' or heading.startswith('explain_'):
        return '(a plan)'
    query = statement[max((i for i, line in enumerate(statement[:-1]) if line.endswith(';')), default=-1) + 1:]
    if not ORDERED.search(' '.join(query)):
        rows = sorted(rows)
    return '\n'.join([heading] + [re.sub(r'\s+', ' ', row) for row in rows])


def main():
    expected, result, allowed = sys.argv[1:]
    with open(allowed, encoding='utf-8') as file:
        patterns = [re.compile(line.rstrip('\n')) for line in file if line.strip() and not line.startswith('#')]
    want, got = blocks(expected), blocks(result)
    found = False
    for kind, a, b, c, d in difflib.SequenceMatcher(None, want, got, autojunk=False).get_opcodes():
        if kind == 'equal':
            continue
        lines = ['- ' + line for block in want[a:b] for line in block.split('\n')]
        lines += ['+ ' + line for block in got[c:d] for line in block.split('\n')]
        if all(any(p.search(line) for p in patterns) for line in lines):
            continue
        found = True
        print('\n'.join(lines))
    return 1 if found else 0


sys.exit(main())
