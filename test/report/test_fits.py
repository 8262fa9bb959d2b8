# SPDX-License-Identifier: Apache-2.0
"""Fits find the constants that were planted, and nothing where points do not determine them."""

import unittest

from support import WithDirectory, change_json, quietly

# isort: split
import fixture_model as model
from report.case import Case
from report.fits import alpha_beta_fits, amdahl_fits, fit_alpha_beta, fit_amdahl
from report.study import Study


class Lines(unittest.TestCase):
    def test_amdahl_finds_the_serial_fraction_of_exact_times(self):
        ranks = [1, 2, 4, 8]
        line = fit_amdahl(ranks, [2.0 * (0.1 + 0.9 / p) for p in ranks])
        self.assertAlmostEqual(line.a / (line.a + line.b), 0.1, delta=1e-12)
        self.assertAlmostEqual(line.a + line.b, 2.0, delta=1e-12)
        self.assertAlmostEqual(line.r_squared, 1, delta=1e-12)
        self.assertLess(max(abs(line.residuals)), 1e-12)

    def test_amdahl_residuals_are_what_is_left(self):
        """By hand: x = 1/p = 1, 1/2, 1/4; the least squares line through (x, T)."""
        line = fit_amdahl([1, 2, 4], [1.0, 0.6, 0.3])
        self.assertAlmostEqual(line.b, 32 / 35, delta=1e-12)
        self.assertAlmostEqual(line.a, 0.1, delta=1e-12)
        for fitted, residual, measured in zip(line.fitted, line.residuals, (1.0, 0.6, 0.3)):
            self.assertAlmostEqual(fitted + residual, measured, delta=1e-12)
        # Those of a line with an intercept cancel.
        self.assertAlmostEqual(sum(line.residuals), 0, delta=1e-12)
        self.assertLess(line.r_squared, 1)

    def test_amdahl_may_be_better_than_linear(self):
        line = fit_amdahl([1, 2, 4], [4.0, 1.8, 0.8])
        self.assertLess(line.a / (line.a + line.b), 0)

    def test_too_little_determines_nothing(self):
        self.assertIsNone(fit_amdahl([1, 2], [2, 1]))
        self.assertIsNone(fit_amdahl([2, 2, 2], [1, 1.1, 0.9]))
        self.assertIsNone(fit_alpha_beta([2, 2], [8, 800], [1e-6, 1e-5]))
        # Rounds and bytes in step.
        self.assertIsNone(fit_alpha_beta([1, 2, 3], [10, 20, 30], [1, 2, 3]))
        self.assertIsNone(fit_alpha_beta([1, 2, 3], [0, 0, 0], [1, 2, 3]))

    def test_alpha_beta_separates_latency_from_bandwidth(self):
        rounds, size = [2, 6, 2, 6, 14], [8, 12, 1e8, 1.5e8, 1.75e8]
        line = fit_alpha_beta(rounds, size, [2e-6 * r + 3e-10 * b for r, b in zip(rounds, size)])
        self.assertAlmostEqual(line.a, 2e-6, delta=1e-12)
        self.assertAlmostEqual(line.b, 3e-10, delta=1e-16)

    def test_alpha_beta_weighs_relative_errors(self):
        """One percent on the large message must not drown the latency."""
        line = fit_alpha_beta([2, 2, 2], [8, 8, 1e9], [4e-6, 4e-6, 0.3 * 1.01])
        self.assertAlmostEqual(line.a, 2e-6, delta=1e-8)
        self.assertAlmostEqual(line.b, 3.03e-10, delta=1e-12)


class FakeStudy:
    def __init__(self, cases, scaling="strong"):
        self.cases, self.measured, self.scaling = cases, cases, scaling


def case(ranks, seconds, rows=(), **factors):
    mesh = f"data={ranks}"
    result = {"status": "ok", "step_seconds": {"median": seconds}, "samples_per_second": 64 / seconds,
              "traffic": {"rows": list(rows)},
              "factors": {"strategy": "data", "mesh": mesh, "ranks": ranks, "global_batch": 64,
                          **factors}}  # fmt: skip
    return Case({"id": mesh}, result, {})


