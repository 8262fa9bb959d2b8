# SPDX-License-Identifier: Apache-2.0
"""Ratios stand only between cases that can be compared, and lines only between points of one series."""

import unittest

import make_fixture
from support import WithDirectory, change_json, quietly, read_json, results_of, small

SECOND = f"launches/{make_fixture.SECOND}.json"


def provenance(key, value):
    return lambda launch: launch["provenance"].update({key: value})


def other_mpi(launch):
    launch["provenance"]["mpi"]["library"] = "MPICH 4.0"


def other_hosts(launch):
    for kind in launch["provenance"]["placement"]:
        kind["hosts"] = {"node18": "0-7"}


def other_processor(launch):
    for kind in launch["provenance"]["placement"]:
        kind["cpu_model"] = "Another CPU"


def two_threads(launch):
    launch["provenance"]["blas"] += ", 2 threads"
    launch["provenance"]["kokkos"]["concurrency"] = 2


def vary_threads(study):
    for case in study["cases"]:
        case["factors"]["distributed.threads"] = 2


def with_a_series(result):
    """A few cases, and a series that is long enough for Amdahl's law."""
    return small(result) or result["factors"]["strategy"] == "data"


class Mixed(WithDirectory):
    def page_with(self, change, *options):
        results = self.copy(with_a_series)
        change_json(results / SECOND, change)
        return self.report(results, *options)

    def has_ratios(self, page):
        columns = {title for table in page.tables for title in table[0]}
        text = "".join(page.text)
        speedup, efficiency = "speed-up" in columns, "efficiency" in columns
        drawn = (self.output / "figures" / "speedup.svg").exists()
        fits = (self.output / "figures" / "amdahl.svg").exists()
        self.assertEqual(len({speedup, efficiency, drawn, fits, "×" in text.replace(" × ", "")}), 1)
        return speedup

    def test_different_builds_and_machines_are_not_compared(self):
        for change, name in (
            (provenance("git_revision", "0123abcd"), "revision"),
            (provenance("git_dirty", True), "uncommitted changes"),
            (other_mpi, "MPI library"),
            (other_processor, "machine"),
        ):
            page = self.page_with(change)
            text = "".join(page.text)
            self.assertFalse(self.has_ratios(page), name)
            self.assertIn(f"Measured cases differ in {name}.", text)
            self.assertIn("Where it differs", text)
            self.assertIn("--allow-mixed", text)

    def test_unless_asked_for(self):
        page = self.page_with(provenance("git_revision", "0123abcd"), "--allow-mixed")
        self.assertTrue(self.has_ratios(page))
        self.assertIn("Measured cases differ in revision.", "".join(page.text))

    def test_threads_may_differ_where_the_study_varies_them(self):
        page = self.page_with(two_threads)
        self.assertFalse(self.has_ratios(page))
        self.assertIn("Measured cases differ in threads of a rank.", "".join(page.text))
        results = self.copy(with_a_series)
        change_json(results / SECOND, two_threads)
        change_json(results / "study.json", vary_threads)
        page = self.report(results)
        self.assertTrue(self.has_ratios(page))
        self.assertIn("with 2 threads a rank", "".join(page.text))

    def test_nodes_of_one_cluster_are_one_machine(self):
        page = self.page_with(other_hosts)
        self.assertTrue(self.has_ratios(page))

    def test_a_launch_that_is_lost_is_not_compared(self):
        results = self.copy(small)
        (results / SECOND).unlink()
        self.assertFalse(self.has_ratios(self.report(results)))

    def test_old_summaries_give_no_ratios(self):
        results = self.copy(small)
        name = read_json(results / "summary.json")["best"]
        file = results / "cases" / name / "result.json"
        change_json(file, lambda result: result["step_seconds"].update({"median": 9.5}))
        page = self.report(results)
        rows = page.table("strategy", "speed-up")
        self.assertEqual([row["speed-up"] for row in rows].count("–"), 1)
        self.assertIn(f"is older than the results of {name}", self.stderr)


class Lines(WithDirectory):
    def setUp(self):
        from report.study import Study

        with quietly():
            self.study = Study(self.fixture)

    def test_only_one_axis_varies_along_a_line(self):
        from report.series import facets, series

        joined = 0
        for facet in facets(self.study.cases, "strong"):
            for line in series(facet.measured):
                for one, other in zip(line.cases, line.cases[1:]):
                    sizes, others = dict(one.axes), dict(other.axes)
                    differing = [axis for axis in {*sizes, *others}
                                 if sizes.get(axis, 1) != others.get(axis, 1)]  # fmt: skip
                    self.assertEqual(differing, [line.axis])
                    self.assertEqual(one.strategy, other.strategy)
                    self.assertLess(one.ranks, other.ranks)
                    joined += 1
        self.assertGreater(joined, 10)

    def test_facets_hold_every_case_once(self):
        from report.series import facets

        held = [case.id for facet in facets(self.study.cases, "strong") for case in facet.cases]
        self.assertEqual(sorted(held), sorted(case.id for case in self.study.cases))

    def test_a_factor_that_does_not_apply_splits_nothing(self):
        from report.case import Case
        from report.series import facets

        def case(name, **factors):
            return Case({"id": name, "factors": {"global_batch": 64, **factors}}, {}, {})

        cases = [case("base", strategy="data"),
                 case("on", strategy="fsdp", **{"distributed.prefetch": True}),
                 case("off", strategy="fsdp", **{"distributed.prefetch": False})]  # fmt: skip
        found = {facet.title: [c.id for c in facet.cases] for facet in facets(cases, "strong")}
        self.assertEqual(found, {"prefetch off": ["base", "off"], "prefetch on": ["base", "on"]})

    def test_a_line_does_not_join_meshes_that_differ_in_two_axes(self):
        from report.case import Case
        from report.series import series

        cases = [Case({"id": mesh, "factors": {"strategy": "hybrid", "mesh": mesh, "ranks": ranks}},
                      {}, {}) for mesh, ranks in (("data=2,fsdp=2", 4), ("data=4,fsdp=4", 16))]  # fmt: skip
        self.assertEqual([line.axis for line in series(cases)], [None, None])

    def test_results_are_found(self):
        self.assertEqual(len(results_of(self.fixture)), len(self.study.cases) - 1)


if __name__ == "__main__":
    unittest.main()
