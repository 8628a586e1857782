"""Unit tests of the benchmark suite's pure parts.

smoke.py runs them, or: PYTHONPATH=bench python3 -m unittest discover test/bench
"""

import argparse
import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest

from suite import BenchError, experiments, messages, options, stats
from suite.bars import command_line, verdicts
from suite.bars.bench import Load, RawLog
from suite.bars.flash import SEQUENTIAL, WAYS, Cold
from suite.bars.loads import AVERAGE, LAST, LoadExperiment, Ratio
from suite.cgroup import ControlGroup
from suite.client import Report
from suite.data import Data
from suite.experiments import e1_ingest, e2_reads, e6_flash, e7_keys, e8_billion, reads
from suite.figures import MOST_LINES, color_of, in_order, label_of
from suite.plan import Group, Progress, interleave, load_seconds
from suite.results import FAILED, FINISHED, Result, ResultStore, Sample


def finished(key, am="lsm"):
    return [key, "1", "case", "", am, 1, FINISHED, 2.0, "s", ""]


class Stats(unittest.TestCase):
    def test_spread(self):
        self.assertEqual(stats.spread([3, 1, 2]), (2, 1, 3))

    def test_ratio_is_taken_within_repeats(self):
        self.assertEqual(stats.ratio_to({1: 10, 2: 30}, {1: 5, 2: 10}), 2.5)

    def test_ratio_needs_a_common_repeat(self):
        self.assertIsNone(stats.ratio_to({1: 10}, {2: 5}))
        self.assertIsNone(stats.ratio_to({1: 10}, {1: 0}))

    def test_rate_interpolates(self):
        samples = [(100, 1.0), (200, 3.0)]
        self.assertAlmostEqual(stats.rate(samples, 0, 100), 100)
        self.assertAlmostEqual(stats.rate(samples, 100, 150), 50)
        self.assertAlmostEqual(stats.last_tenth(samples), 50)

    def test_rate_beyond_the_samples_is_an_error(self):
        with self.assertRaises(ValueError):
            stats.rate([(100, 1.0)], 0, 101)

    def test_windows_cover_the_load(self):
        points = stats.windows([(i * 100, i * 1.0) for i in range(1, 101)], 10)
        self.assertEqual(len(points), 10)
        self.assertTrue(all(abs(rate - 100) < 1e-6 for _, rate in points))

    def test_numbers_for_people(self):
        self.assertEqual([stats.si(v) for v in (0, 0.123456, 12.3, 1234, 123456, 1.5e6, 2e9)],
                         ["0", "0.123", "12.3", "1,234", "123 k", "1.5 M", "2 G"])


    def test_numbers_on_axes(self):
        self.assertEqual([stats.plain(v) for v in (0, 0.25, 12, 999, 1000, 2500, 100000, 999999, 1.2e6, 1e9)],
                         ["0", "0.25", "12", "999", "1 k", "2.5 k", "100 k", "1 M", "1.2 M", "1 G"])

    def test_labels_do_not_cover_each_other(self):
        for places in ([100, 101, 102], [50, 10, 11], [0, 0, 0, 0], [199, 200], [5, 100, 104, 195]):
            moved = stats.spread_apart(places, 16, 0, 200)
            in_line = sorted(moved)
            self.assertTrue(all(b - a >= 16 - 1e-9 for a, b in zip(in_line, in_line[1:])), moved)
            self.assertTrue(0 <= in_line[0] and in_line[-1] <= 200, moved)
            self.assertEqual(sorted(range(len(places)), key=lambda i: (places[i], moved[i])),
                             sorted(range(len(places)), key=lambda i: moved[i]))

    def test_labels_with_room_stay(self):
        self.assertEqual(stats.spread_apart([150, 10, 60], 16, 0, 200), [150, 10, 60])
        self.assertEqual(stats.spread_apart([], 16, 0, 200), [])

    def test_an_index_outgrows_the_larger_cache(self):
        self.assertAlmostEqual(stats.outgrows(2 ** 20, 768, 128), 640)
        self.assertAlmostEqual(stats.outgrows(2 ** 20, 768, 512), 512)

    def test_memory_settings(self):
        self.assertEqual([stats.megabytes(s) for s in ("384MB", "1 GB", "2048kB", "much")], [384, 1024, 2, None])