class Series(unittest.TestCase):
    def test_amdahl_over_a_series_with_its_one_rank_case(self):
        cases = [case(1, 8), *(case(n, 10 / n, **{"distributed.overlap": True}) for n in (2, 4)),
                 case(8, 1, **{"distributed.overlap": False})]  # fmt: skip
        (fit,) = amdahl_fits(FakeStudy(cases))  # two points make no series
        self.assertEqual(fit.ranks, [1, 2, 4])
        self.assertEqual((fit.strategy, fit.axis), ("data", "data"))
        self.assertAlmostEqual(fit.line.sum, 8, delta=0.5)
        self.assertEqual(amdahl_fits(FakeStudy(cases, "weak")), [])

    def test_the_one_rank_case_belongs_to_every_setting(self):
        overlap = {"distributed.overlap": True}
        cases = [case(1, 8), case(2, 5, **overlap), case(4, 2.5, **overlap)]
        (fit,) = amdahl_fits(FakeStudy(cases))
        self.assertEqual(fit.ranks, [1, 2, 4])

    def test_alpha_beta_over_the_traffic_of_an_axis(self):
        def row(n):
            rounds, wire = 2 * (n - 1), 1e6 * 2 * (n - 1) / n
            return {"axis": "data", "operation": "all_reduce", "rounds_per_step": rounds,
                    "wire_bytes_per_step": wire,
                    "seconds_per_step": 1e-5 * rounds + 1e-9 * wire}  # fmt: skip

        cases = [case(1, 8), *(case(n, 8 / n, [row(n)]) for n in (2, 4, 8))]
        (fit,) = alpha_beta_fits(FakeStudy(cases))
        self.assertEqual(len(fit.cases), 3)
        self.assertAlmostEqual(fit.line.a, 1e-5, delta=1e-11)
        self.assertAlmostEqual(fit.line.b, 1e-9, delta=1e-15)


    def test_links_between_nodes_are_fitted_apart(self):
        def crossing(n, wire, across):
            seconds = wire * (1e-7 if across else 1e-10)
            row = {"axis": "data+fsdp", "rounds_per_step": n, "wire_bytes_per_step": wire,
                   "seconds_per_step": 1e-5 * n + seconds}  # fmt: skip
            one = case(n, 1, [row])
            one.result["case"] = {"nodes": {"across": ["data"] if across else []}}
            return one

        cases = [crossing(n, n * n * 1e6, across) for n in (2, 4, 8) for across in (False, True)]
        inside, across = alpha_beta_fits(FakeStudy(cases))
        self.assertEqual((inside.axis, across.axis), ("data+fsdp", "data+fsdp, across nodes"))
        self.assertAlmostEqual(inside.line.b, 1e-10, delta=1e-15)
        self.assertAlmostEqual(across.line.b, 1e-7, delta=1e-12)


class OfTheFixture(WithDirectory):
    def test_what_was_planted_is_found(self):
        with quietly():
            study = Study(self.fixture)
        fits = {fit.axis: fit for fit in alpha_beta_fits(study)}
        self.assertEqual({axis.split(",")[0] for axis in fits}, {"data", "fsdp", "model"})
        for fit in fits.values():
            self.assertAlmostEqual(fit.line.b / model.BETA, 1, delta=0.1)
        self.assertTrue(all(0 < fit.line.a < fit.line.b for fit in amdahl_fits(study)))

    def test_results_without_a_wire_model_have_no_latency(self):
        results = self.copy()

        def forget(result):
            for row in (result["traffic"] or {"rows": []})["rows"]:
                del row["wire_bytes_per_step"]

        for file in results.glob("cases/*/result.json"):
            change_json(file, forget)
        with quietly():
            self.assertEqual(alpha_beta_fits(Study(results)), [])


if __name__ == "__main__":
    unittest.main()
