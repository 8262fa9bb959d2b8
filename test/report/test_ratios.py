# SPDX-License-Identifier: Apache-2.0
"""Ratios are printed only for cases that can be compared, and lines join only points of one series."""

import io
import re
import unittest
from types import SimpleNamespace

import make_fixture
from support import WithDirectory, change_json, fastest, quietly, read_json, small

# isort: split
from report.case import Case
from report.figures import choice, comparisons
from report.study import Study
from report.works import Work, lines_of, works_of

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
    """A few cases, and a series that is long enough for Amdahl's law."""
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
        drawn = {(self.output / "figures" / f"{name}.svg").exists() for name in ("scaling", "choice-1")}
        ratios = {"speed-up" in columns, "serial fraction s" in columns, bool(re.search(r"\d ×", text)), *drawn}
        self.assertEqual(len(ratios), 1, columns)
        return "speed-up" in columns

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
        self.assertTrue(self.has_ratios(self.report(results)))

    def test_nodes_of_one_cluster_are_one_machine(self):
        self.assertTrue(self.has_ratios(self.page_with(place(hosts={"node18": "0-7"}))))

    def test_a_launch_that_is_lost_is_not_compared(self):
        results = self.copy(with_a_series)
        (results / SECOND).unlink()
        self.assertFalse(self.has_ratios(self.report(results)))

    def test_old_summaries_give_no_ratios(self):
        results = self.copy(with_a_series)
        name = fastest(results)
        file = results / "cases" / name / "result.json"
        change_json(file, lambda result: result["step_seconds"].update({"median": 9.5}))
        page = self.report(results)
        rows = page.table("strategy", "speed-up")
        alone = [row for row in rows if row["baseline"] == "–"]
        self.assertEqual([row["speed-up"] for row in rows].count("–"), len(alone))
        self.assertIn("9.500 s", "".join(row["step: median [95 % CI]"] for row in alone))
        self.assertIn(f"older than the results of {name}", self.stderr)


def case(mesh, ranks, step=1.0, memory=1, **factors):
    factors = {"strategy": "hybrid", "mesh": mesh, "ranks": ranks, "global_batch": 64, **factors}
    result = {"status": "ok", "step_seconds": {"median": step}, "samples_per_second": 64 / step,
              "memory": {"planned_bytes": memory}}  # fmt: skip
    return Case({"id": f"{mesh} {factors}", "factors": factors}, result, {})


class Lines(WithDirectory):
    def setUp(self):
        with quietly():
            self.study = Study(self.fixture)

    def test_only_one_axis_varies_along_a_line(self):
        joined = 0
        for work in self.study.works:
            for axis, line in lines_of(work.measured):
                for one, other in zip(line, line[1:]):
                    sizes, others = dict(one.axes), dict(other.axes)
                    differing = [name for name in {*sizes, *others} if sizes.get(name, 1) != others.get(name, 1)]
                    self.assertEqual(differing, [axis])
                    self.assertEqual(one.strategy, other.strategy)
                    self.assertLess(one.ranks, other.ranks)
                    joined += 1
        self.assertGreater(joined, 10)

    def test_a_line_does_not_join_other_settings_or_two_axes(self):
        one = case("data=1", 1)
        cases = [one, *(case(f"pipeline={n}", n, **{"distributed.schedule": name})
                        for name in ("gpipe", "1f1b") for n in (2, 4))]  # fmt: skip
        found = [line for axis, line in lines_of(cases) if axis == "pipeline"]
        self.assertEqual(len(found), 2)
        for line in found:
            self.assertEqual([one.mesh for one in line], ["data=1", "pipeline=2", "pipeline=4"])
            self.assertEqual(line[1].other_factors(), line[2].other_factors())
        cases = [case("data=2,fsdp=2", 4), case("data=4,fsdp=4", 16)]
        self.assertEqual([axis for axis, _ in lines_of(cases)], [None, None])

    def test_works_hold_every_case_once(self):
        held = [one.id for work in self.study.works for one in work.cases]
        self.assertEqual(sorted(held), sorted(one.id for one in self.study.cases))
        self.assertEqual({work.title for work in self.study.works}, {"global batch 256", "global batch 2,048"})

    def test_the_most_ranks_are_explained_unless_the_fastest_has_more_than_the_baseline(self):
        base, most = case("data=1", 1), case("data=8", 8, 3)
        for ranks, explained in ((1, 8), (2, 2)):
            best = case(f"data={ranks}", ranks, 0.5, microbatches=2)
            best.baseline = base
            self.assertEqual(Work("", [base, best, most]).ranks, explained)

    def test_settings_leave_the_work_as_it_is_and_models_do_not(self):
        cases = [case("data=1", 1, **{"model.kind": kind, "training.loss": loss, "distributed.prefetch": on})
                 for kind, loss in (("pinn", "poisson"), ("vae", "bce")) for on in (True, False)]  # fmt: skip
        works = works_of(cases, "strong")
        self.assertEqual([(work.title, len(work.cases)) for work in works], [("model pinn", 2), ("model vae", 2)])


class Choices(WithDirectory):
    def compared(self, cases, key):
        """Returns value -> [(step, memory)], over the smallest."""
        found = comparisons(SimpleNamespace(cases=cases, measured=cases), key)
        return {value: [(step, memory) for _, step, memory in own] for value, own in found.items()}

    def test_a_value_is_compared_with_the_same_case_with_another_value(self):
        key = "training.activation_checkpointing"
        cases = [case("data=2", 2, 0.4, 300, **{key: "none"}), case("data=2", 2, 0.5, 100, **{key: "full"})]
        self.assertEqual(self.compared(cases, key), {"none": [(1.0, 3.0)], "full": [(1.25, 1.0)]})

    def test_cases_that_differ_in_two_factors_are_not_compared(self):
        cases = [case("data=2", 2, microbatches=n, **{"distributed.prefetch": n == 2}) for n in (1, 2)]
        self.assertEqual(self.compared(cases, "distributed.prefetch"), {})

    def test_ticks_do_not_overlap(self):
        one = case("data=2", 2)
        for largest in (1.02, 1.3, 1.9, 2.5, 4, 5.5, 7, 9, 40, 900):
            figure = choice("choice-1", "microbatches", {"4": [(one, 1, 1)], "8": [(one, largest, largest)]}).figure
            figure.savefig(io.BytesIO())
            for panel in figure.axes:
                low, high = panel.get_xlim()
                labels = [label.get_window_extent() for label in panel.get_xticklabels()
                          if low <= label.get_position()[0] <= high]  # fmt: skip
                self.assertGreater(len(labels), 1, largest)
                for left, right in zip(labels, labels[1:]):
                    self.assertLess(left.x1, right.x0, largest)

    def test_strategies_compete_on_their_fastest_mesh_and_not_on_one_rank(self):
        with quietly():
            study = Study(self.fixture)
        found = comparisons(study, "strategy")
        self.assertEqual(set(found), {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"})
        for own in found.values():
            for case, step, _ in own:
                self.assertGreater(case.ranks, 1)
                rivals = [other for other in study.measured
                          if (other.ranks, other.global_batch) == (case.ranks, case.global_batch)]  # fmt: skip
                self.assertAlmostEqual(step, case.step() / min(other.step() for other in rivals))


if __name__ == "__main__":
    unittest.main()