def made_data(results=(), samples=(), ams="none,btree,lsm", facts=None):
    """Data of figures (experiment, case, x, am, repeat, metric, value) and of loads {(case, am): [(rows, seconds)]}."""
    store = argparse.Namespace(run={"options": {"am": ams, "shared_buffers": "384MB"}, "facts": facts or {}})
    store.results = [Result("g", e, case, x, am, repeat, metric, value, "rows/s", "")
                     for e, case, x, am, repeat, metric, value in results]
    store.samples = [Sample("g", "1", case, am, 1, "load", rows, seconds, "")
                     for (case, am), points in dict(samples).items() for rows, seconds in points]
    return Data(store)


class Messages(unittest.TestCase):
    def test_ratios_in_words(self):
        def said(*ratios):
            return messages.as_words(ratios, "many")
        self.assertEqual([said(3.14), said(1.02), said(0.62), said(0.041), said(38.9)],
                         ["3.1 times as many", "about as many", "62% as many", "4.1% as many", "39 times as many"])

    def test_repeats_that_disagree_are_no_difference(self):
        self.assertEqual(messages.as_words([0.9, 1.3, 1.4], "long"), "about as long")
        self.assertEqual(messages.as_words([1.2, 1.3, 1.4], "long"), "1.3 times as long")

    def test_shares_in_words(self):
        self.assertEqual([messages.share(s) for s in (0.5, 0.1, 0.34, 0.08, 0.41)], ["half", "a tenth", "a third", "8%", "41%"])

    def test_who_is_compared_with_whom(self):
        self.assertEqual(messages.pair_of(["none", "btree", "lsm"]), ("lsm", "btree"))
        self.assertEqual(messages.pair_of(["none", "btree", "hash"]), ("hash", "btree"))
        self.assertEqual(messages.pair_of(["none", "btree"]), ("btree", "none"))
        self.assertEqual(messages.pair_of(["lsm", "none"]), ("lsm", "none"))
        self.assertIsNone(messages.pair_of(["lsm"]))
        self.assertIsNone(messages.pair_of([]))

    def test_the_title_of_a_load_says_what_the_data_show(self):
        def title(ratio=(2.0,), **shares):
            return messages.growth(shares, ratio, "the topic")
        self.assertEqual(title(none=1, btree=0.1, lsm=0.95), "A B-tree's rate falls to a tenth as the table grows; lsm's does not")
        self.assertEqual(title(btree=0.1, lsm=0.5), "As the table grows, a B-tree's rate falls to a tenth, lsm's to half")
        self.assertEqual(title(btree=0.9, lsm=0.5), "lsm loads 2 times as many rows a second as a B-tree")
        self.assertEqual(title(ratio=None, btree=0.9, lsm=0.9), "the topic")
        self.assertEqual(title(none=1, lsm=0.9), "the topic")
        self.assertEqual(title(lsm=0.9), "lsm's rate does not fall as the table grows")
        self.assertEqual(title(btree=0.25), "A B-tree's rate falls to a quarter as the table grows")

    def test_the_title_follows_the_samples(self):
        plot, case = e1_ingest.SECTIONS[0].plots[0], e1_ingest.RANDOM
        last = [("1", case, "", am, 1, "rows/s, last tenth", 5) for am in ("none", "btree", "lsm")]
        data = made_data(last, {(case, "none"): [(i, i) for i in range(1, 101)], (case, "lsm"): [(i, i) for i in range(1, 101)],
                                  (case, "btree"): [(i, i * i) for i in range(1, 101)]})
        self.assertIn("lsm's does not", messages.title(plot, data, "1"))
        self.assertIn("lsm is 1 times no index", messages.finding(plot, data, "1"))

    def test_a_claim_is_filled_in(self):
        plot, case = e1_ingest.SECTIONS[3].plots[0], e1_ingest.BY_CLIENTS
        results = [("1", case, x, am, 1, "rows/s", value)
                   for x, am, value in (("4", "btree", 10), ("4", "lsm", 20), ("16", "btree", 10), ("16", "lsm", 30))]
        data = made_data(results)
        self.assertEqual(messages.title(plot, data, "1"), "With 16 clients, lsm loads 3 times as many rows a second as a B-tree")
        self.assertEqual(messages.finding(plot, data, "1"), "16 clients: B-tree 10, lsm 30 rows/s; lsm is 3 times a B-tree.")

    def test_without_data_a_title_claims_nothing(self):
        data = made_data()
        for module in experiments.MODULES + (e8_billion,):
            for section in module.SECTIONS:
                for plot in section.plots:
                    self.assertEqual(messages.title(plot, data, module.ID), plot.topic)
                    self.assertEqual(messages.finding(plot, data, module.ID), "")

    def test_each_plot_is_described_once_and_whole(self):
        plots = [plot for m in experiments.MODULES + (e8_billion,) for s in m.SECTIONS for plot in s.plots]
        self.assertEqual(len({plot.name for plot in plots}), len(plots))
        for plot in plots:
            self.assertTrue(plot.conditions and plot.topic and plot.unit, plot.name)
            # So many placeholders, so many comparisons.
            self.assertLessEqual(plot.claim.count("{as "), max(len(plot.parts), 1), plot.name)
            if any(part.am for part in plot.parts):
                self.assertTrue(plot.pairs and len(plot.parts) <= MOST_LINES, plot.name)
        questions = [s.question for m in experiments.MODULES + (e8_billion,) for s in m.SECTIONS]
        self.assertEqual(len(set(questions)), len(questions))

    def test_a_method_has_the_same_color_everywhere(self):
        self.assertEqual(color_of("btree, UUIDv7"), color_of("btree"))
        self.assertEqual(len({color_of(am) for am in ("none", "btree", "lsm", "hash", "brin")}), 5)
        self.assertNotIn(color_of("unheard-of"), [color_of(am) for am in ("none", "btree", "lsm", "hash", "brin")])
        self.assertEqual([label_of(am) for am in ("none", "btree, UUIDv7", "brin, time")],
                         ["no index", "B-tree, UUIDv7", "BRIN, time"])
        self.assertEqual(in_order(["hash", "lsm", "none"]), ["none", "lsm", "hash"])


