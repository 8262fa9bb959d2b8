# SPDX-License-Identifier: Apache-2.0
"""The sentences: which case is fastest, if the times tell, the caveats, and what to try next."""

import re
import unittest

from support import WithDirectory, change_json, quietly, read_json

# isort: split
import make_fixture
from report import answer, numbers
from report.contents import Points
from report.predictions import predictions
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

    def without_winner(self, change):
        """Returns the sentences of a study that names no winner."""
        results = self.copy(lambda result: result["factors"]["global_batch"] == 256)
        change_json(results / "summary.json", change)
        study = self.study(results)
        banner, *said = sentences(answer.blocks(study))
        self.assertTrue(banner.startswith("Times are not reliable: "), banner)
        said += predictions(study).points
        self.assertEqual([one for one in said if re.search("fast|slow|×", one)], [])
        self.assertEqual([case.id for case in study.measured if case.behind], [])
        self.assertIn("On 8 ranks: 6 cases with 722 to 941 samples/s.", said)
        return banner

    def test_each_number_of_ranks_has_a_sentence_with_an_interval(self):
        first, *said = sentences(answer.blocks(self.study()))
        self.assertEqual(first, "The study has 2 amounts of work. Only cases that do the same work are compared.")
        self.assertEqual([one.partition(" rank")[0] for one in said],
                         ["On 1", "On 2", "On 4", "On 8", "On 2", "On 4", "On 8"])  # fmt: skip
        self.assertEqual(said[0], "On 1 rank 5 cases are one program: 176 samples/s.")
        self.assertRegex(said[3], r"^On 8 ranks tensor is 1\.10 × \[1\.\d\d, 1\.\d\d\] faster than fsdp: 941 samples/s; corrected for the speed of the machine, "
                                  r"5\.36 × \[5\.32, 5\.39\] those of 1 rank, an efficiency of 67 %\.$")  # fmt: skip
        self.assertIn("On 8 ranks nothing differs significantly: zero2, hybrid and data reach ", said[6])

    def test_cases_of_different_launches_are_not_compared(self):
        results = self.copy()
        change_json(results / "summary.json",
                    lambda summary: [row.update(over_fastest_on_ranks_low=None) for row in summary["cases"]])  # fmt: skip
        self.assertIn("On 8 ranks nothing can be called faster, for want of 6 rounds in a common launch: ",
                      " ".join(sentences(answer.blocks(self.study(results)))))  # fmt: skip

    def test_speed_ups_that_are_not_corrected_do_not_say_so(self):
        results = self.copy()
        change_json(results / "summary.json", lambda summary: [row.update(corrected_speedup=None) for row in summary["cases"]])
        self.assertRegex(sentences(answer.blocks(self.study(results)))[4], r": 941 samples/s, 5\.36 × \[[\d., ]*\] those of 1 rank, an ")

    def test_a_fastest_case_is_faster_than_all_others_beyond_doubt(self):
        study = self.study()
        for work in study.works:
            for ranks, (best, *others) in work.by_ranks().items():
                (said,) = [one for one in sentences([block for block in answer.blocks(study)
                                                     if getattr(block, "title", "").lower() == work.title])
                           if one.startswith(f"On {ranks} rank")]  # fmt: skip
                beyond_doubt = bool(others) and min(case.behind.low or 0 for case in others) >= 1.03
                self.assertEqual(f"{best.strategy} is" in said and "differ" not in said, beyond_doubt, said)

    def test_no_case_is_the_fastest_if_times_are_unreliable(self):
        said = {"timing_reliable": False, "problem": "it is a bad day"}
        self.assertIn("it is a bad day", self.without_winner(lambda summary: summary["machine"].update(said)))

    def test_absurd_intervals_are_absent_and_said_to_be(self):
        results = self.copy()
        file = self.case_file(results, strategy="fsdp", mesh="data=4", global_batch=256)
        change_json(file, lambda result: result["step_seconds"].update(ci95_low=1e-7, ci95_high=300817.0))
        study = self.study(results)
        (said,) = [one for one in sentences([answer.caveats(study)]) if "no interval" in one]
        self.assertIn("1 case had no interval (rounds or launches differ too much for an interval)", said)
        self.assertIn("fsdp on data=4", said)
        (case,) = [case for case in study.measured if case.id == file.parent.name]
        self.assertIsNone(case.interval)

    def test_phases_explain_the_whole_step(self):
        """The instrumented steps took four times as long, which says nothing about the step."""
        results = self.copy()

        def change(result):
            for phase in result["breakdown"].values():
                if isinstance(phase, dict):
                    phase["mean_rank_seconds"] *= 4

        change_json(self.case_file(results, strategy="data", mesh="data=8", global_batch=2048), change)
        for case in self.study(results).measured:
            self.assertAlmostEqual(sum(case.phases.values()), case.step())

    def test_sound_results_have_few_caveats(self):
        said = sentences([answer.caveats(self.study())])
        self.assertEqual(len(said), 3)
        self.assertIn("varied by 4 % between rounds", said[0])
        self.assertIn("2 cases gave wrong results", said[1])
        self.assertIn("9 cases had more ranks than processors", said[2])

    def test_caveats_of_ratios(self):
        name = self.case_file(self.fixture, strategy="fsdp", mesh="data=4", global_batch=256).parent.name
        for change, words in (({"mfu": 1.2}, "1 case had an MFU above 100 %"),
                              ({"efficiency": 1.3}, "1 case had an efficiency far above 100 %")):  # fmt: skip
            (said,) = self.caveats(lambda summary: [row.update(change) for row in summary["cases"]
                                                    if row["id"] == name], "summary.json")  # fmt: skip
            self.assertIn(words, said)

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
        self.assertEqual((numbers.times(5), numbers.times(12345.6)), ("5 ×", "12,346 ×"))
        self.assertEqual([numbers.percent(value) for value in (0, 0.0012, 0.012, 0.996)], ["0 %", "0.1 %", "1 %", "100 %"])
        self.assertEqual(numbers.between(0.0123, 0.0121, 0.0125), "12.30 ms [12.10, 12.50]")
        self.assertEqual(numbers.between(1.24, None, 1.3, numbers.RATIO, 3), "1.24 ×")


if __name__ == "__main__":
    unittest.main()
