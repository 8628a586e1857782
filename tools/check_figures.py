#!/usr/bin/env python3
"""Checks that the figures of a document are what the committed data says.

    tools/check_figures.py [--root DIR] [--complete] [FILE]...         FILE: README.md unless said otherwise

A figure is a number in a table, but for its head and its first column, or a number in the text that looks measured: with a
decimal point, with k, M, thousand or million, or with a unit such as ms or rows/s. Code does not count. The comment
before a block (a table or a paragraph), or within it, says where its figures come from, each one in their order:

    <!-- figures
    from docs/benchmark/bars.csv, commit 0123456789ab
    566 k = int4 | lsm | rows/s
    0.89 = int4 | bar | rows/s, average, of no index
    100 M = given
    -->

These lines may as well stand in a file beside the data, so that the document is easy to read where its comments show:

    <!-- figures: from docs/benchmark/README.figures, block loads -->

docs/benchmark/README.md explains such lines. "<!-- figures: none -->" says that a block has none, "figures: none, section"
the same of all up to the next heading, and "figures: pending" that the data is not there yet; --complete refuses that.

Wrong are: a figure that rounds to something else, or whose record is not there; a figure without a line, and a line without
its figure; a block of lines that no block of the document has, or two of them; a ratio with more digits than its spread
allows; data of another commit than the one that is named, and a commit that a reader does not see in the text. Prints what
is wrong and ends with status 1 if anything is.
"""

import argparse
import csv
import json
import os
import re
import sys
from collections import defaultdict
from decimal import Decimal
from statistics import median

NUMBER = r"(?<![\w.,^*/-])(\d+(?:,\d{3})*(?:\.\d+)?)(?: (k|M|G|thousand|million|billion)\b)?(?![\w^])"
FACTORS = {"": 1, "k": 1e3, "thousand": 1e3, "M": 1e6, "million": 1e6, "G": 1e9, "billion": 1e9}
UNIT = (r"\s*(?:%|percent\b|rows/s|(?:rows )?a second\b|ms\b|us\b|s\b|seconds\b|minutes\b|hours\b|bytes a row|bytes/row|"
        r"times\b)")
HEADING = re.compile(r"#+ ")
CHANGED = "changed"
TWO_DIGITS = 0.1                # greatest spread of ratios, of their median, that allows two digits
COMMIT_DIGITS = 7


class FigureError(Exception):
    """What is wrong with a figure."""


# --- documents


class Block:
    """A table or a paragraph, and the comments on its figures."""

    def __init__(self):
        self.lines = []         # (number, text without comments and code)
        self.comments = []      # (number of the line, text)

    def is_table(self):
        return self.lines[0][1].lstrip().startswith("|")

    def figures(self):
        """[(number of the line, text)], in order. Those that a suffix or unit makes."""
        found = []
        if self.is_table():
            head = 0
            for i, (_, text) in enumerate(self.lines):
                if re.fullmatch(r"[\s|:-]+", text):
                    head = i + 1
            for number, text in self.lines[head:]:
                for cell in text.strip().strip("|").split("|")[1:]:
                    found += [(number, m.group(0)) for m in re.finditer(NUMBER, cell)]
            return found
        # A unit may stand at the beginning of the next line.
        text = "\n".join(t for _, t in self.lines)
        for m in re.finditer(NUMBER, text):
            if "." in m.group(1) or m.group(2) or re.match(UNIT, text[m.end():]):
                found.append((self.lines[text.count("\n", 0, m.start())][0], m.group(0)))
        return found


def without_code(text):
    """Links keep their text; pictures, addresses and code go."""
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def blocks(text):
    """Yields the blocks of a document, and headings as strings. Code is left out."""
    block, comment, fenced = Block(), None, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if comment is None and line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced:
            continue
        had_comment = comment is not None
        kept = ""
        while line:
            if comment is not None:
                body, end, line = line.partition("-->")
                comment[1].append(body)
                if end:
                    block.comments.append((comment[0], "\n".join(comment[1])))
                    comment = None
            else:
                before, begin, line = line.partition("<!--")
                kept += before
                if begin:
                    had_comment, comment = True, (number, [])
        if kept.strip():
            if HEADING.match(kept):
                yield kept
            else:
                block.lines.append((number, kept))
        elif not had_comment and comment is None and block.lines:
            if not all(t.startswith("    ") for _, t in block.lines):
                # Code within a line may go on in the next one.
                texts = re.sub(r"`[^`]*`", lambda m: "\n" * m.group(0).count("\n"),
                               "\n".join(t for _, t in block.lines)).split("\n")
                block.lines = [(n, without_code(t)) for (n, _), t in zip(block.lines, texts)]
                yield block
                block = Block()
            else:
                block.lines = []
    if comment is not None:
        raise FigureError("%d: a comment without an end" % comment[0])