class Drawing(unittest.TestCase):
    def setUp(self):
        try:
            from suite import plots
        except ImportError:
            self.skipTest("no matplotlib")
        self.plots = plots

    def check(self, plot, experiment, data):
        canvas, title = self.plots.render(plot, experiment, data)
        picture = canvas.figure
        picture.canvas.draw()
        self.assertEqual(tuple(picture.get_size_inches() * picture.dpi), (800, 450))
        axes = canvas.axes
        texts = picture.texts + axes.texts + axes.get_xticklabels() + axes.get_yticklabels() + [axes.xaxis.label]
        for text in texts:
            self.assertGreaterEqual(text.get_fontsize() * picture.dpi / 72, 11, text.get_text())
            box = text.get_window_extent()
            if text.get_text() and text in picture.texts:
                self.assertTrue(0 <= box.x0 and box.x1 <= 800 and 0 <= box.y0 and box.y1 <= 450, text.get_text())
        boxes = [text.get_window_extent() for text in picture.texts]
        self.assertFalse([1 for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)], title)
        if axes.get_yscale() == "linear" and plot.kind != "bars":
            self.assertEqual(axes.get_ylim()[0], 0)
        self.plots.plt.close(picture)
        return [text.get_text() for text in picture.texts]

    def test_a_load_has_labels_at_its_lines(self):
        case = e1_ingest.RANDOM
        loads = {(case, am): [(i * 1000, i * speed) for i in range(1, 101)]
                 for am, speed in (("none", 1), ("btree", 1.02), ("lsm", 1.01))}
        figures = [("1", case, "", "btree", 1, "index bytes/row", 10000)]
        texts = self.check(e1_ingest.SECTIONS[0].plots[0], "1", made_data(figures, loads, facts={"memory limit": "x, 768 MB"}))
        self.assertTrue({"no index", "B-tree", "lsm"} <= set(texts))

    def test_at_most_four_lines(self):
        ams, case = "none,btree,lsm,hash,other,more", e1_ingest.BY_CLIENTS
        data = made_data([("1", case, x, am, 1, "rows/s", 7) for x in ("1", "8") for am in ams.split(",")], ams=ams)
        texts = self.check(e1_ingest.SECTIONS[3].plots[0], "1", data)
        self.assertIn("hash", texts)
        self.assertNotIn("other", texts)

    def test_a_comparison_has_the_tree_as_its_line(self):
        results = [("2", reads.SMALL, x, am, 1, "lookups/s, " + state, value) for x in ("1", "8")
                   for state in reads.STATES for am, value in (("btree", 10000), ("lsm", 9990))]
        texts = self.check(e2_reads.SECTIONS[0].plots[0], "2", made_data(results))
        self.assertTrue({"B-tree = 1", "lsm, fresh", "lsm, settled"} <= set(texts))

    def test_bars(self):
        results = [("7", e7_keys.KEYS, kind, am, 1, "rows/s", 1e5) for kind in e7_keys.KINDS for am in ("none", "btree", "lsm")]
        self.check(e7_keys.SECTIONS[0].plots[0], "7", made_data(results))


