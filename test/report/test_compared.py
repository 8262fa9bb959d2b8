# SPDX-License-Identifier: Apache-2.0
"""Two directories make one page with the ratio of each case."""

import random
import unittest

from support import Page, WithDirectory, change_json, results_of, run_report


class Compared(WithDirectory):
    def setUp(self):
        self.before = self.copy(lambda result: result["factors"]["global_batch"] == 256)

    def after(self, factor, change=lambda launch: None):
        """Returns results whose rounds took a factor as long, but for those of `data`."""
        results, noise = self.copy(lambda result: result["factors"]["global_batch"] == 256), random.Random(1)
        for file in results.glob("cases/*/result.json"):
            change_json(file, lambda result: [
                one.update(seconds=one["seconds"] * noise.uniform(0.99, 1.01) * (1 if result["factors"]["strategy"] == "data" else factor))
                for one in result["rounds"] or []])  # fmt: skip
        for file in results.glob("launches/*.json"):
            change_json(file, change)
        return results.rename(results.parent / "after")

    def compared(self, after, *options):
        output = self.scratch / "compared"
        done = run_report(self.before, after, "-o", output, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 directories compared", done.stdout)
        self.assertTrue((output / "figures" / "ratios-after.png").exists())
        return Page((output / "report.html").read_text(encoding="utf-8"))

    def test_each_case_has_a_ratio_with_an_interval(self):
        page = self.compared(self.after(1.25))
        rows = page.table("case", "step: results", "step: after", "ratio [95 % CI]")
        measured = [row for row in rows if row["ratio [95 % CI]"] != "–"]
        self.assertEqual(len(measured), sum(result["status"] == "ok" for result in results_of(self.before).values()))
        for row in measured:
            wanted, verdict = (1, "indistinguishable") if row["case"].startswith(("data", "1 rank")) else (1.25, "slower")
            value, low, high = (float(number.strip("×[],")) for number in row["ratio [95 % CI]"].replace("×", "").split())
            self.assertTrue(low <= value <= high and abs(value / wanted - 1) < 0.02, row)
            self.assertEqual(row[""], verdict)
        self.assertIn("18 slower", page.text)

    def test_other_machines_are_not_corrected_for(self):
        """A machine that is twice as fast, also in its fixed kernels, halves the steps."""
        def machine(launch):
            for kind in launch["provenance"]["placement"]:
                kind["cpu_model"] = "Faster CPU"

        after = self.after(1, machine)
        for file in after.glob("cases/*/result.json"):
            change_json(file, lambda result: [
                (one.update(seconds=one["seconds"] / 2), one["machine"].update(product_seconds=5e-4, memory_seconds=2e-3))
                for one in result["rounds"] or []])  # fmt: skip
        page = self.compared(after)
        self.assertIn("as measured, because the machines differ", page.text)
        verdicts = {row[""] for row in page.table("case", "ratio [95 % CI]")}
        self.assertEqual(verdicts, {"faster", "invalid → invalid", "skipped → skipped"})
        self.assertIn("Faster CPU", page.text)

    def test_too_few_rounds_have_no_verdict(self):
        after = self.after(1.25)
        for file in after.glob("cases/fsdp-*/result.json"):
            change_json(file, lambda result: result.update(rounds=(result["rounds"] or [])[:3]))
        rows = self.compared(after).table("case", "ratio [95 % CI]")
        found = [row for row in rows if row["case"].startswith("fsdp")]
        self.assertEqual({row[""] for row in found}, {"too few rounds (10 and 3)"})
        self.assertFalse(any("[" in row["ratio [95 % CI]"] for row in found))

    def test_cases_of_different_work_have_no_ratio(self):
        after = self.after(1.25)
        for file in after.glob("cases/fsdp-*/result.json"):
            change_json(file, lambda result: result["config"]["model"].update(widths=[4, 8, 1]))
        rows = self.compared(after).table("case", "ratio [95 % CI]")
        found = [row for row in rows if row["case"].startswith("fsdp")]
        self.assertEqual({(row[""], row["ratio [95 % CI]"]) for row in found}, {("different work", "–")})

    def test_directories_without_a_case_in_common_are_refused(self):
        other = self.copy(lambda result: result["factors"]["global_batch"] == 2048)
        error = self.fails(self.before, other, "-o", self.scratch / "none")
        self.assertIn("no case is in two of them", error)


if __name__ == "__main__":
    unittest.main()
