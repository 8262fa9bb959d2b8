# SPDX-License-Identifier: Apache-2.0
"""The case that predictions call the fastest is held against the fastest."""

import unittest

import make_fixture
from support import WithDirectory, plain, quietly, results_of

# isort: split
from report.layout import NothingToShow
from report.regret import advice, choices, regret
from report.study import Study


def upside_down(result):
    return 1 / result["step_seconds"]["median"]


def right(result):
    return 3 * result["step_seconds"]["median"]


class Regret(WithDirectory):
    def setUp(self):
        self.results = self.copy()

    def predict(self, calibrated, by_machine=lambda result: None, change=lambda result: None):
        """Predictions that these give from a result, or none."""
        for name, result in results_of(self.results).items():
            if result["status"] != "ok":
                continue
            seconds, machine_seconds = calibrated(result), by_machine(result)
            result["prediction"] = seconds and {**result["prediction"], "step_seconds": seconds,
                                                "oversubscribed": False}  # fmt: skip
            result["machine_prediction"] = machine_seconds and {"machine": "here", "step_seconds": machine_seconds}
            change(result)
            make_fixture.write(self.results / "cases" / name / "result.json", result)
        with quietly():
            return Study(self.results)

    def test_of_right_predictions_is_none(self):
        study = self.predict(right)
        found = advice(study)
        self.assertGreater(len(found), 2)
        self.assertEqual({one.regret for one in found}, {0})
        self.assertEqual({one.source for one in found}, {"calibration"})

    def test_of_predictions_upside_down_is_that_of_the_slowest(self):
        study = self.predict(upside_down)
        for one in advice(study):
            steps = [case.step("median") for case in one.cases]
            self.assertAlmostEqual(one.regret, max(steps) / min(steps) - 1)
            self.assertEqual({case.ranks for case in one.cases}, {one.cases[0].ranks})
            self.assertEqual({case.global_batch for case in one.cases}, {one.cases[0].global_batch})
        worst = max(one.regret for one in advice(study))
        table = regret(study)
        self.assertEqual(len(table.rows), len(choices(study)))
        self.assertIn(f"by calibration {100 * worst:.1f} % at most.", plain(table.caption))

    def test_advice_of_a_machine_file_stands_beside(self):
        study = self.predict(right, by_machine=upside_down)
        by_machine = [one for one in advice(study) if one.source == "machine file here"]
        self.assertEqual(len(by_machine), len(choices(study)))
        worst = max(one.regret for one in by_machine)
        self.assertGreater(worst, 0)
        table = regret(study)
        self.assertEqual(len(table.rows), 2 * len(choices(study)))
        self.assertIn(f"by calibration 0.0 % at most, by machine file here {100 * worst:.1f} % at most.",
                      plain(table.caption))  # fmt: skip
        page = self.report(self.results)
        rows = page.table("predicted by", "regret")
        self.assertEqual({row["regret"] for row in rows if row["predicted by"] == "calibration"}, {"0.0 %"})
        self.assertIn(f"{100 * worst:.1f} %",
                      {row["regret"] for row in rows if row["predicted by"] == "machine file here"})  # fmt: skip

    def test_of_steps_whose_intervals_overlap_is_doubtful(self):
        def widen(result):
            median = result["step_seconds"]["median"]
            result["step_seconds"].update({"ci95_low": median / 1000, "ci95_high": median * 1000})

        sure, doubtful = (regret(self.predict(upside_down, change=change)) for change in (lambda result: None, widen))
        self.assertFalse(any("?" in row[-1] for row in sure.rows))
        self.assertNotIn("?", plain(sure.caption))
        self.assertTrue(all(row[-1].endswith(" %?") for row in doubtful.rows))
        self.assertIn("intervals of the two steps overlap", plain(doubtful.caption))

    def test_microbatches_are_chosen_and_precision_is_not(self):
        def halve(result):
            # The same work in four microbatches, which takes half as long, and in other numbers.
            name = result["factors"]["strategy"]
            result["factors"]["microbatches"] = 4 if name == "zero1" else 1
            if name == "zero2":
                result["factors"]["distributed.mixed_precision"] = "bf16"

        study = self.predict(right, change=halve)
        for case in study.measured:
            case.factors = case.result["factors"]
        together = {frozenset(case.strategy for case in cases) for _, cases in choices(study)}
        self.assertTrue(any({"data", "zero1"} <= names for names in together))
        self.assertFalse(any({"data", "zero2"} <= names for names in together))
        shown = plain(regret(study).rows[0][4])
        self.assertIn("microbatches", shown)

    def test_one_rank_has_no_strategies(self):
        self.assertNotIn(1, {cases[0].ranks for _, cases in choices(self.predict(right))})

    def test_shared_processors_are_shown_apart(self):
        def share(result):
            result["prediction"]["oversubscribed"] = result["factors"]["ranks"] == 4

        study = self.predict(upside_down, change=share)
        own = [one.regret for one in advice(study) if not one.shared]
        shared = [one.regret for one in advice(study) if one.shared]
        table = regret(study)
        self.assertIn(f"Here: by calibration {100 * max(own):.1f} % at most.", table.caption)
        self.assertTrue(table.caption.endswith(f"by calibration {100 * max(shared):.1f} % at most."), table.caption)
        self.assertEqual({row[1] for row in table.rows if "*" in row[1]}, {"4*"})

    def test_without_predictions_there_is_none(self):
        study = self.predict(lambda result: None)
        with self.assertRaises(NothingToShow):
            regret(study)


if __name__ == "__main__":
    unittest.main()
