# SPDX-License-Identifier: Apache-2.0
"""What recomputation saves and costs stands beside the case that does without."""

import unittest

import make_fixture
from support import WithDirectory, change_json, plain, quietly, read_json, small

# isort: split
from report.recomputation import recomputed
from report.study import Study

FACTOR = "training.activation_checkpointing"
KEEPS = {"strategy": "zero2", "mesh": "data=8", "global_batch": 2048}
MIB = 2**20


def write_case(results, case):
    """As a case of the study, with its row of the summary."""
    folder = results / "cases" / case["id"]
    folder.mkdir(exist_ok=True)
    make_fixture.write(folder / "result.json", case)
    entry = {key: case[key] for key in ("id", "label", "factors")}
    row = {"id": case["id"], "step_seconds_median": (case["step_seconds"] or {}).get("median")}
    for file, one in (("study.json", entry), ("summary.json", row)):
        change_json(
            results / file,
            lambda content, one=one: content.update(
                cases=[old for old in content["cases"] if old["id"] != one["id"]] + [one]
            ),
        )


def variant(case, checkpointing, activations, slower):
    """The case with so many MiB of activations, a step that takes that much longer, and a
    prediction of twice as much longer."""
    parts = {**case["memory"]["parts"], "activations": activations * MIB}
    median = case["step_seconds"]["median"] * (1 + slower)
    predicted = case["prediction"]["step_seconds"] * (1 + 2 * slower)
    return {
        **case,
        "id": f"{case['id']}-{checkpointing}",
        "factors": {**case["factors"], FACTOR: checkpointing},
        "memory": {**case["memory"], "parts": parts, "planned_bytes": sum(parts.values()),
                   "measured_bytes": sum(parts.values())},
        "step_seconds": {**case["step_seconds"], "median": median},
        "rounds": [{**one, "seconds": one["seconds"] * (1 + slower)} for one in case["rounds"]],
        "prediction": {**case["prediction"], "step_seconds": predicted},
    }  # fmt: skip


class Recomputation(WithDirectory):
    def setUp(self):
        self.results = self.copy(small)
        found = [read_json(file) for file in self.results.glob("cases/*/result.json")]
        (self.base,) = [one for one in found if KEEPS.items() <= one["factors"].items()]

    def add(self, checkpointing, activations, slower=0.0, **changes):
        case = {**variant(self.base, checkpointing, activations, slower), **changes}
        write_case(self.results, case)
        return case

    def rows(self, ratios=True):
        """The table, as title -> cell; pages take long to draw."""
        with quietly():
            study = Study(self.results)
        study.ratios = ratios
        table = recomputed(study)
        titles = [column.title for column in table.columns]
        return [dict(zip(titles, map(plain, row))) for row in table.rows]

    def test_the_page_has_the_table_where_a_study_varies_it(self):
        self.assertNotIn("Memory for time", "".join(self.report(self.results).text))
        self.add("none", 64)
        self.add("full", 16, slower=0.25)
        page = self.report(self.results)
        self.assertIn("Memory for time", "".join(page.text))
        rows = page.table("other factors", "activations saved", "memory saved")
        settings = [row["other factors"] for row in rows]
        self.assertEqual(settings, [f"activation checkpointing {one}" for one in ("none", "full")])
        self.assertEqual(rows[1]["added to the step"], "+25 %")

    def test_savings_and_costs_are_against_the_same_case_without(self):
        keeps = self.add("none", 64)
        self.add("full", 16, slower=0.25)
        self.add(2, 48, slower=-0.05)
        none, full, two = self.rows()
        for row, setting in ((none, "none"), (full, "full"), (two, "2")):
            self.assertTrue(row["case"].endswith(f"-{setting}"), row)
            self.assertEqual(row["other factors"], f"activation checkpointing {setting}")
        self.assertEqual(
            [none[title] for title in ("activations", "activations saved", "added to the step")],
            ["64.0 MiB", "–", "–"],
        )
        self.assertEqual(full["activations"], "16.0 MiB")
        self.assertEqual(full["activations saved"], "48.0 MiB (75 %)")
        self.assertEqual(two["activations saved"], "16.0 MiB (25 %)")
        of_all = 48 * MIB / keeps["memory"]["planned_bytes"]
        self.assertEqual(full["memory saved"], f"48.0 MiB ({100 * of_all:.0f} %)")
        self.assertEqual((full["added to the step"], full["added, predicted"]), ("+25 %", "+50 %"))
        self.assertEqual(two["added to the step"], "−5 %")

    def test_more_memory_than_without_is_a_negative_saving(self):
        self.add("none", 64)
        self.add(2, 80)
        row = self.rows()[1]
        self.assertEqual(row["activations saved"], "−16.0 MiB (−25 %)")

    def test_only_cases_that_agree_in_all_else_are_compared(self):
        other = self.add("none", 64)
        other["factors"]["microbatches"] = 4
        write_case(self.results, other)
        self.add("full", 16)
        self.assertEqual(self.rows(), [])

    def test_without_a_case_that_keeps_all_nothing_is_compared(self):
        self.add("full", 16)
        self.add(2, 48)
        self.assertEqual(self.rows(), [])

    def test_a_case_that_does_not_fit_is_compared_by_its_plan(self):
        absent = {"step_seconds": None, "samples_per_second": None}
        self.add("none", 64, status="oom", reason="needs 1 GiB", **absent)
        self.add("full", 16)
        none, full = self.rows()
        self.assertEqual((none["step"], none["activations"]), ("–", "64.0 MiB"))
        self.assertEqual(full["activations saved"], "48.0 MiB (75 %)")
        self.assertEqual((full["added to the step"], full["added, predicted"]), ("–", "–"))

    def test_a_case_that_failed_is_not_said_to_save(self):
        self.add("none", 64)
        self.add("full", 16, status="failed", reason="it broke")
        self.assertEqual(self.rows(), [])

    def test_a_slow_machine_in_some_rounds_is_no_cost(self):
        keeps, full = self.add("none", 64), variant(self.base, "full", 16, 0.25)
        for case in (keeps, full):
            for one in case["rounds"][:6]:
                one["seconds"] *= 3
        # Its other rounds are the median ones of one case only.
        keeps["rounds"][5]["seconds"] /= 3
        for case in (keeps, full):
            write_case(self.results, case)
        self.assertEqual(self.rows()[1]["added to the step"], "+25 %")

    def test_rounds_of_different_launches_are_not_compared(self):
        self.add("none", 64)
        elsewhere = [{**one, "launch": "another"} for one in self.base["rounds"]]
        self.add("full", 16, rounds=elsewhere)
        self.assertEqual(self.rows()[1]["added to the step"], "–")

    def test_times_of_different_builds_are_not_compared(self):
        self.add("none", 64)
        self.add("full", 16)
        for row in self.rows(ratios=False):
            self.assertNotIn("added to the step", row)
            self.assertNotIn("added, predicted", row)


if __name__ == "__main__":
    unittest.main()
