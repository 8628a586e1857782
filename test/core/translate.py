#!/usr/bin/env python3
"""Turns plain indexes in PostgreSQL's regression scripts into lsm indexes, and compares what came out.

    translate.py sql FILE       the script or expected output on standard output, with plain indexes as lsm indexes
    translate.py compare EXPECTED RESULT ALLOWED
                                prints the differences that name neither the method nor are in ALLOWED;
                                exit status 1 if there are any

Unique indexes, and other access methods, stay what they are.
"""
import difflib
import re
import sys

# CREATE INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON [ONLY] table [USING btree] (
CREATE = re.compile(
    r'(\bcreate\s+index\b(?:\s+concurrently)?(?:\s+if\s+not\s+exists)?(?:\s+(?!on\b)[\w."]+)?'
    r'\s+on\s+(?:only\s+)?[\w."]+)(?:\s+using\s+btree)?(\s*)(?=\()',
    re.IGNORECASE)


def translate(text):
    return CREATE.sub(lambda m: m.group(1) + ' USING lsm' + (m.group(2) or ' '), text)


def normalize(text):
    """Hide the method's name where core prints it."""
    text = re.sub(r'\busing (lsm|btree)\b', 'using METHOD', text, flags=re.IGNORECASE)
    text = re.sub(r'\b(lsm|btree) \(', 'METHOD (', text)
    text = re.sub(r'\b(lsm|btree), for (table|predicate)', r'METHOD, for \2', text)
    text = re.sub(r'(access method|method) "?(lsm|btree)"?', r'\1 METHOD', text)
    # Widths of columns and of rules under headings depend on the name's length.
    text = re.sub(r'-{2,}', '--', text)
    text = re.sub(r'[ \t]+', ' ', text)
    return [line.strip() for line in text.splitlines()]


def compare(expected, result, allowed):
    with open(allowed, encoding='utf-8') as f:
        patterns = [re.compile(line.rstrip('\n')) for line in f
                    if line.strip() and not line.startswith('#')]
    with open(expected, encoding='utf-8') as f:
        want = normalize(translate(f.read()))
    with open(result, encoding='utf-8') as f:
        got = normalize(f.read())
    found = False
    for group in difflib.SequenceMatcher(None, want, got, autojunk=False).get_opcodes():
        kind, a, b, c, d = group
        if kind == 'equal':
            continue
        lines = ['- ' + x for x in want[a:b]] + ['+ ' + x for x in got[c:d]]
        if all(any(p.search(line) for p in patterns) or line in ('- ', '+ ') for line in lines):
            continue
        found = True
        print(f'@@ line {a + 1} of the expected output @@')
        print('\n'.join(lines))
    return 1 if found else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == 'sql':
        with open(sys.argv[2], encoding='utf-8') as f:
            sys.stdout.write(translate(f.read()))
        return 0
    if len(sys.argv) == 5 and sys.argv[1] == 'compare':
        return compare(*sys.argv[2:])
    sys.stderr.write(__doc__)
    return 2


sys.exit(main())