# --- data


class Bars:
    """bars.csv, as bench/bars.sh writes it: several runs, each of one commit."""

    HEAD = ["run", "experiment", "method", "repeat", "record", "name", "x", "value", "extra"]

    def __init__(self, rows):
        self.runs = []                          # in the order of the file
        self.conditions = defaultdict(dict)     # (run, experiment or "") -> {name: value}
        self.values = defaultdict(lambda: defaultdict(dict))    # (run, experiment, method, name) -> x -> repeat -> value
        for r in (dict(zip(self.HEAD, row)) for row in rows):
            if r["run"] not in self.runs:
                self.runs.append(r["run"])
            if r["record"] in ("option", "setting"):
                self.conditions[r["run"], r["experiment"]][r["name"]] = r["value"]
            elif r["record"] in ("figure", "turn", "bar") and r["value"] != "":
                # The x of a verdict is its bound.
                method, x = (r["method"], r["x"]) if r["record"] == "figure" else (r["record"], "")
                self.values[r["run"], r["experiment"], method, r["name"]][x][r["repeat"]] = float(r["value"])

    def find(self, commit, conditions, experiment, method, name):
        """({x: {repeat: value}}, whether it is a ratio) of the latest run that has it."""
        others, otherwise = set(), False
        for run in reversed(self.runs):
            keys = [(run, experiment, m, name) for m in (("turn", "bar") if method == "bar" else (method,))]
            keys = [key for key in keys if key in self.values]
            if not keys:
                continue
            there = self.conditions[run, ""].get("commit", "unknown")
            if not same_commit(there, commit):
                others.add(there)
                continue
            known = {**self.conditions[run, ""], **self.conditions[run, experiment]}
            if all(known.get(n) == v for n, v in conditions.items()):
                return self.values[keys[0]], keys[0][2] == "turn"
            otherwise = True
        if otherwise:
            raise FigureError("it was not measured with %s" % ", ".join("%s %s" % c for c in conditions.items()))
        if others:
            raise FigureError("it was measured with commit %s only" % ", ".join(sorted(others)))
        raise FigureError("there is no such record")


class Results:
    """results.csv, as bench/run.sh writes it: one run, of which run.json or report.html beside it names the commit."""

    HEAD = ["group", "experiment", "case", "x", "am", "repeat", "metric", "value", "unit", "note"]

    def __init__(self, rows, folder):
        self.values = defaultdict(lambda: defaultdict(dict))    # ("experiment: case", am, metric) -> x -> repeat -> value
        for r in (dict(zip(self.HEAD, row)) for row in rows):
            case = "%s: %s" % (r["experiment"], r["case"])
            self.values[case, r["am"], r["metric"]][r["x"]][r["repeat"]] = float(r["value"])
        self.commit = "unknown"
        for name, pattern in (("run.json", None), ("report.html", r"commit ([0-9a-f]+(?:, changed)?)")):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                found = re.search(pattern, text) if pattern else None
                self.commit = json.loads(text)["facts"]["source"] if not pattern else found.group(1) if found else "unknown"
                break

    def find(self, commit, conditions, experiment, method, name):
        if conditions:
            raise FigureError("only records of bars.csv can be chosen by %s" % ", ".join(conditions))
        if not same_commit(self.commit, commit):
            raise FigureError("it was measured with commit %s" % self.commit)
        if (experiment, method, name) not in self.values:
            raise FigureError("there is no such record")
        return self.values[experiment, method, name], False


def same_commit(one, other):
    """Of two names, one may be shorter. What was measured with changes belongs to no commit."""
    return (CHANGED not in one and min(len(one), len(other)) >= COMMIT_DIGITS and
            (one.startswith(other) or other.startswith(one)))


