# SPDX-License-Identifier: Apache-2.0
"""The sentences: who wins, why the others lose, and what to be careful about."""

import unittest

from support import WithDirectory, change_json, plain, quietly, read_json

# isort: split
import make_fixture
from report import answer, doubts, numbers, placement
from report import document as doc
from report.build import build
from report.provenance import flatten
from report.study import Study

FIRST = f"launches/{make_fixture.FIRST}.json"


def sentences(blocks):
    found = []
    for block in blocks:
        if isinstance(block, doc.Bullets):
            found += [plain(item) for item in block.items]
        elif isinstance(block, doc.Paragraph):
            found.append(plain(block.text))
    return found


class Sentences(WithDirectory):
    def study(self, results=None):
        with quietly():
            return Study(results or self.fixture)

    def case_file(self, results, **factors):
        """The result of the one case with these factors."""
        for file in sorted(results.glob("cases/*/result.json")):
            if factors.items() <= read_json(file)["factors"].items():
                return file
        raise AssertionError(f"no case with {factors}")

    def doubts(self, change, file):
        results = self.copy()
        before = sentences(doubts.blocks(self.study(results)))
        change_json(results / file, change)
        after = sentences(doubts.blocks(self.study(results)))
        return [sentence for sentence in after if sentence not in before]

    def test_the_reason_is_what_takes_longer(self):
        results = self.copy()
        slow = self.case_file(results, strategy="data", mesh="data=8", global_batch=2048)

        def said_if(idle, slower):
            """What is said of a step that is so much slower, and as much more idle, than in the fixture."""

            def change(result):
                result["breakdown"]["idle"]["mean_rank_seconds"] = idle
                for key in ("median", "ci95_low", "ci95_high"):
                    result["step_seconds"][key] += slower
                result["samples_per_second"] = 2048 / result["step_seconds"]["median"]

            change_json(slow, change)
            with quietly():
                study = Study(results)
                blocks = answer.why_others_lose(study, answer.best_case(study))
            return next(text for text in sentences(blocks) if text.startswith("data on"))

        self.assertRegex(said_if(0.9, 0.9), r"data=8: .*; it spends more on idle \(\+8\d\d ms\)\.$")
        # A difference that the instrumented run does not show is not explained by it.
        self.assertRegex(
            said_if(0.1, 20.0), r"on data=8, it takes 2\d\.\d s and was not that much slower"
        )

    def test_a_strategy_that_never_ran_is_told_of(self):
        results = self.copy()
        for file in results.glob("cases/hybrid-*/result.json"):
            change_json(file, lambda r: r.update({"status": "failed", "reason": "it broke"}))
        study = self.study(results)
        blocks = answer.why_others_lose(study, answer.best_case(study))
        said = next(text for text in sentences(blocks) if text.startswith("hybrid"))
        self.assertEqual(said, "hybrid: no measurement of this work (3 failed): it broke.")

    def test_what_cannot_be_told_apart(self):
        study = self.study()
        best = answer.best_case(study)
        said = plain(answer.lead(study, best))
        self.assertIn(
            "are zero2 on data=8, hybrid on data=2,fsdp=4, which these measurements cannot tell "
            "apart:",
            said,
        )
        self.assertIn("a step for the first", said)

    def test_the_fixture_leaves_little_to_doubt(self):
        said = sentences(doubts.blocks(self.study()))
        self.assertEqual(len(said), 1)
        self.assertIn("2 cases gave wrong results", said[0])

    def test_ranks_that_share_processors(self):
        def share(launch):
            launch["provenance"]["placement"][0]["cpu_sets"] = ["0-1"]

        (said,) = self.doubts(share, FIRST)
        self.assertIn("more ranks than processors (up to 8 on 2 processors)", said)

    def test_peaks_that_fall(self):
        def fall(launch):
            launch["calibration"][3]["gemm_flops_per_second"] = 1.0e10

        (said,) = self.doubts(fall, FIRST)
        self.assertIn("each reached 10.0 GFLOP/s", said)
        self.assertIn("where one alone reached 41.0 GFLOP/s: 24 %", said)

    def test_an_utilisation_that_cannot_be(self):
        file = self.case_file(self.fixture, strategy="fsdp", mesh="data=4", global_batch=256)
        change = lambda result: result["compute"].update({"mfu": 1.2})  # noqa: E731
        (said,) = self.doubts(change, file.relative_to(self.fixture))
        self.assertIn("An MFU above 100 %", said)
        self.assertIn("Seen in fsdp on data=4.", said)

    def test_one_rank_that_is_slower_than_another(self):
        file = self.case_file(self.fixture, strategy="fsdp", mesh="data=1", global_batch=256)
        change = lambda result: result["step_seconds"].update({"median": 1.8})  # noqa: E731
        (said,) = self.doubts(change, file.relative_to(self.fixture))
        self.assertRegex(
            said, r"took from 1\.45 s to 1\.80 s a step: differences of 24 % are noise"
        )

    def test_an_efficiency_that_cannot_be(self):
        def change(summary):
            row = next(row for row in summary["cases"] if row["id"] == summary["best"])
            row["efficiency_low"] = 1.3

        (said,) = self.doubts(change, "summary.json")
        self.assertIn("the baseline was slow", said)
        self.assertIn("zero2 on data=8", said)

    def test_too_few_rounds(self):
        file = self.case_file(self.fixture, strategy="fsdp", mesh="data=4", global_batch=256)
        change = lambda result: result["step_seconds"].update({"ci95_low": None})  # noqa: E731
        (said,) = self.doubts(change, file.relative_to(self.fixture))
        self.assertIn("1 case of 34 had too few rounds", said)

    def test_a_machine_that_drifts(self):
        change = lambda summary: summary["machine"].update({"drift": 0.35})  # noqa: E731
        (said,) = self.doubts(change, "summary.json")
        self.assertIn("varied by 35 % between rounds", said)
        self.assertIn("Differences below 3.0 %", said)

    def test_sources_that_nobody_has(self):
        results = self.copy()
        for name in (make_fixture.FIRST, make_fixture.SECOND):
            file = results / "launches" / f"{name}.json"
            change_json(file, lambda launch: launch["provenance"].update({"git_dirty": True}))
        said = sentences(doubts.blocks(self.study(results)))
        self.assertIn("uncommitted changes", said[-1])
        self.assertTrue(build(self.study(results)))


