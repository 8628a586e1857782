#!/usr/bin/env python3
"""Tests of tools/check_figures.py, on documents and data made here. Prints TAP; tools/test.sh calls it."""

import csv
import os
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TREE, "tools"), os.path.join(TREE, "test", "bench")]
sys.dont_write_bytecode = True

import check_figures  # noqa: E402
from smoke import Tap, TapResult  # noqa: E402

COMMIT, OLD = "0123456789ab", "ba9876543210"
FROM = "from bars.csv, commit %s\n" % COMMIT
HERE = "Measured at commit %s.\n\n" % COMMIT[:7]


def bars():
    """Rows of two runs; of each method there are three turns."""
    rows = []

    def add(run, experiment, method, repeat, record, name, value, x=""):
        rows.append([run, experiment, method, repeat, record, name, x, value, ""])

    for run, commit in (("1", OLD), ("2", COMMIT), ("3", COMMIT)):
        add(run, "", "", "", "option", "commit", commit)
        add(run, "", "", "", "option", "memory", {"3": "256"}.get(run, "768"))
        for repeat, (lsm, none) in enumerate(((500e3, 600e3), (510e3, 600e3), (520e3, 600e3)), 1):
            if run == "3":
                lsm = lsm / 2
            add(run, "int4", "lsm", repeat, "figure", "rows/s", lsm)
            add(run, "int4", "none", repeat, "figure", "rows/s", none)
            add(run, "int4", "", repeat, "turn", "rows/s, average, of no index", lsm / none)
            add(run, "int4", "lsm", repeat, "figure", "file bytes", 5 * 1048576 + repeat)
            for x in (10, 100, 1000):
                add(run, "reads", "lsm", repeat, "figure", "range", x * repeat / 10, x)
        add(run, "int4", "", "", "bar", "rows/s, average, of no index", 0.85, ">= 0.85")
        add(run, "int4", "", "", "bar", "longest batch, ms", 78.4, "<= 100")
    for repeat, (lsm, btree) in enumerate(((100, 10), (300, 10)), 1):
        add("2", "far", "lsm", repeat, "figure", "rows/s", lsm)
        add("2", "far", "btree", repeat, "figure", "rows/s", btree)
    add("1", "old", "lsm", 1, "figure", "rows/s", 7)
    add("4", "", "", "", "option", "commit", COMMIT + ", changed")
    add("4", "new", "lsm", 1, "figure", "rows/s", 8)
    return rows


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        with open(os.path.join(self.root, "bars.csv"), "w", newline="") as file:
            csv.writer(file).writerows([check_figures.Bars.HEAD] + bars())

    def check(self, text):
        return check_figures.Checker(self.root, text, {})

    def wrong(self, text):
        return [message for _, message in self.check(text).wrong]

    def table(self, cells, lines, source=FROM):
        """What is wrong with a table of one row."""
        return self.wrong(HERE + "<!-- figures\n%s%s\n-->\n| load 7 | of 8 |\n|---|---|\n| 9 rows | %s |\n" % (
            source, "\n".join(lines), " | ".join(cells)))

    def figures_file(self, text):
        with open(os.path.join(self.root, "a.figures"), "w") as file:
            file.write(text)

    def assertWrong(self, found, *parts):
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    # --- what is right

    def test_a_figure_that_is_the_median_of_its_turns_is_right(self):
        self.assertEqual(self.table(["510 k"], ["510 k = int4 | lsm | rows/s"], FROM[:-1] + ", memory 768\n"), [])

    def test_a_figure_may_be_rounded_and_have_another_unit(self):
        for text, record in (("0.51 M", "int4 | lsm | rows/s"), ("510,000", "int4 | lsm | rows/s"),
                             ("5.0 MB", "int4 | lsm | file bytes / 1048576"), ("78 ms", "int4 | bar | longest batch, ms"),
                             ("0.0784 s", "int4 | bar | longest batch, ms * 0.001")):
            figure = text.replace(" MB", "").replace(" ms", "").replace(" s", "")
            self.assertEqual(self.table([text], ["%s = %s" % (figure, record)], FROM[:-1] + ", memory 768\n"), [], text)

    def test_ratios_are_taken_within_turns(self):
        lines = ["0.85 = int4 | lsm / none | rows/s", "0.85 = int4 | bar | rows/s, average, of no index"]
        self.assertEqual(self.table(["0.85", "0.85"], lines, FROM[:-1] + ", memory 768\n"), [])

    def test_the_latest_run_counts_unless_conditions_say_otherwise(self):
        self.assertEqual(self.table(["255 k"], ["255 k = int4 | lsm | rows/s"]), [])
        self.assertEqual(self.table(["255 k"], ["255 k = int4 | lsm | rows/s"], FROM[:-1] + ", memory 256\n"), [])

    def test_the_least_and_the_greatest_of_several(self):
        self.assertEqual(self.table(["2 to 200"], ["2 = least reads | lsm | range | 10-1000",
                                                   "200 = greatest reads | lsm | range | 10-1000"]), [])
        self.assertEqual(self.table(["20"], ["20 = reads | lsm | range | 100"]), [])
        self.assertWrong(self.table(["20"], ["20 = reads | lsm | range | 10-1000"]), "several")

    def test_text_is_checked_as_well(self):
        mark = "<!-- figures\n" + FROM + "255 k = int4 | lsm | rows/s\n78 = int4 | bar | longest batch, ms\n-->\n"
        self.assertEqual(self.wrong(HERE + mark + "With 8 clients on PostgreSQL 15 255 k rows come in, the longest\n"
                                    "takes 78\nms. `0.5 ms` and int4 are none.\n"), [])

    def test_code_and_headings_have_no_figures(self):
        self.assertEqual(self.wrong("## Since 0.5\n\n    0.9 ms\n    | 1 | 2 |\n\n```\n0.9 ms\n```\n\nA [link](a/0.5.html).\n"), [])

    def test_blocks_without_figures_and_pending_ones(self):
        self.assertEqual(self.wrong("<!-- figures: none -->\n| a | b |\n|---|---|\n| c | 5 |\n"), [])
        self.assertEqual(self.wrong("# A\n\n<!-- figures: none, section -->\nIt takes 5 ms.\n\nAnd 6 ms.\n"), [])
        self.assertWrong(self.wrong("# A\n\n<!-- figures: none, section -->\nText.\n\n# B\n\nIt takes 5 ms.\n"), "5")
        checker = self.check("<!-- figures: pending -->\nIt takes 5 ms.\n")
        self.assertEqual((checker.wrong, checker.pending), ([], [1]))

    def test_the_lines_may_stand_in_a_file(self):
        self.figures_file("# Of a.md.\n\nblock loads\n%s255 k = int4 | lsm | rows/s\n\nblock text\n%s78 = given\n" % (FROM, FROM))
        checker = self.check(HERE + "<!-- figures: from a.figures, block loads -->\n| a | b |\n|---|---|\n| c | 255 k |\n\n"
                             "<!-- figures: from a.figures, block text -->\nIt takes 78 ms.\n")
        self.assertEqual((checker.wrong, checker.checked), ([], 1))

    # --- what is wrong

    def test_wrong_lines_in_a_file_are_found(self):
        text = HERE + "<!-- figures: from a.figures, block loads -->\n| a | b |\n|---|---|\n| c | 255 k |\n"
        good = "block loads\n" + FROM + "255 k = int4 | lsm | rows/s\n"
        self.assertWrong(self.wrong(text), "there is no a.figures")
        for lines, *parts in ((good, ""),
                              (good.replace("lsm", "none"), "a.figures:3: 255 k", "it is 600"),
                              (good.replace("bars.csv", "x.csv"), "a.figures:2: there is no x.csv"),
                              ("block loads\n" + FROM, "the comment has no line for 255 k"),
                              (good + "9 = given\n", "a.figures:4: the text has no figure 9"),
                              (good + "block others\n", "a.figures: the document has no block others"),
                              (good.replace("loads", "others"), "a.figures has no block loads"),
                              (good + good, "a.figures:4: a second block loads"),
                              (FROM + good, "a.figures:1: no line \"block NAME\" stands before")):
            self.figures_file(lines)
            found = "\n".join(self.wrong(text))
            self.assertEqual(found == "", parts == [""], lines)
            for part in parts:
                self.assertIn(part, found)
        self.figures_file(good)
        self.assertWrong(self.wrong(text + "\n" + text), "another one's")

    def test_another_figure_is_found(self):
        self.assertWrong(self.table(["256 k"], ["256 k = int4 | lsm | rows/s"]), "it is 255")
        self.assertWrong(self.table(["79 ms"], ["79 = int4 | bar | longest batch, ms"]), "it is 78.4")

    def test_zeroes_at_the_end_may_be_those_of_rounding(self):
        for value, text, least, good in ((256, "260", 2, True), (254, "260", 2, False), (256, "300", 2, False),
                                         (256, "300", 1, True), (0.96, "1.0", 2, True), (0.94, "1.0", 2, False),
                                         (0, "0", 2, True), (0.4, "0", 2, True), (0.6, "0", 2, False)):
            self.assertEqual(check_figures.rounds_to(value, check_figures.Decimal(text), least), good, (value, text))

    def test_text_and_comment_must_agree(self):
        self.assertWrong(self.table(["250 k"], ["255 k = int4 | lsm | rows/s"]), "250 k", "where the comment has")

    def test_a_figure_without_a_line_is_found(self):
        self.assertWrong(self.table(["255 k", "9"], ["255 k = int4 | lsm | rows/s"]), "no line for 9")

    def test_a_line_without_a_figure_is_found(self):
        self.assertWrong(self.table(["255 k"], ["255 k = int4 | lsm | rows/s", "9 = given"]), "has no figure 9")

    def test_a_table_and_a_paragraph_without_a_comment_are_found(self):
        self.assertWrong(self.wrong("| a | b |\n|---|---|\n| c | 5 |\n"), "come from: 5")
        for text in ("It has 0.89 of it.", "It takes 100 ms.", "It takes 566 k of them.", "It is 566 thousand\na second."):
            self.assertWrong(self.wrong(text), "no comment")

    def test_a_record_that_is_not_there_is_found(self):
        self.assertWrong(self.table(["5"], ["5 = int4 | lsm | rows"]), "no such record")
        self.assertWrong(self.table(["5"], ["5 = reads | lsm | range | 20"]), "no such record")
        self.assertWrong(self.table(["255 k"], ["255 k = int4 | lsm | rows/s"], FROM[:-1] + ", memory 512\n"), "not measured with memory 512")

    def test_ratios_with_more_digits_than_the_spread_allows_are_found(self):
        self.assertWrong(self.table(["20"], ["21 = far | lsm / btree | rows/s"]), "where the comment has")
        self.assertEqual(self.table(["20"], ["20 = far | lsm / btree | rows/s"]), [])
        self.assertWrong(self.table(["20.0"], ["20.0 = far | lsm / btree | rows/s"]), "one digit")
        self.assertWrong(self.table(["0.425"], ["0.425 = int4 | lsm / none | rows/s"]), "two digits")

    def test_one_turn_allows_one_digit(self):
        self.assertEqual(check_figures.digits_allowed([0.85]), 1)
        self.assertEqual(check_figures.digits_allowed([0.85, 0.86]), 2)
        self.assertEqual(check_figures.digits_allowed([0.80, 0.90]), 1)

    def test_data_of_another_commit_is_found(self):
        self.assertWrong(self.table(["7"], ["7 = old | lsm | rows/s"]), "measured with commit " + OLD)
        self.assertWrong(self.table(["8"], ["8 = new | lsm | rows/s"]), "changed")

    def test_a_commit_that_the_text_does_not_name_is_found(self):
        text = "<!-- figures\n" + FROM + "255 k = int4 | lsm | rows/s\n-->\n| a | b |\n|---|---|\n| c | 255 k |\n"
        self.assertWrong(self.wrong(text), "does not name commit")
        self.assertEqual(self.wrong(HERE + text), [])

    def test_a_source_that_is_not_there_or_names_no_commit_is_found(self):
        for source, part in (("from x.csv, commit %s\n" % COMMIT, "no x.csv"), ("from bars.csv\n", "no commit"),
                             ("", "no line \"from")):
            found = self.table(["255 k"], ["255 k = int4 | lsm | rows/s"], source)
            self.assertTrue(any(part in message for message in found), found)

    def test_a_comment_without_an_end_is_found(self):
        with self.assertRaises(check_figures.FigureError):
            self.check("<!-- figures\n")

    # --- the other file, and the command

    def test_results_name_their_commit_in_the_report(self):
        rows = [["g", "1", "a case", x, am, repeat, "rows/s", value, "", ""]
                for x, am, repeat, value in (("", "lsm", 1, 100), ("", "none", 1, 200), ("", "lsm", 2, 110),
                                             ("", "none", 2, 220))]
        with open(os.path.join(self.root, "results.csv"), "w", newline="") as file:
            csv.writer(file).writerows([check_figures.Results.HEAD] + rows)
        lines = ["105 = 1: a case | lsm | rows/s", "0.5 = 1: a case | lsm / none | rows/s"]
        source = FROM.replace("bars", "results")
        for commit, good in ((COMMIT, True), (OLD, False), (COMMIT + ", changed", False)):
            with open(os.path.join(self.root, "report.html"), "w") as file:
                file.write("<td>0.1, commit %s</td>" % commit)
            self.assertEqual(self.table(["105", "0.5"], lines, source) == [], good, commit)

    def test_the_command_says_where_and_fails(self):
        path = os.path.join(self.root, "a.md")
        for text, options, status in (("Text.", [], 0), ("It takes 5 ms.", [], 1),
                                      ("<!-- figures: pending -->\nIt takes 5 ms.", [], 0),
                                      ("<!-- figures: pending -->\nIt takes 5 ms.", ["--complete"], 1)):
            with open(path, "w") as file:
                file.write(text)
            with open(os.devnull, "w") as sys.stdout:
                try:
                    found = check_figures.main(["--root", self.root] + options + ["a.md"])
                finally:
                    sys.stdout = sys.__stdout__
            self.assertEqual(found, status, text)


if __name__ == "__main__":
    tap = Tap()
    unittest.defaultTestLoader.loadTestsFromName("__main__").run(TapResult(tap))
    sys.exit(1 if tap.failed else 0)