def read_data(root, path):
    full = os.path.join(root, path)
    if not os.path.exists(full):
        raise FigureError("there is no %s" % path)
    with open(full, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if rows and rows[0] == Bars.HEAD:
        return Bars(rows[1:])
    if rows and rows[0] == Results.HEAD:
        return Results(rows[1:], os.path.dirname(full))
    raise FigureError("%s has neither the columns of bars.csv nor those of results.csv" % path)


# --- lines on figures in a file of their own


def read_lines(root, path):
    """{name of the block: [(where, line)]}"""
    full = os.path.join(root, path)
    if not os.path.exists(full):
        raise FigureError("there is no %s" % path)
    found, name = {}, None
    with open(full, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            where, line = "%s:%d: " % (path, number), line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("block "):
                name = line[len("block "):].strip()
                if name in found:
                    raise FigureError("%sa second block %s" % (where, name))
                found[name] = []
            elif name is None:
                raise FigureError("%sno line \"block NAME\" stands before this one" % where)
            else:
                found[name].append((where, line))
    return found


# --- figures


def decimal_of(text):
    """(its number, its factor)"""
    m = re.fullmatch(NUMBER, text)
    if not m:
        raise FigureError("%s is no figure" % text)
    return Decimal(m.group(1).replace(",", "")), FACTORS[m.group(2) or ""]


def digits_of(number):
    """Of a figure as it is written; zeroes at the end of a whole number do not count."""
    text = format(number, "f")
    if "." not in text:
        return max(len(text.rstrip("0")), 1)
    return max(len(text.replace(".", "").lstrip("0")), 1)


def unit_of(number, least_digits):
    """What its last digit counts, which may be a zero only behind so many digits."""
    text = format(number, "f")
    if "." in text:
        return Decimal(1).scaleb(-len(text.partition(".")[2]))
    zeroes = len(text) - len(text.rstrip("0"))
    return Decimal(1).scaleb(min(zeroes, max(len(text) - least_digits, 0)))


def rounds_to(value, number, least_digits):
    # The data is rounded itself, to six digits.
    tolerance = abs(value) * 1e-6
    return abs(value - float(number)) <= float(unit_of(number, least_digits)) / 2 + tolerance


def digits_allowed(turns):
    """Digits that the spread of a ratio leaves: two take several turns that are close together."""
    if len(turns) >= 2 and max(turns) - min(turns) <= TWO_DIGITS * abs(median(turns)):
        return 2
    return 1


def in_range(x, wanted):
    m = re.fullmatch(r"(\d+)-(\d+)", wanted)
    if not m:
        return x == wanted
    try:
        return int(m.group(1)) <= float(x) <= int(m.group(2))
    except ValueError:
        return False


class Source:
    """What the line "from FILE, commit ..." says."""

    def __init__(self, root, text, cache):
        path, *conditions = [part.strip() for part in text.split(",")]
        self.path = path
        self.conditions = dict(c.partition(" ")[::2] for c in conditions)
        self.commit = self.conditions.pop("commit", None)
        if not self.commit or not re.fullmatch("[0-9a-f]{%d,40}" % COMMIT_DIGITS, self.commit):
            raise FigureError("\"from %s\" names no commit" % path)
        if path not in cache:
            cache[path] = read_data(root, path)
        self.data = cache[path]

    def _turns(self, experiment, method, name, wanted):
        """([values of the repeats, for each x], whether they are ratios)"""
        methods = [m.strip() for m in method.split(" / ")]
        found = [self.data.find(self.commit, self.conditions, experiment, m, name) for m in methods]
        xs = [x for x in found[0][0] if in_range(x, wanted) and all(x in values for values, _ in found)]
        if not xs:
            raise FigureError("there is no such record at \"%s\"" % wanted)
        if len(methods) == 1:
            return [list(found[0][0][x].values()) for x in xs], found[0][1]
        turns = [[values[x][r] / found[1][0][x][r] for r in values[x] if found[1][0][x].get(r)]
                 for values in [found[0][0]] for x in xs]
        if not all(turns):
            raise FigureError("%s have no repeat in common" % method)
        return turns, True

    def check(self, text, record):
        """Whether a figure is what the record says."""
        number, factor = decimal_of(text)
        scale = 1.0
        m = re.fullmatch(r"(.*\S) ([*/]) ([\d.e+]+)", record)
        if m:
            record, scale = m.group(1), float(m.group(3)) if m.group(2) == "*" else 1 / float(m.group(3))
        m = re.fullmatch(r"(least|greatest) (.*)", record)
        choose = m.group(1) if m else None
        fields = [field.strip() for field in (m.group(2) if m else record).split("|")]
        if len(fields) not in (3, 4):
            raise FigureError("a record has three fields or four, with | between them")
        turns, is_ratio = self._turns(*fields[:3], fields[3] if len(fields) == 4 else "")
        if len(turns) > 1 and not choose:
            raise FigureError("there are several; say which, or \"least\" or \"greatest\"")
        chosen = (min if choose == "least" else max)(turns, key=median)
        value = median(chosen) * scale
        if not rounds_to(value / factor, number, 1 if is_ratio else 2):
            raise FigureError("it is %.6g in %s" % (value / factor, self.path))
        allowed = digits_allowed(chosen)
        if is_ratio and digits_of(number) > allowed:
            raise FigureError("a ratio of %s may have %s, and is %.*g" % (
                "one turn" if len(chosen) == 1 else "%d turns, %.3g to %.3g," % (len(chosen), min(chosen), max(chosen)),
                "two digits" if allowed == 2 else "one digit", allowed, value))


class Checker:
    """Of one document. `wrong` has what is wrong, as (number of the line, text)."""

    def __init__(self, root, text, cache):
        self.root, self.cache = root, cache
        self.wrong, self.checked, self.pending = [], 0, []
        self.commits = {}               # commit -> line that names it
        self.files = {}                 # path -> (first line that names it, {block that no comment has named: its lines})
        in_section, visible = False, []
        for block in blocks(text):
            if isinstance(block, str):
                in_section = False
                continue
            visible += [t for _, t in block.lines]
            words = [(number, body.strip()) for number, body in block.comments if body.strip().startswith("figures")]
            if any(body == "figures: none, section" for _, body in words):
                in_section = True
            self._block(block, [w for w in words if w[1] != "figures: none, section"], in_section)
        for commit, number in self.commits.items():
            if not re.search(r"\b%s" % commit[:COMMIT_DIGITS], "\n".join(visible)):
                self.wrong.append((number, "the text does not name commit %s, which was measured" % commit))
        for path, (number, left) in self.files.items():
            self.wrong += [(number, "%s: the document has no block %s" % (path, name)) for name in left]

    def _block(self, block, words, in_section):
        figures = block.figures()
        if not words:
            if figures and not in_section:
                self.wrong.append((figures[0][0], "no comment says where these figures come from: %s" % ", ".join(
                    " ".join(text.split()) for _, text in figures)))
            return
        if len(words) > 1:
            self.wrong.append((words[1][0], "two comments on the figures of one block"))
        number, body = words[0]
        if body == "figures: none":
            return
        if body == "figures: pending":
            self.pending.append(number)
            return
        head, *lines = body.split("\n")
        m = re.fullmatch(r"figures: from (\S+), block (\S+)", head.strip())
        if m and not lines:
            try:
                self._lines(figures, [(number, *line) for line in self._lines_of(number, *m.groups())])
            except FigureError as error:
                self.wrong.append((number, str(error)))
            return
        if head.strip() != "figures":
            self.wrong.append((number, "what is \"%s\"?" % head.strip()))
            return
        self._lines(figures, [(n, "", line.strip()) for n, line in enumerate(lines, number + 1)])

    def _lines_of(self, number, path, name):
        """[(where, line)] of a block in a file."""
        if path not in self.files:
            self.files[path] = (number, read_lines(self.root, path))
        left = self.files[path][1]
        if name not in left:
            raise FigureError("%s has no block %s, or it is another one's, too" % (path, name))
        return left.pop(name)

    def _lines(self, figures, lines):
        """`lines` are (number of the line in the document, place in another file if it is there, text)."""
        source, left = None, list(figures)
        for number, where, line in lines:
            if not line:
                continue
            try:
                if line.startswith("from "):
                    source = Source(self.root, line[5:], self.cache)
                    self.commits.setdefault(source.commit, number)
                    continue
                text, sign, record = (part.strip() for part in line.partition("="))
                if not sign:
                    raise FigureError("\"%s\" is neither \"from ...\" nor \"FIGURE = ...\"" % line)
                if not left:
                    raise FigureError("the text has no figure %s here" % text)
                line_there, there = left.pop(0)
                if " ".join(there.split()) != text:
                    raise FigureError("the text has %s (line %d) where the comment has %s" % (there, line_there, text))
                if record == "given":
                    continue
                if source is None:
                    raise FigureError("no line \"from ...\" stands before %s" % text)
                try:
                    source.check(text, record)
                except FigureError as error:
                    raise FigureError("%s = %s: %s" % (text, record, error)) from None
                self.checked += 1
            except FigureError as error:
                self.wrong.append((number, where + str(error)))
                if "where the comment has" in str(error):
                    return              # all that follows would be wrong as well
        for number, text in left:
            self.wrong.append((number, "the comment has no line for %s" % text))


def main(arguments):
    parser = argparse.ArgumentParser(description="Checks the figures of documents against the committed data.",
                                     epilog="The head of this file, and docs/benchmark/README.md, say how they are marked.")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        help="folder that files are named from (default: the one above this program's)")
    parser.add_argument("--complete", action="store_true", help="nothing may be pending")
    parser.add_argument("file", nargs="*", default=["README.md"])
    options = parser.parse_args(arguments)
    cache, failed = {}, False
    for name in options.file:
        with open(os.path.join(options.root, name), encoding="utf-8") as file:
            try:
                checker = Checker(options.root, file.read(), cache)
            except FigureError as error:
                print("%s:%s" % (name, error))
                return 1
        wrong = checker.wrong + ([(n, "the data of these figures is not there yet") for n in checker.pending]
                                 if options.complete else [])
        for number, text in sorted(wrong):
            print("%s:%d: %s" % (name, number, text))
        failed |= bool(wrong)
        print("%s: %d figures are in the data, %d wrong or not marked, %d blocks pending" % (
            name, checker.checked, len(checker.wrong), len(checker.pending)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