class Help(unittest.TestCase):
    def test_help_needs_no_matplotlib(self):
        program = ("import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = ['run.sh', '--help']; "
                   "runpy.run_module('suite', run_name='__main__')")
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        run = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn(b"--quick", run.stdout)


class Plan(unittest.TestCase):
    def test_each_repeat_begins_with_another_system(self):
        groups = interleave("1", "c", ["none", "btree", "lsm"], 3, lambda am: 1, None)
        self.assertEqual([g.am for g in groups],
                         ["none", "btree", "lsm", "btree", "lsm", "none", "lsm", "none", "btree"])
        self.assertEqual(len({g.key for g in groups}), 9)

    def test_time_left_without_experience_is_the_estimate(self):
        groups = [Group("1", "c", "lsm", r, 10.0, None) for r in (1, 2, 3)]
        progress = Progress(groups, {groups[0].key})
        self.assertEqual(progress.remaining_s(), 20)
        self.assertTrue(progress.text().startswith("[1/3]"))

    def test_time_left_learns(self):
        groups = [Group("1", "c", "lsm", r, 600.0, None) for r in (1, 2)]
        progress = Progress(groups, set())
        progress.finished(groups[0], 1200)
        self.assertGreater(progress.remaining_s(), 1050)
        self.assertLess(progress.remaining_s(), 1200)

    def test_loads_are_estimated_up_to_their_limit(self):
        self.assertLess(load_seconds("none", 1e6, 240), load_seconds("btree", 1e6, 240))
        self.assertLessEqual(load_seconds("btree", 1e9, 240), 242)

    def test_all_groups_have_keys_of_their_own(self):
        for arguments in (["--quick"], [], ["--experiments", "2"]):
            parsed = options.parse(arguments)
            groups = [g for m in parsed.modules for g in m.plan(parsed)]
            self.assertEqual(len(groups), len({g.key for g in groups}))
            self.assertTrue(all(g.estimate_s > 0 for g in groups))


