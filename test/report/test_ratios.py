# SPDX-License-Identifier: Apache-2.0
"""Ratios and their intervals are right, and printed only for cases that can be compared. Axes end where the data do."""

import io
import re
import unittest

import make_fixture
from support import WithDirectory, change_json, fastest, quietly, read_json, small

# isort: split
from report import drawing, numbers, style
from report.case import Case
from report.figures import _ideal, is_joined
from report.numbers import Ratio
from report.study import Study
from report.works import works_of

SECOND = f"launches/{make_fixture.SECOND}.json"


def change(key, value):
    """Returns a function that changes a key of the provenance of a launch."""
    return lambda launch: launch["provenance"].update({key: value})


def place(**changes):
    return lambda launch: [kind.update(changes) for kind in launch["provenance"]["placement"]]


def two_threads(launch):
    launch["provenance"]["blas"] += ", 2 threads"
    launch["provenance"]["kokkos"]["concurrency"] = 2


def with_a_series(result):
    """A few cases, and a series for a figure of speed-ups."""
    return small(result) or result["factors"]["strategy"] == "data"


class Mixed(WithDirectory):
    def copy(self, *arguments):
        """Copies results without those of other libraries, whose ratios are of one launch."""
        results = super().copy(*arguments)
        (results / "peers.json").unlink(missing_ok=True)
        return results

    def page_with(self, change, *options):
        results = self.copy(with_a_series)
        change_json(results / SECOND, change)
        return self.report(results, *options)

    def has_ratios(self, page):
        columns = {title for table in page.tables for title in table[0]}
        text = page.text
        drawn = {(self.output / "figures" / f"{name}-1.svg").exists() for name in ("speedup", "efficiency")}
        ratios = {"corrected speed-up [95 % CI]" in columns, bool(re.search(r"\d × \[", text)), *drawn}
        self.assertEqual(len(ratios), 1, columns)
        return "corrected speed-up [95 % CI]" in columns

    def test_different_builds_and_machines_are_not_compared(self):
        for changed, name in (
            (change("git_revision", "0123abcd"), "git_revision"),
            (change("mpi", {"library": "MPICH 4.0"}), "mpi.library"),
            (place(cpu_model="Another CPU"), "machine"),
            (two_threads, "kokkos.concurrency"),
        ):
            page = self.page_with(changed)
            text = page.text
            self.assertFalse(self.has_ratios(page), name)
            self.assertIn(f"Measured cases differ in {name}. No ratio is printed; --allow-mixed", text)

    def test_all_are_compared_if_asked_for(self):
        page = self.page_with(change("git_revision", "0123abcd"), "--allow-mixed")
        self.assertTrue(self.has_ratios(page))
        self.assertIn("Measured cases differ in git_revision.", page.text)

    def test_threads_may_differ_where_the_study_varies_them(self):
        results = self.copy(with_a_series)
        change_json(results / SECOND, two_threads)
        change_json(results / "study.json", lambda study: [
            case["factors"].update({"distributed.threads": 2}) for case in study["cases"]])  # fmt: skip
        page = self.report(results, drawn=True)
        self.assertTrue(self.has_ratios(page))
        self.assertIn("The global batch is fixed: efficiency is S·p₀/p for a speed-up S on p cores, ranks × threads.", page.text)
        for name, words in (("speedup", "cores"), ("time", "cores × time for a sample, ms"), ("time", "2 cores")):
            self.assertIn(words, (self.output / "figures" / f"{name}-1.svg").read_text(encoding="utf-8"))

    def test_nodes_of_one_cluster_are_one_machine(self):
        self.assertTrue(self.has_ratios(self.page_with(place(hosts={"node18": "0-7"}))))

    def test_a_launch_that_is_lost_is_not_compared(self):
        results = self.copy(with_a_series)
        (results / SECOND).unlink()
        self.assertFalse(self.has_ratios(self.report(results)))

    def test_all_launches_with_rounds_of_a_case_count(self):
        results = self.copy(lambda result: with_a_series(result) and result["launch"] == make_fixture.FIRST)
        change_json(results / SECOND, change("mpi", {"library": "MPICH 4.0"}))
        self.assertTrue(self.has_ratios(self.report(results)))
        change_json(results / "cases" / fastest(results) / "result.json",
                    lambda result: [one.update(launch=make_fixture.SECOND) for one in result["rounds"][:5]])  # fmt: skip
        page = self.report(results)
        self.assertFalse(self.has_ratios(page))
        self.assertIn("Measured cases differ in mpi.library.", page.text)
        self.assertIn(["mpi.library", "MPICH 4.0", "1 case"], [row for table in page.tables for row in table])

    def test_old_summaries_give_no_ratios(self):
        results = self.copy(with_a_series)
        name = fastest(results)
        file = results / "cases" / name / "result.json"
        change_json(file, lambda result: result["step_seconds"].update({"median": 9.5}))
        page = self.report(results)
        rows = page.table("strategy", "corrected speed-up [95 % CI]")
        alone = [row["step: median [95 % CI]"] for row in rows if row["corrected speed-up [95 % CI]"] == "–"]
        self.assertIn("9.500 s", "".join(alone))
        self.assertIn(f"older than the results of {name}", self.stderr)


def case(mesh, ranks, step=1.0, **factors):
    factors = {"strategy": "hybrid", "mesh": mesh, "ranks": ranks, "global_batch": 64, **factors}
    result = {"status": "ok", "step_seconds": {"median": step}, "samples_per_second": 64 / step}
    return Case({"id": f"{mesh} {factors}", "factors": factors}, result, {})


