#!/usr/bin/env python3
"""Turns indexes in PostgreSQL's regression scripts into lsm indexes, and compares the outputs.

    translate.py [--unique | --all] sql FILE
                                the script or expected output on standard output, with plain indexes as lsm indexes;
                                with --unique the unique ones, and those of PRIMARY KEY and UNIQUE, instead;
                                with --all, all of these
    translate.py [--unique | --all] compare EXPECTED RESULT ALLOWED
                                prints the differences that name neither the method nor are in ALLOWED;
                                exit status 1 if there are any

Indexes of other access methods are not changed. Nor are these:
- unique indexes of partitioned tables, and those of partitions, because core matches the two;
- unique indexes with an operator class: the target of ON CONFLICT names the class, too, and core looks for it only among
  the classes of B-trees;
- unique indexes for ADD CONSTRAINT ... USING INDEX, which takes only B-trees;
- constraints with a syntax error, because psql shows the line.
"""
import difflib
import re
import sys

# CREATE INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON [ONLY] table [USING btree] (
CREATE = re.compile(
    r'(\bcreate\s+index\b(?:\s+concurrently)?(?:\s+if\s+not\s+exists)?(?:\s+(?!on\b)[\w."]+)?'
    r'\s+on\s+(?:only\s+)?[\w."]+)(?:\s+using\s+btree)?(\s*)(?=\()',
    re.IGNORECASE)


# The same with UNIQUE.
CREATE_UNIQUE = re.compile(CREATE.pattern.replace(r'\bcreate\s+index', r'\bcreate\s+unique\s+index'), re.IGNORECASE)

# PRIMARY KEY and UNIQUE, of a column or of the table, with INCLUDE; not where an index is named, and not in
# CREATE UNIQUE INDEX.
COLUMNS = r'\s*\((?:[^()]|\([^()]*\))*\)'
CONSTRAINT = re.compile(
    r'(\bprimary\s+key\b|(?<!create )\bunique\b(?:\s+nulls\s+(?:not\s+)?distinct)?)'
    r'(?!\s+(?:using|index|constraint|key|violation|indexes))'
    r'(' + COLUMNS + r'(?:\s*include' + COLUMNS + r')?)?', re.IGNORECASE)
# Statements whose constraints are translated, and those that stay as they are: about partitions (tp and t in
# constraints.sql are some), with an operator class, for USING INDEX (cnn_uq), or wrong (ENFORCED).
HAS_CONSTRAINT = re.compile(r'\b(?:create\s+(?:temp\s+|unlogged\s+)?table|alter\s+table)\b', re.IGNORECASE)
BTREE_ONLY = re.compile(r'partition|\bparted|\btp\b|\bon\s+(?:only\s+)?t\b|_ops\b|\bcnn_uq|\benforced\b', re.IGNORECASE)
# Split at the end of a statement, which is kept.
STATEMENTS = re.compile(r'(?<=;)')


def translate_unique(text):
    parts = []
    for part in STATEMENTS.split(text):
        if not BTREE_ONLY.search(part):
            part = CREATE_UNIQUE.sub(lambda m: m.group(1) + ' USING lsm' + (m.group(2) or ' '), part)
            if HAS_CONSTRAINT.search(part):
                part = CONSTRAINT.sub(lambda m: m.group(0) + ' WITH (lsm)', part)
        parts.append(part)
    return ''.join(parts)


def translate_plain(text):
    return CREATE.sub(lambda m: m.group(1) + ' USING lsm' + (m.group(2) or ' '), text)


def translate_all(text):
    return translate_plain(translate_unique(text))


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


def compare(translate, expected, result, allowed):
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
    arguments = sys.argv[1:]
    translate = translate_plain
    if arguments[:1] == ['--unique']:
        translate = translate_unique
        arguments.pop(0)
    elif arguments[:1] == ['--all']:
        translate = translate_all
        arguments.pop(0)
    if len(arguments) == 2 and arguments[0] == 'sql':
        with open(arguments[1], encoding='utf-8') as f:
            sys.stdout.write(translate(f.read()))
        return 0
    if len(arguments) == 4 and arguments[0] == 'compare':
        return compare(translate, *arguments[1:])
    sys.stderr.write(__doc__)
    return 2


sys.exit(main())
