# SPDX-License-Identifier: Apache-2.0
"""Predictions are compared with measurements, and the case that they call the fastest with the fastest."""

import re
import unittest

import make_fixture
from support import WithDirectory, change_json, quietly, results_of

# isort: split
from report.predictions import advice, predictions
from report.study import Study


def right(result, scale=3):
    return scale * result["step_seconds"]["median"]


class Predictions(WithDirectory):
    def setUp(self):
        self.results = self.copy()

    def predict(self, seconds_of, change=lambda result: None):
        """Returns a study with the predictions that a function gives from a result."""
        for name, result in results_of(self.results).items():
            if result["status"] == "ok":
                seconds = seconds_of(result)
                result["prediction"] = seconds and {"machine": "here", "step_seconds": seconds, "oversubscribed": False}
                change(result)
                make_fixture.write(self.results / "cases" / name / "result.json", result)
        # Without cases in the study, factors are those of the results.
        change_json(self.results / "study.json", lambda study: study.update(cases=[]))
        with quietly():
            study = Study(self.results)
        study.compare()
        return study

    def test_the_largest_predicted_gain_is_named_beside_the_measured_one(self):
        study = self.predict(right)
        (said,) = [one for one in predictions(study).points if "largest predicted gain" in one]
        best = max((case for case in study.measured if case.speedup), key=lambda case: case.speedup.value)
        self.assertIn(f", for {best.name}; measured: ", said)
        self.assertEqual(*re.findall(r"[\d.]+(?= ×)", said))

    def test_right_predictions_have_no_regret(self):
        found = advice(self.predict(right).measured)
        self.assertGreater(len(found), 2)
        self.assertEqual({one.regret for one in found}, {0})
        self.assertNotIn(1, {one.advised.ranks for one in found})

    def test_predictions_upside_down_advise_the_slowest(self):
        study = self.predict(lambda result: 1 / right(result))
        found = advice(study.measured)
        for one in found:
            steps = [case.step() for case in one.cases]
            self.assertAlmostEqual(one.regret, max(steps) / min(steps) - 1)
            self.assertEqual({(case.ranks, case.global_batch) for case in one.cases},
                             {(one.fastest.ranks, one.fastest.global_batch)})  # fmt: skip
        worst = max(found, key=lambda one: one.regret)
        said = " ".join(predictions(study).points)
        self.assertIn(f"predicted to be the fastest takes at most {100 * worst.regret:.1f} % longer", said)
        self.assertIn(f": {worst.advised.name} (", said)

    def test_errors_are_stated(self):
        said = predictions(self.predict(lambda result: right(result, 1.1))).points
        self.assertIn("For 34 cases with a processor for each rank, the predicted step is off by 10.0 % in the median "
                      "and by 10.0 % at most, and by less than 20 % for 34.", said)  # fmt: skip

    def test_microbatches_are_chosen_and_precision_is_not(self):
        def change(result):
            result["factors"]["microbatches"] = 4 if result["factors"]["strategy"] == "zero1" else 1
            if result["factors"]["strategy"] == "zero2":
                result["factors"]["distributed.mixed_precision"] = "bf16"

        found = advice(self.predict(right, change=change).measured)
        together = {frozenset(case.strategy for case in one.cases) for one in found}
        self.assertTrue(any({"data", "zero1"} <= names for names in together))
        self.assertFalse(any({"data", "zero2"} <= names for names in together))

    def test_ranks_that_share_processors_are_stated_apart(self):
        share = lambda result: result["prediction"].update(oversubscribed=result["factors"]["ranks"] == 4)  # noqa: E731
        said = predictions(self.predict(right, change=share)).points
        where = ["with a processor for each rank" in one for one in said]
        self.assertEqual(where[:4], [True, True, False, False])

    def test_planned_bytes_and_memory_are_equal_or_not(self):
        said = predictions(self.predict(lambda result: None, lambda result: result["memory"].update(as_planned=False))).points
        self.assertEqual(said, ["Calls and bytes: planned and measured are equal for 36 of 36 cases.",
                                "Memory: planned and measured are equal for 2 of 36 cases."])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
