# SPDX-License-Identifier: Apache-2.0
"""The case that predictions call the fastest is held against the fastest."""

import unittest

import make_fixture
from support import WithDirectory, plain, quietly, results_of

# isort: split
from report.layout import NothingToShow
from report.regret import choices, regret, regret_of
from report.study import Study


class Regret(WithDirectory):
    def setUp(self):
        self.results = self.copy()

    def predict(self, seconds_of):
        """Predictions that this gives from a result, or none."""
        for name, result in results_of(self.results).items():
            if result["status"] != "ok":
                continue
            seconds = seconds_of(result)
            result["prediction"] = seconds and {**result["prediction"], "step_seconds": seconds,
                                                "oversubscribed": False}  # fmt: skip
            make_fixture.write(self.results / "cases" / name / "result.json", result)
        with quietly():
            return Study(self.results)

    def test_of_right_predictions_is_none(self):
        study = self.predict(lambda result: 3 * result["step_seconds"]["median"])
        self.assertGreater(len(choices(study)), 2)
        for _, cases in choices(study):
            self.assertEqual(regret_of(cases)[2], 0)

    def test_of_predictions_upside_down_is_that_of_the_slowest(self):
        study = self.predict(lambda result: 1 / result["step_seconds"]["median"])
        for _, cases in choices(study):
            steps = [case.step("median") for case in cases]
            self.assertAlmostEqual(regret_of(cases)[2], max(steps) / min(steps) - 1)
            self.assertEqual({case.ranks for case in cases}, {cases[0].ranks})
        worst = max(regret_of(cases)[2] for _, cases in choices(study))
        table = regret(study)
        self.assertEqual(len(table.rows), len(choices(study)))
        self.assertIn(f"{100 * worst:.1f} % at most", plain(table.caption))

    def test_without_predictions_there_is_none(self):
        study = self.predict(lambda result: None)
        with self.assertRaises(NothingToShow):
            regret(study)


if __name__ == "__main__":
    unittest.main()
