# SPDX-License-Identifier: Apache-2.0
"""The sentences: which case is fastest, why the others are slower, and the caveats."""

import re
import unittest

from support import WithDirectory, change_json, quietly, read_json

# isort: split
import make_fixture
from report import answer, figures, numbers
from report.contents import Points
from report.drawing import NothingToShow
from report.study import Study

FIRST = f"launches/{make_fixture.FIRST}.json"


def sentences(blocks):
    return [said for block in blocks for said in (block.points if isinstance(block, Points) else [block.text])]


class Sentences(WithDirectory):
    def study(self, results=None):
        with quietly():
            study = Study(results or self.fixture)
        study.compare()
        return study

    def case_file(self, results, **factors):
        """Returns the result of the one case with these factors."""
        for file in sorted(results.glob("cases/*/result.json")):
            if factors.items() <= read_json(file)["factors"].items():
                return file
        raise AssertionError(f"no case with {factors}")

    def caveats(self, change, file):
        """Returns the caveats that a change of a file adds."""
        results = self.copy()
        before = sentences([answer.caveats(self.study(results))])
        change_json(results / file, change)
        return [said for said in sentences([answer.caveats(self.study(results))]) if said not in before]

    def test_each_work_has_its_answer(self):
        head, small, large = sentences(answer.blocks(self.study()))
        self.assertEqual(head, "The study has 2 amounts of work. Only cases that do the same work are compared.")
        self.assertIn("global batch 2,048: zero2 on data=8 is the fastest of 12 measured cases", large)
        self.assertIn("global batch 256: tensor on model=8 is the fastest of 22 measured cases", small)

    def test_ties_are_no_reasons_and_have_intervals(self):
        study = self.study()
        tie = "global batch 2,048: hybrid on data=2,fsdp=4"
        (said,) = [one for one in sentences([answer.ties(study)]) if one.startswith(tie)]
        fewer, middle, low, high = re.search(
            r"fsdp=4: 1,1\d\d samples/s, ([\d.]+) % fewer; corrected round by round, "
            r"([\d.]+) × \[([\d.]+), ([\d.]+)\] the time for a sample\.$", said).groups()  # fmt: skip
        self.assertTrue(float(low) <= float(middle) <= float(high))
        self.assertLess(float(low), 1.03)
        self.assertLess(float(fewer), 100 * (float(high) - 1))
        self.assertEqual([one for one in sentences([answer.reasons(study)]) if one.startswith(tie)], [])
        for work in study.works:
            rival = max((case for case in work.measured if case is not work.best and not case.tied),
                        key=lambda case: case.samples_per_second)  # fmt: skip
            (first,) = [one for one in sentences(answer.blocks(study)) if one.startswith(f"{work.title}: ")]
            self.assertIn(f"The next that is slower beyond doubt is {rival.name}: ", first)
            self.assertEqual("2 cases cannot be told apart from it." in first, work.title == "global batch 2,048")

    def test_what_to_try_next_has_not_been_tried(self):
        results = self.copy()
        study = self.study(results)
        said = sentences([answer.untried(study)])
        self.assertEqual(len(said), 2)
        self.assertIn("zero1 on data=4,model=2, microbatches 1: 100 ms a step is predicted. For zero2 on data=8, the "
                      "fastest case (global batch 2,048), the prediction is 150 ms, 1.50 × as long.", said)  # fmt: skip
        mesh = {"strategy": "zero1", "mesh": "data=4,model=2"}
        change_json(self.case_file(results, strategy="zero1", mesh="data=4", global_batch=2048),
                    lambda result: result["factors"].update(mesh))  # fmt: skip
        change_json(results / "study.json", lambda study: study.update(cases=[]))
        self.assertEqual(len(sentences([answer.untried(self.study(results))])), 1)

    def test_the_reason_is_said_if_nothing_is_predicted(self):
        results = self.copy()
        for launch in results.glob("launches/*.json"):
            change_json(launch, lambda content: content.update(
                untried=[{"fastest": one["fastest"], "unknown": "it is busy"} for one in content["untried"]]))  # fmt: skip
        with self.assertRaisesRegex(NothingToShow, "^it is busy .global batch 256, global batch 2,048.$"):
            answer.untried(self.study(results))

    def test_ratios_follow_from_the_numbers_beside_them(self):
        for said in sentences(answer.blocks(self.study()))[1:3]:
            number = r"([\d,.]+) samples/s"
            own, ratio, base = re.search(rf"cases: {number}.* That is ([\d.]+) × the {number}", said).groups()
            own, base = (float(text.replace(",", "")) for text in (own, base))
            self.assertAlmostEqual(float(ratio), own / base, delta=0.006)
            efficiency, ranks, first = re.search(r"efficiency of (\d+) % on (\d+) ranks against (\d+)", said).groups()
            self.assertAlmostEqual(int(efficiency), 100 * own / base * int(first) / int(ranks), delta=0.6)

    def test_phases_explain_the_whole_difference(self):
        """The instrumented steps took four times as long, which says nothing about the step."""
        results = self.copy()
        slow = self.case_file(results, strategy="data", mesh="data=8", global_batch=2048)

        def change(result):
            result["breakdown"]["idle"]["mean_rank_seconds"] += 0.9
            for phase in result["breakdown"].values():
                if isinstance(phase, dict):
                    phase["mean_rank_seconds"] *= 4
            result["step_seconds"]["median"] += 0.9
            result["samples_per_second"] = 2048 / result["step_seconds"]["median"]

        change_json(slow, change)
        study = self.study(results)
        (said,) = [text for text in sentences([answer.reasons(study)]) if "2,048: data on data=8" in text]
        self.assertRegex(said, r"It spends more on idle \(\+[89]\d\d ms\)\.$")
        for case in study.measured:
            self.assertAlmostEqual(sum(case.phases.values()), case.step())

    def test_a_strategy_that_never_ran_has_its_reason(self):
        results = self.copy()
        for file in results.glob("cases/hybrid-*/result.json"):
            change_json(file, lambda r: r.update({"status": "failed", "reason": "it broke"}))
        said = sentences([answer.reasons(self.study(results))])
        self.assertIn("global batch 256: hybrid was not measured on 8 ranks (2 failed): it broke.", said)
        self.assertNotIn("256: tensor was not measured", "".join(said), "it is the fastest; another of its cases is skipped")

    def test_types_have_their_own_tolerance(self):
        results = self.copy()
        one = self.case_file(results, strategy="data", mesh="data=8", global_batch=256)
        change_json(one, lambda result: result["loss"].update(tolerance=2**-8))
        self.assertIn("within the tolerance of 1e-05 or 0.00391 (dashed)", figures.losses(self.study(results)).caption)

    def test_sound_results_have_few_caveats(self):
        said = sentences([answer.caveats(self.study())])
        self.assertEqual(len(said), 3)
        self.assertIn("varied by 4 % between rounds", said[0])
        self.assertIn("2 cases gave wrong results", said[1])
        self.assertIn("9 cases had more ranks than processors", said[2])

    def test_caveats_of_a_case(self):
        file = self.case_file(self.fixture, strategy="fsdp", mesh="data=4", global_batch=256).relative_to(self.fixture)
        for change, words in (
            (lambda result: result["step_seconds"].update({"ci95_low": None}), "1 case had too few rounds"),
        ):
            said = [one for one in self.caveats(change, file) if one.startswith("1 case")]
            self.assertEqual([one.partition(":")[0][: len(words)] for one in said], [words])
            self.assertTrue(said[0].endswith(": fsdp on data=4 (global batch 256)."), said)

    def test_caveats_of_ratios(self):
        name = self.case_file(self.fixture, strategy="fsdp", mesh="data=4", global_batch=256).parent.name
        for key, value, words in (("mfu", 1.2, "1 case had an MFU above 100 %"),
                                  ("efficiency", 1.3, "1 case had an efficiency far above 100 %")):  # fmt: skip
            (said,) = self.caveats(lambda summary: [row.update({key: value}) for row in summary["cases"]
                                                    if row["id"] == name], "summary.json")  # fmt: skip
            self.assertIn(words, said)

    def test_one_rank_that_is_slower_than_another(self):
        file = self.case_file(self.fixture, strategy="fsdp", mesh="data=1", global_batch=256)
        change = lambda result: result["step_seconds"].update({"median": 1.8})  # noqa: E731
        (said,) = self.caveats(change, file.relative_to(self.fixture))
        self.assertRegex(said, r"took from 1\.45 s to 1\.80 s a step. Differences of 24 % are noise")

    def test_a_machine_that_drifts(self):
        change = lambda summary: summary["machine"].update({"drift": 0.35})  # noqa: E731
        (said,) = self.caveats(change, "summary.json")
        self.assertIn("varied by 35 % between rounds", said)
        self.assertIn("tell a difference of 3.0 % from none", said)

    def test_sources_with_uncommitted_changes(self):
        (said,) = self.caveats(lambda launch: launch["provenance"].update({"git_dirty": True}), FIRST)
        self.assertIn("uncommitted changes", said)


class Numbers(unittest.TestCase):
    def test_formats(self):
        for value, text in ((0, "0"), (1234.5, "1,234"), (0.012345, "0.0123"), (99.96, "100.0"),
                            (1.5e-7, "1.50e-07"), (None, "–"), (float("nan"), "–")):  # fmt: skip
            self.assertEqual(numbers.significant(value), text)
        self.assertEqual(numbers.seconds(0.0123), "12.3 ms")
        self.assertEqual(numbers.seconds(-4.5e-7), "-450 ns")
        self.assertEqual(numbers.bytes_(1023), "1023 B")
        self.assertEqual(numbers.bytes_(3 * 2**20), "3.00 MiB")
        self.assertEqual(numbers.between(0.0123, 0.0121, 0.0125), "12.30 ms [12.10, 12.50]")
        self.assertEqual(numbers.between(1.24, None, 1.3, numbers.RATIO, 3), "1.24 ×")


if __name__ == "__main__":
    unittest.main()