class Numbers(unittest.TestCase):
    def test_what_people_read(self):
        for value, text in ((0, "0"), (1234.5, "1,234"), (0.012345, "0.0123"), (99.96, "100.0"),
                            (1.5e-7, "1.50e-07"), (None, "–"), (float("nan"), "–")):  # fmt: skip
            self.assertEqual(numbers.significant(value), text)
        self.assertEqual(numbers.seconds(0.0123), "12.3 ms")
        self.assertEqual(numbers.seconds(-4.5e-7), "-450 ns")
        self.assertEqual(numbers.bytes_(1023), "1023 B")
        self.assertEqual(numbers.bytes_(3 * 2**20), "3.00 MiB")
        self.assertEqual(numbers.seconds_between(0.0123, 0.0121, 0.0125), "12.30 ms [12.10, 12.50]")
        self.assertEqual(numbers.power_of_ten(1e-5), "10⁻⁵")
        self.assertEqual(numbers.power_of_ten(2.5e-5), "2.5·10⁻⁵")

    def test_processors(self):
        self.assertEqual(placement.numbered("0-2,7"), [0, 1, 2, 7])
        for text in ("", "a-b", None):
            self.assertEqual(placement.numbered(text), [])

    def test_configuration_by_key(self):
        flat = flatten({"model": {"widths": [1, 2], "mlp": {"bias": True}}, "seed": 1})
        self.assertEqual(flat, {"model.widths": "[1, 2]", "model.mlp.bias": "true", "seed": "1"})


if __name__ == "__main__":
    unittest.main()
