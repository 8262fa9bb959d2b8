# SPDX-License-Identifier: Apache-2.0
"""The page, its tables and its figures show the numbers of the fixture."""

import json
import re
import unittest
import xml.etree.ElementTree as ElementTree
from collections import Counter

from support import Page, WithDirectory, read_json, results_of, run_report

FIGURES = [f"{name}-{work}" for name in ("bytes", "efficiency", "memory", "node-hours", "predicted", "speedup", "time")
           for work in (1, 2)]  # fmt: skip


class ThePage(WithDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.output = cls.scratch / "report"
        done = run_report(cls.fixture, "-o", cls.output)
        assert done.returncode == 0, done.stderr
        cls.messages = done.stderr
        cls.source = (cls.output / "report.html").read_text(encoding="utf-8")
        cls.page = Page(cls.source)
        cls.markdown = (cls.output / "RESULTS.md").read_text(encoding="utf-8")
        cls.results = results_of(cls.fixture)
        cls.summary = {row["id"]: row for row in read_json(cls.fixture / "summary.json")["cases"]}

    def test_the_fixture_is_sound_and_holds_every_status_and_strategy(self):
        self.assertEqual(self.messages, "")
        statuses = {result["status"] for result in self.results.values()}
        self.assertEqual(statuses, {"ok", "invalid", "oom", "timeout", "failed", "skipped"})
        self.assertGreater(len(self.summary), len(self.results))  # two are pending
        strategies = {result["factors"]["strategy"] for result in self.results.values()}
        self.assertEqual(strategies, {"data", "zero1", "zero2", "fsdp", "hybrid", "tensor"})

    def test_ids_are_unique_and_references_resolve(self):
        twice = [name for name, number in Counter(self.page.ids).items() if number > 1]
        self.assertEqual(twice, [])
        inner = [name[1:] for name in self.page.references if name.startswith("#")]
        inner += re.findall(r"url\(#([^)]+)\)", self.source)
        self.assertGreater(len(inner), 50)
        self.assertEqual(set(inner) - set(self.page.ids), set())

    def test_nothing_is_loaded(self):
        outside = [name for name in self.page.references if not name.startswith(("#", "data:,"))]
        self.assertEqual(outside, [])
        self.assertNotIn("@import", self.source)
        self.assertNotIn("script", self.page.tags)
        self.assertEqual(set(re.findall(r"url\((.)", self.source)), {"#"})

    def test_other_libraries_have_a_row_for_each_model(self):
        rows = self.page.table("model", "our step", "PyTorch eager", "JAX jit")
        self.assertEqual([row["model"] for row in rows], ["mlp", "transformer", "vae", "fno", "pinn"])
        for row in rows:
            self.assertEqual([row[key] for key in ("our step", "PyTorch eager", "PyTorch compiled", "JAX jit")],
                             ["20.0 ms", "1.50 × [1.35, 1.65]", "2.00 × [1.80, 2.20]", "2.50 × [2.25, 2.75]"])  # fmt: skip
        self.assertIn("the median of 3 rounds", self.source)
        self.assertIn("JAX, PyTorch, Tessera, on Made-up CPU 8 cores with 1 thread per rank.", self.markdown)

    def test_spoiled_files_of_other_libraries_are_reported(self):
        for wrong in ({"peers": 3}, {"peers": [{}, {"ratio_to_tessera": 2}, {"ratio_to_tessera": 2, "rounds": 1, "name": []}]}):
            results = self.copy()
            (results / "peers.json").write_text(json.dumps({"schema_version": 1, **wrong}), encoding="utf-8")
            self.report(results)
            self.assertIn("peers.json: peers", self.stderr)

    def found(self):
        """Returns the rows of the table of results by strategy, mesh and work."""
        rows = self.page.table("strategy", "mesh", "work", "samples/s")
        return {(row["strategy"], row["mesh"], row["work"]): row for row in rows}

    def test_results_are_those_of_the_fixture(self):
        ok = {name: r for name, r in self.results.items() if r["status"] == "ok"}
        rows = self.found()
        self.assertEqual(len(rows), len(ok))
        self.assertEqual(sum(row["time over fastest [95 % CI]"] == "one program with data" for row in rows.values()), 4)
        for name, result in ok.items():
            factors, compute = result["factors"], result["compute"]
            row = rows[factors["strategy"], factors["mesh"], f"global batch {factors['global_batch']:,}"]
            self.assertEqual(row["ranks"], str(factors["ranks"]))
            self.assertEqual(row["nodes"], "2" if factors["ranks"] == 8 else "1")
            self.assertEqual(row["across nodes"], factors["mesh"].split("=")[0] if factors["ranks"] == 8 else "–")
            median, unit, low, high = re.match(
                r"([\d.]+) (s|ms) \[([\d.]+), ([\d.]+)\]", row["step: median [95 % CI]"]
            ).groups()
            for shown, key in ((median, "median"), (low, "ci95_low"), (high, "ci95_high")):
                seconds = float(shown) * (1 if unit == "s" else 1e-3)
                self.assertAlmostEqual(seconds / result["step_seconds"][key], 1, delta=6e-4)
            speed = float(row["samples/s"].replace(",", ""))
            self.assertAlmostEqual(speed / result["samples_per_second"], 1, delta=6e-4)
            corrected = float(row["corrected speed-up [95 % CI]"].split()[0])
            self.assertAlmostEqual(corrected / self.summary[name]["corrected_speedup"], 1, delta=6e-3)
            utilisation = 100 * compute["flops_per_second"] / compute["gemm_peak_flops_per_second"]
            self.assertAlmostEqual(float(row["MFU"].split()[0]), utilisation, delta=0.6)
            memory = result["memory"]["measured_bytes"] / 2**20
            self.assertAlmostEqual(float(row["memory"].split()[0]) / memory, 1, delta=6e-3)

    def test_ratios_follow_from_the_numbers_beside_them(self):
        def value(row, title):
            return float(row[title].split()[0].replace(",", ""))

        base = {"global batch 256": ("data", "data=1"), "global batch 2,048": ("zero1", "data=2")}
        rows = self.found()
        for (_, _, work), row in rows.items():
            first = rows[(*base[work], work)]
            speedup = value(row, "samples/s") / value(first, "samples/s")
            efficiency = 100 * speedup * value(first, "ranks") / value(row, "ranks")
            self.assertAlmostEqual(value(row, "corrected efficiency"), efficiency, delta=1.2)
            ends = [float(end) for end in re.findall(r"[\d.]+", row["corrected speed-up [95 % CI]"])]
            self.assertTrue(ends[1] <= ends[0] <= ends[2], row)

    def test_launches_of_one_program_on_one_machine_do_not_differ(self):
        self.assertNotIn("Where measured cases differ", self.markdown)
        self.assertIn("rank.process", self.markdown)

    def test_the_fastest_case_on_each_number_of_ranks(self):
        rows = self.page.table("ranks", "work", "fastest", "node-hours for a million samples")
        self.assertEqual([row["ranks"] for row in rows], ["1", "2", "4", "8", "2", "4", "8"])
        self.assertEqual((rows[0]["fastest"], rows[3]["fastest"]), ("1 rank", "tensor on model=8"))
        self.assertTrue(rows[-1]["fastest"].startswith("no significant difference: zero2 on data=8; "))
        for row in rows:
            hours = 1e6 * int(row["nodes"]) / float(row["samples/s"].replace(",", "")) / 3600
            self.assertAlmostEqual(float(row["node-hours for a million samples"]) / hours, 1, delta=6e-3)

    def test_questions_are_answered_in_order(self):
        titles = [title for title in re.findall(r"<h2>(.*?)</h2>", self.source)]
        self.assertEqual(titles, ["Does it scale?", "Where does the time go?", "What does it cost?", "Is the prediction good?",
                                  "Other libraries", "All cases", "How it was measured", "Provenance", "Left out"])  # fmt: skip
        self.assertLess(self.source.index("On 8 ranks tensor is"), self.source.index("<h2>"))

    def test_cases_that_were_not_measured_have_a_status_and_a_reason(self):
        rows = self.page.table("case", "status", "reason")
        wanted = [self.results.get(name, {"status": "pending", "reason": "not run yet"}) for name in self.summary]
        wanted = [result for result in wanted if result["status"] != "ok"]
        self.assertEqual(sorted(row["status"] for row in rows), sorted(result["status"] for result in wanted))
        reasons = {row["reason"] for row in rows}
        self.assertEqual({result["reason"] for result in wanted if result["reason"]} - reasons, set())
        cells = {cell for row in [*rows, *self.found().values()] for cell in row.values()}
        self.assertFalse(cells & {"", "0", "None", "nan"})

    def test_markdown_holds_the_same(self):
        plain = re.sub(r"\\([\\`*_|<>\[\]#~])", r"\1", self.markdown)
        texts = {cell for table in self.page.tables for row in table for cell in row}
        texts |= set(re.findall(r"<(?:li|h2|h3|figcaption)>([^<&]*)<", self.source.replace("\u00a0", " ")))
        self.assertEqual([text for text in texts if " ".join(text.split()) not in plain], [])
        pictures = re.findall(r"\]\((figures/.*?)\)", self.markdown)
        self.assertEqual(len(pictures), len(FIGURES))
        self.assertTrue(all((self.output / path).exists() for path in pictures))
        tables = re.findall(r"(?:^\|.*\n)+", self.markdown, flags=re.MULTILINE)
        self.assertEqual(len(tables), len(self.page.tables))
        for block, table in zip(tables, self.page.tables):
            self.assertEqual(len(block.splitlines()), len(table) + 1)
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            self.assertEqual(widths, {len(table[0]) + 1}, block[:200])
        self.assertEqual(self.markdown.count("**fastest**"), 1)

    def test_figures_are_pictures(self):
        names = sorted(path.name for path in (self.output / "figures").iterdir())
        self.assertEqual(names, sorted(f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")))
        for name in FIGURES:
            self.assertEqual((self.output / "figures" / f"{name}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            root = ElementTree.parse(self.output / "figures" / f"{name}.svg").getroot()
            texts = ["".join(part.itertext()).strip() for part in root.iter() if part.tag.endswith("}text")]
            self.assertGreater(len(texts), 5, name)
            self.assertEqual([text for text in texts if text in ("", "–") or "$" in text], [], name)

    def test_output_is_the_same_every_time(self):
        again = self.scratch / "again"
        self.assertEqual(run_report(self.fixture, "-o", again).returncode, 0)
        files = sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
        self.assertEqual(len(files), 2 + 2 * len(FIGURES))
        for file in files:
            self.assertTrue((again / file).read_bytes() == (self.output / file).read_bytes(), file)


if __name__ == "__main__":
    unittest.main()