class Memory(unittest.TestCase):
    def test_memory_alone_never_has_more_than_memory_and_swap(self):
        group, limits = ControlGroup(0), {}

        def write(name, value):
            limits[name] = int(value)
            self.assertLessEqual(limits.get(memory, 0), limits.get(both, 1 << 60))

        memory, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
        with tempfile.TemporaryDirectory() as folder:
            for name in (memory, both):
                open(os.path.join(folder, name), "w").close()
            group.path, group.version, group.limit_mb, group._write = folder, 1, 512, write
            for share in (0.25, 0.125, 0.5, 1.0):
                group.set_share(share)
                self.assertEqual(limits, {memory: int(share * (512 << 20)), both: int(share * (512 << 20))})


class Selection(unittest.TestCase):
    def test_by_number_and_name(self):
        self.assertEqual([m.NAME for m in experiments.select("reads,1")], ["ingest", "reads"])
        self.assertEqual([m.ID for m in experiments.select("7")], ["7", "7", "7"])

    def test_unknown(self):
        with self.assertRaises(ValueError):
            experiments.select("8")


class Store(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "out")

    def test_finished_groups_are_found_again(self):
        ResultStore(self.path, {"rows": 1}).add([finished("a")], [["a", "1", "c", "lsm", 1, "load", 1, 2, 3]])
        store = ResultStore(self.path, {"rows": 1})
        self.assertEqual(store.finished_keys(), {"a"})
        self.assertEqual(len(store.samples), 1)

    def test_other_options_are_refused(self):
        ResultStore(self.path, {"rows": 1})
        with self.assertRaises(BenchError):
            ResultStore(self.path, {"rows": 2})
        self.assertEqual(ResultStore(self.path, {"rows": 2}, fresh=True).finished_keys(), set())

    def test_half_a_group_and_failures_are_forgotten(self):
        store = ResultStore(self.path, {})
        store.add([finished("a")], [])
        store.add([finished("b")[:6] + ["rows", 1, "", ""]], [["b", "1", "c", "lsm", 1, "load", 1, 2, 3]])
        store.add([finished("c")[:6] + [FAILED, 0, "", "broken"]], [])
        self.assertEqual(len(store.failures()), 1)
        with open(store.results_path, "a") as file:
            file.write("d,1,ca")
        again = ResultStore(self.path, {})
        self.assertEqual([r.group for r in again.results], ["a"])
        self.assertEqual(again.samples, [])
        with open(again.results_path, newline="") as file:
            self.assertEqual(len(list(csv.reader(file))), 2)


def load(*samples, first=0):
    """Samples are (rows, seconds, longest transaction, longest gap)."""
    report = Report()
    for sample in samples:
        report.add("sample,load,%d,%f,%f,%f" % sample)
    return Load(report, first)


