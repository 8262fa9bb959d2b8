# SPDX-License-Identifier: Apache-2.0
"""Fits find the constants that were planted, and nothing where points do not determine them or make no sense."""

import unittest
from types import SimpleNamespace

from support import WithDirectory, quietly

# isort: split
import fixture_model as model
from report.case import Case
from report.fits import alpha_beta_fits, amdahl_fits, fit_alpha_beta, fit_amdahl
from report.study import Study
from report.tables import amdahl
from report.works import works_of


class Lines(unittest.TestCase):
    def test_amdahl_finds_the_serial_fraction_of_exact_times(self):
        ranks = [1, 2, 4, 8]
        fit = fit_amdahl(ranks, [2.0 * (0.1 + 0.9 / p) for p in ranks])
        self.assertAlmostEqual(fit.a / (fit.a + fit.b), 0.1, delta=1e-12)
        self.assertAlmostEqual(fit.a + fit.b, 2.0, delta=1e-12)
        self.assertLess(max(abs(fit.residuals)), 1e-12)
        self.assertIsNone(fit.problem)

    def test_too_little_determines_nothing(self):
        self.assertIsNone(fit_amdahl([1, 2], [2, 1]))
        self.assertIsNone(fit_amdahl([2, 2, 2], [1, 1.1, 0.9]))
        self.assertIsNone(fit_alpha_beta([2, 2], [8, 800], [1e-6, 1e-5]))
        self.assertIsNone(fit_alpha_beta([1, 2, 3], [10, 20, 30], [1, 2, 3]))  # rounds and bytes in step
        self.assertIsNone(fit_alpha_beta([1, 2, 3], [0, 0, 0], [1, 2, 3]))

    def test_senseless_fits_have_their_reason(self):
        self.assertIn("shrinks faster", fit_amdahl([1, 2, 4], [4.0, 1.8, 0.8]).problem)
        self.assertIn("longer", fit_amdahl([1, 2, 4], [1.0, 1.5, 2.0]).problem)
        self.assertIn("latency", fit_alpha_beta([1, 1, 1], [10, 20, 40], [1.0, 3.0, 7.0]).problem)
        self.assertIn("bandwidth", fit_alpha_beta([1, 1, 1], [10, 20, 40], [4.0, 3.0, 1.0]).problem)
        self.assertIn("residuals", fit_alpha_beta([1, 1, 1, 1], [10, 20, 30, 40], [1.0, 9.0, 2.0, 9.0]).problem)

    def test_alpha_beta_separates_latency_from_bandwidth(self):
        rounds, size = [2, 6, 2, 6, 14], [8, 12, 1e8, 1.5e8, 1.75e8]
        fit = fit_alpha_beta(rounds, size, [2e-6 * r + 3e-10 * b for r, b in zip(rounds, size)])
        self.assertAlmostEqual(fit.a, 2e-6, delta=1e-12)
        self.assertAlmostEqual(fit.b, 3e-10, delta=1e-16)

    def test_alpha_beta_weighs_relative_errors(self):
        """One percent on the large message must not drown the latency."""
        fit = fit_alpha_beta([2, 2, 2], [8, 8, 1e9], [4e-6, 4e-6, 0.3 * 1.01])
        self.assertAlmostEqual(fit.a, 2e-6, delta=1e-8)
        self.assertAlmostEqual(fit.b, 3.03e-10, delta=1e-12)


def study_of(cases, scaling="strong"):
    return SimpleNamespace(measured=cases, scaling=scaling, ratios=True, works=works_of(cases, scaling))


def case(ranks, seconds, rows=(), across=False, **factors):
    mesh = f"data={ranks}"
    result = {"status": "ok", "step_seconds": {"median": seconds}, "samples_per_second": 64 / seconds,
              "traffic": {"rows": list(rows)}, "case": {"nodes": {"across": ["data"] if across else []}},
              "factors": {"strategy": "data", "mesh": mesh, "ranks": ranks, "global_batch": 64,
                          **factors}}  # fmt: skip
    return Case({"id": mesh}, result, {})


class Series(unittest.TestCase):
    def test_amdahl_over_a_series_with_its_one_rank_case(self):
        cases = [case(1, 8), *(case(n, 10 / n, **{"distributed.overlap": True}) for n in (2, 4)),
                 case(8, 1, **{"distributed.overlap": False})]  # fmt: skip
        (fit,) = amdahl_fits(study_of(cases))  # two points make no series
        self.assertEqual([one.ranks for one in fit.cases], [1, 2, 4])
        self.assertEqual(fit.axis, "data")
        self.assertAlmostEqual(fit.a + fit.b, 8, delta=0.5)
        self.assertEqual(amdahl_fits(study_of(cases, "weak")), [])

    def test_a_senseless_fit_shows_no_numbers(self):
        for seconds, shown in (((8, 5, 3), True), ((1, 2, 4), False)):
            table = amdahl(study_of([case(n, time) for n, time in zip((1, 2, 4), seconds)]))
            row = dict(zip([column.title for column in table.columns], table.rows[0]))
            self.assertEqual(row["serial fraction s"].endswith("%"), shown)
            self.assertEqual(row["why there is no fit"] == "–", shown)

    def test_links_between_nodes_are_fitted_apart(self):
        def crossing(n, wire, across):
            seconds = wire * (1e-7 if across else 1e-10)
            row = {"axis": "data+fsdp", "rounds_per_step": n, "wire_bytes_per_step": wire,
                   "seconds_per_step": 1e-5 * n + seconds}  # fmt: skip
            return case(n, 1, [row], across)

        cases = [crossing(n, n * n * 1e6, across) for n in (2, 4, 8) for across in (False, True)]
        inside, across = alpha_beta_fits(study_of(cases))
        self.assertEqual((inside.axis, across.axis), ("data+fsdp", "data+fsdp, across nodes"))
        self.assertAlmostEqual(inside.a, 1e-5, delta=1e-11)
        self.assertAlmostEqual(inside.b, 1e-10, delta=1e-15)
        self.assertAlmostEqual(across.b, 1e-7, delta=1e-12)


class OfTheFixture(WithDirectory):
    def test_planted_constants_are_found(self):
        with quietly():
            study = Study(self.fixture)
        fits = {fit.axis: fit for fit in alpha_beta_fits(study)}
        self.assertEqual({axis.split(",")[0] for axis in fits}, {"data", "fsdp", "model"})
        for fit in fits.values():
            self.assertAlmostEqual(fit.b / model.BETA, 1, delta=0.1)
        self.assertTrue(all(0 < fit.a < fit.b for fit in amdahl_fits(study)))

if __name__ == "__main__":
    unittest.main()