class Works(WithDirectory):
    def setUp(self):
        with quietly():
            self.study = Study(self.fixture)

    def test_marks_are_joined_where_one_axis_varies(self):
        for joined, one, other in ((True, case("data=1", 1), case("pipeline=2", 2)),
                                   (True, case("data=2,fsdp=2", 4), case("data=4,fsdp=2", 8)),
                                   (False, case("data=2,fsdp=2", 4), case("data=4,fsdp=4", 16)),
                                   (False, case("data=2", 2, microbatches=1), case("data=4", 4, microbatches=2))):  # fmt: skip
            self.assertEqual(is_joined(one, other), joined, (one.mesh, other.mesh))

    def test_works_hold_every_case_once(self):
        held = [one.id for work in self.study.works for one in work.cases]
        self.assertEqual(sorted(held), sorted(one.id for one in self.study.cases))
        self.assertEqual({work.title for work in self.study.works}, {"global batch 256", "global batch 2,048"})

    def test_cases_on_one_rank_are_one_program(self):
        (work,) = [work for work in self.study.works if work.title == "global batch 256"]
        self.assertEqual([one.name for one in work.by_ranks()[1]], ["1 rank"])
        self.assertEqual(sum(one.same_as is work.by_ranks()[1][0] for one in work.cases), 4)

    def test_the_summary_says_which_cases_are_one_program(self):
        results = self.copy()
        rows = read_json(results / "summary.json")["cases"]
        first, second = [row["id"] for row in rows if "-data1-" in row["id"] and row["status"] == "ok"][:2]
        change_json(results / "summary.json", lambda summary: [
            row.update(same_program_as=first if row["id"] == second else None) for row in summary["cases"]])  # fmt: skip
        with quietly():
            same = {one.id: one.same_as.id for one in Study(results).cases if one.same_as}
        self.assertEqual(same, {second: first})

    def test_settings_leave_the_work_as_it_is_and_models_do_not(self):
        cases = [case("data=1", 1, **{"model.kind": kind, "training.loss": loss, "distributed.prefetch": on})
                 for kind, loss in (("pinn", "poisson"), ("vae", "bce")) for on in (True, False)]  # fmt: skip
        works = works_of(cases, "strong")
        self.assertEqual([(work.title, len(work.cases)) for work in works], [("model pinn", 2), ("model vae", 2)])


    def test_where_threads_vary_scaling_is_over_cores(self):
        cases = [case(f"data={ranks}", ranks, step, **{"distributed.threads": threads})
                 for ranks, threads, step in ((1, 1, 4.0), (1, 2, 2.5), (2, 1, 2.1), (2, 2, 1.2))]  # fmt: skip
        (work,) = works_of(cases, "strong")
        cases[1].baseline = cases[0]
        self.assertEqual(work.fastest_of_strategies(), {1: cases[:1], 2: [cases[2]], 4: cases[3:]})
        self.assertEqual([_ideal(work)(cores) for cores in (1, 2, 4)], [1, 2, 4])

    def test_cases_of_weak_scaling_have_the_same_batch_on_each_rank(self):
        cases = [case("data=1", 1), case("data=2", 2, global_batch=128), case("data=2", 2, global_batch=64),
                 case("data=4", 4, global_batch=256, batch_per_rank=64)]  # fmt: skip
        works = works_of(cases, "weak")
        self.assertEqual([(work.title, len(work.cases)) for work in works], [("batch per rank 64", 3), ("batch per rank 32", 1)])


class Axes(unittest.TestCase):
    def limits(self, points):
        """Returns the limits of an axis and the number of arrows on it."""
        _, panel = drawing.plate()
        drawing.points(panel, [(n, one) for n, one in enumerate(points)], style.mark("data"))
        lines = len(panel.lines)
        drawing.fit_to_data(panel, [(n, one, "black") for n, one in enumerate(points)], numbers.times)
        return (*panel.get_ylim(), len(panel.lines) - lines)

    def test_axes_end_where_the_data_do(self):
        low, high, arrows = self.limits([Ratio(1, 0.9, 1.1), Ratio(2, 1.9, 2.2)])
        self.assertTrue(0.8 < low < 0.9 and 2.2 < high < 2.5, (low, high))
        self.assertEqual(arrows, 0)

    def test_bars_that_go_on_are_cut_and_marked(self):
        low, high, arrows = self.limits([Ratio(1, 1e-6, 1e6), Ratio(2, 1.9, 300817.0)])
        self.assertTrue(0.5 < low and high < 4, (low, high))
        self.assertEqual(arrows, 3)

    def test_ticks_of_ranks_do_not_overlap(self):
        for ranks in ((8, 64, 512, 4096, 32768, 131072), [2**k for k in range(10)], [2**k for k in range(18)], (1, 2, 3, 4, 5, 6, 7, 8)):
            figure, panel = drawing.plate()
            drawing.rank_axis(panel, ranks)
            figure.savefig(io.BytesIO())
            labels = [label.get_window_extent() for label in panel.get_xticklabels()]
            self.assertGreater(len(labels), 3)
            for left, right in zip(labels, labels[1:]):
                self.assertLess(left.x1 + 4, right.x0, ranks)

    def test_ticks_do_not_overlap(self):
        for largest in (1.02, 1.3, 1.9, 2.5, 4, 5.5, 7, 9, 40, 900):
            figure, panel = drawing.plate()
            drawing.fit_to_data(panel, [(0, Ratio(1), "black"), (1, Ratio(largest), "black")], numbers.times, which="x")
            figure.savefig(io.BytesIO())
            low, high = panel.get_xlim()
            labels = [label.get_window_extent() for label in panel.get_xticklabels() if low <= label.get_position()[0] <= high]
            self.assertGreater(len(labels), 1, largest)
            for left, right in zip(labels, labels[1:]):
                self.assertLess(left.x1, right.x0, largest)


if __name__ == "__main__":
    unittest.main()