class Bars(unittest.TestCase):
    def test_a_bar_is_reached_missed_or_not_decided(self):
        self.assertEqual(verdicts.at_least("n", "t", 0.8, 0.8).state, verdicts.REACHED)
        self.assertEqual(verdicts.at_most("n", "t", 2.1, 2).state, verdicts.MISSED)
        self.assertEqual(verdicts.at_most("n", "t", None, 2).state, verdicts.UNDECIDED)
        self.assertEqual(verdicts.at_least("n", "t", 9, 8, doubt="too small").state, verdicts.UNDECIDED)

    def test_ratios_are_those_of_common_rows(self):
        experiment = LoadExperiment("n", "t", 1, [Ratio("none", AVERAGE, 0.8), Ratio("none", LAST, 0.75)])
        # Over the first 100 rows lsm takes twice as long; then it is as fast, but the other was stopped.
        experiment.results = {"none": {1: load((90, 9, 1, 1), (100, 10, 1, 1))},
                              "lsm": {1: load((90, 19, 1, 1), (100, 20, 400, 5), (200, 30, 1, 1))}}
        average, last, worst = list(experiment.verdicts())[:3]
        self.assertAlmostEqual(average.value, 0.5)
        self.assertEqual(average.state, verdicts.MISSED)
        self.assertAlmostEqual(last.value, 1.0)
        self.assertEqual((worst.value, worst.bound, worst.state), (400, "<= 1.5", verdicts.MISSED))

    def test_who_has_come_late_is_compared_over_what_it_loaded(self):
        experiment = LoadExperiment("n", "t", 1, [Ratio("btree", LAST, 3.0)])
        # 90 rows were there before; of the last ten the btree loads five, at a row a second.
        late = load((2, 2, 1, 1), (5, 5, 1, 1), first=90)
        late.cpu_seconds = 10.0
        lsm = load((90, 9, 1, 1), (95, 10, 1, 1), (100, 20, 1, 1))
        lsm.cpu_seconds = 100.0
        experiment.results = {"btree": {1: late}, "lsm": {1: lsm}}
        experiment.bench = argparse.Namespace(size_and_memory=lambda size: "", options=argparse.Namespace(memory=0))
        late.end = lsm.end = argparse.Namespace(debt_bytes=0, runs=1)
        last, = [v for v in experiment.verdicts() if v.text == "rows/s, last tenth, of btree"]
        self.assertAlmostEqual(last.value, 5.0)
        self.assertEqual((late.total, late.loaded, late.last_of_first()), (95, 5, None))
        self.assertAlmostEqual(late.average(), 1.0)
        self.assertAlmostEqual(late.last_tenth(), 1.0)
        self.assertAlmostEqual(late.cpu_us_a_row(), 2e6)

    def test_half_as_long_again_as_the_longest_batch_without_an_index_is_allowed(self):
        experiment = LoadExperiment("n", "t", 1, [])
        experiment.results = {"none": {1: load((10, 1, 250, 250))}, "lsm": {1: load((10, 1, 370, 5))}}
        self.assertEqual([v.state for v in experiment.verdicts() if v.bound], [verdicts.REACHED])

    def test_what_was_not_measured_is_not_decided(self):
        for experiment in command_line.experiments():
            states = [v.state for v in experiment.verdicts() if v.bound]
            self.assertTrue(states and set(states) == {verdicts.UNDECIDED}, experiment.name)

    def test_a_load_that_was_too_quick_for_the_clock_is_shown(self):
        experiment = LoadExperiment("n", "t", 1, [])
        one = load((90, 1, 1, 1), (100, 1, 1, 1))
        one.end = argparse.Namespace(debt_bytes=0, runs=1)
        experiment.results, experiment.bench = {"lsm": {1: one}}, argparse.Namespace(options=argparse.Namespace(memory=0))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            experiment.show()
        self.assertIn("inf", shown.getvalue())
        self.assertEqual([v.value for v in experiment.verdicts() if "tenth" in v.text], [float("inf")])

    def test_the_spread_of_several_turns_is_given(self):
        verdict = verdicts.at_least("n", "t", (r / 10 for r in (9, 7, 8)), 0.8)
        self.assertEqual((verdict.value, verdict.turns, verdict.state), (0.8, (0.9, 0.7, 0.8), verdicts.REACHED))
        self.assertEqual(verdict.parts, "0.7 to 0.9 in 3 turns")
        self.assertEqual(verdicts.at_most("n", "t", [2.0], 2).parts, "one turn")
        self.assertEqual(verdicts.at_most("n", "t", [], 2).state, verdicts.UNDECIDED)

    def test_cpu_is_compared_by_row(self):
        experiment = LoadExperiment("n", "t", 1, [])
        experiment.results = {"none": {1: load((100, 1, 1, 1))}, "lsm": {1: load((200, 1, 1, 1))}}
        experiment.results["none"][1].cpu_seconds, experiment.results["none"][1].cpu_settled = 1.0, 1.0
        experiment.results["lsm"][1].cpu_seconds, experiment.results["lsm"][1].cpu_settled = 3.0, 4.0
        found = {v.text: v.value for v in experiment.verdicts()}
        self.assertAlmostEqual(found["server CPU a row, during the load, of no index"], 1.5)
        self.assertAlmostEqual(found["server CPU a row, until settled, of no index"], 2.0)

    def test_the_way_of_the_planner_is_compared_with_the_fastest(self):
        experiment = Cold()
        for percent, by_page in ((5, 80.0), (40, 105.0)):
            experiment.times.update({("lsm", way, percent): [200.0] for way, _ in WAYS})
            experiment.times["lsm", SEQUENTIAL, percent] = [100.0, 90.0, 110.0]
            experiment.times["lsm", e6_flash.BY_PAGE, percent] = [by_page]
            experiment.chosen["lsm", percent] = [e6_flash.BY_PAGE] * 2 + [SEQUENTIAL]
        found = {v.text: v for v in experiment.verdicts()}
        strict = found["the planner takes the fastest way, share of points"]
        self.assertEqual((strict.value, strict.state), (0.5, verdicts.MISSED))
        self.assertIn("lsm 40%", strict.parts)
        self.assertEqual(found["the same, or within a tenth of it"].value, 1)
        self.assertEqual(found["in order, 128 ahead: times plain index scan"].value, 1)
        self.assertAlmostEqual(found["by page, 128 ahead: times sorted scan, 128 reads ahead"].value, 200 / 105)
        self.assertEqual([v.value for v in Cold().verdicts()], [None] * 4)

    def test_the_largest_load_is_measured_only_by_name(self):
        arguments = ["--bindir", "", "--client", "", "--work", "", "--user", ""]
        self.assertNotIn("billion", [e.name for e in command_line.parse(arguments).experiments])
        self.assertEqual(command_line.parse(arguments + ["--bars", "billion"]).rows, 10 ** 9)
        self.assertEqual(command_line.parse(arguments + ["--bars", "billion", "--rows", "5000"]).rows, 5000)
        parsed = command_line.parse(arguments + ["--bars", "walsize"])
        self.assertEqual([e.settings["max_wal_size"] for e in parsed.experiments], ["1GB", "16GB"])

    def test_wal_of_the_last_rows(self):
        one = load((100, 1, 1, 1))
        one.wal_points = [(50, 100.0), (75, 150.0), (100, 300.0)]
        self.assertAlmostEqual(one.wal_a_row_of_last(0.25), 6)

    def test_bars_are_selected_by_name(self):
        arguments = ["--bindir", "", "--client", "", "--work", "", "--user", ""]
        parsed = command_line.parse(arguments + ["--bars", "build,wal,int4", "--quick"])
        self.assertEqual([e.name for e in parsed.experiments], ["int4", "build"])
        self.assertEqual(parsed.rows, 2_000_000)

    def test_the_csv_is_appended_to_and_others_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bars.csv")
            for _ in range(2):
                log = RawLog(path)
                log.add("figure", "rows/s", "", 1)
                log.file.close()
            with open(path, newline="") as file:
                self.assertEqual(len(list(csv.reader(file))), 3)
            with open(path, "w") as file:
                file.write("method,rows\n")
            with self.assertRaises(BenchError):
                RawLog(path)


class Billion(unittest.TestCase):
    def test_the_latest_load_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bars.csv")
            log = RawLog(path)
            log.add("option", "commit", "", "abc")
            log.turn = ["billion", "lsm", 1]
            log.add("sample", "load", 500, 1.5, 20)
            log.add("figure", "rows/s", "", 333, "rows/s")
            log.add("figure", "lookup key there p95", "", 1, "ms")
            log.file.close()
            results, samples, run_options = e8_billion.read(path)
            self.assertEqual([(r.metric, r.value, r.unit) for r in results], [("rows/s", "333", "rows/s")])
            self.assertEqual([(s.series, s.x, s.value) for s in samples],
                             [("load", "500", "1.5"), (e8_billion.LONGEST, "500", "20")])
            self.assertEqual(run_options, {"commit": "abc"})

    def test_a_file_without_one_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            log = RawLog(os.path.join(folder, "bars.csv"))
            log.file.close()
            with self.assertRaises(BenchError):
                e8_billion.read(log.path)


if __name__ == "__main__":
    unittest.main()
