# SPDX-License-Identifier: Apache-2.0
"""The page, its tables and its figures show the numbers of the fixture."""

import json
import re
import unittest
import xml.etree.ElementTree as ElementTree
from collections import Counter

from support import Page, WithDirectory, read_json, results_of, run_report

FIGURES = ("breakdown", "choice-1", "choice-2", "losses", "pareto", "scaling")


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
        self.assertEqual(statuses, {"ok", "invalid", "oom", "timeout", "failed", "skipped", "running"})
        self.assertGreater(len(self.summary), len(self.results))  # one is pending
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
            done = run_report(results, "-o", results / "report")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("peers.json: peers", done.stderr)

    def found(self):
        """Returns the rows of the table of results by strategy, mesh and work."""
        rows = self.page.table("strategy", "mesh", "work", "samples/s")
        return {(row["strategy"], row["mesh"], row["work"]): row for row in rows}

    def rates(self):
        """Returns the rows of the table of FLOP rates by case and work."""
        return {(row["case"], row["work"]): row for row in self.page.table("case", "work", "MFU", "GFLOP/s")}

    def test_results_are_those_of_the_fixture(self):
        ok = {name: r for name, r in self.results.items() if r["status"] == "ok"}
        rows = self.found()
        self.assertEqual(len(rows), len(ok))
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
            breakdown = result["breakdown"]
            share = breakdown["products"]["mean_rank_seconds"] / breakdown["step_seconds"]
            rates = self.rates()[f"{factors['strategy']} on {factors['mesh']}", row["work"]]
            self.assertEqual(rates["GEMM share"], f"{100 * share:.0f} %")
            self.assertAlmostEqual(float(rates["GFLOP/s"]) / compute["flops_per_second"] * 1e9, 1, delta=6e-3)
            memory = result["memory"]["measured_bytes"] / 2**20
            self.assertAlmostEqual(float(row["memory"].split()[0]) / memory, 1, delta=6e-3)

    def test_ratios_follow_from_the_numbers_beside_them(self):
        rows = self.found()
        named = {(f"{row['strategy']} on {row['mesh']}", row["work"]): row for row in rows.values()}

        def value(row, title):
            return float(row[title].split()[0].replace(",", ""))

        for row in rows.values():
            base = named[row["baseline"], row["work"]]
            speedup = value(row, "samples/s") / value(base, "samples/s")
            self.assertAlmostEqual(value(row, "speed-up"), speedup, delta=0.006 * speedup)
            efficiency = 100 * speedup * value(base, "ranks") / value(row, "ranks")
            self.assertAlmostEqual(value(row, "efficiency"), efficiency, delta=0.7)
            ends = [float(end) for end in re.findall(r"[\d.]+", row["corrected speed-up [95 % CI]"])]
            self.assertTrue(ends[1] <= ends[0] <= ends[2], row)
        for key, row in self.rates().items():
            utilisation = 100 * value(row, "GFLOP/s") / value(row, "GEMM peak, GFLOP/s")
            self.assertAlmostEqual(value(row, "MFU"), utilisation, delta=0.7)
            self.assertEqual(row["MFU"], named[key]["MFU"])

    def test_shares_and_differences_in_sentences_follow_from_the_numbers_beside_them(self):
        number = r"([\d,]+(?:\.\d+)?)"
        fewer = re.findall(rf"{number} samples/s(?: \([^)]*\))?, ([\d.]+) % fewer", self.page.text)
        self.assertGreater(len(fewer), 7)
        fastest = [row["samples/s"] for row in self.found().values() if row["standing"] == "fastest"]
        best = [float(text.replace(",", "")) for text in fastest]
        for own, percent in fewer:
            own, percent = float(own.replace(",", "")), float(percent)
            self.assertTrue(any(abs(100 * (1 - own / one) - percent) < 0.06 for one in best), (own, percent))
        predicted = rf"{number} (ms|s) a step is predicted.*?the prediction is {number} (ms|s), {number} × as long"
        times = re.findall(predicted, self.page.text)
        self.assertEqual(len(times), 2)
        for own, unit, fastest, other, ratio in times:
            scale = {"s": 1, "ms": 1e-3}
            self.assertAlmostEqual(float(ratio), float(fastest) * scale[other] / (float(own) * scale[unit]), delta=0.02)

    def test_questions_are_answered_in_order(self):
        titles = [title for title in re.findall(r"<h2>(.*?)</h2>", self.source)]
        self.assertEqual(titles[:4], ["How certain this is", "Why", "What to try next", "Choices"])
        self.assertEqual(titles[-1], "Method")

    def test_every_case_is_listed_with_its_status(self):
        rows = {row["case"]: row for row in self.page.table("case", "status", "reason")}
        self.assertEqual(set(rows), set(self.summary))
        for name, row in rows.items():
            result = self.results.get(name, {"status": "pending", "reason": None})
            self.assertEqual(row["status"], result["status"])
            self.assertEqual(row["samples/s"] == "–", result["status"] != "ok")
            if result["reason"]:
                self.assertEqual(row["reason"], result["reason"])
            for title, cell in row.items():
                self.assertNotIn(cell, ("", "0", "None", "nan"), f"{name}: {title}")

    def test_markdown_holds_the_tables(self):
        plain = re.sub(r"\\([\\`*_|<>\[\]#~])", r"\1", self.markdown)
        cells = {cell for table in self.page.tables for row in table for cell in row}
        self.assertEqual([cell for cell in cells if " ".join(cell.split()) not in plain], [])
        tables = re.findall(r"(?:^\|.*\n)+", self.markdown, flags=re.MULTILINE)
        self.assertEqual(len(tables), len(self.page.tables))
        for block, table in zip(tables, self.page.tables):
            self.assertEqual(len(block.splitlines()), len(table) + 1)
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            self.assertEqual(widths, {len(table[0]) + 1}, block[:200])
        self.assertEqual(self.markdown.count("**fastest**"), 2)

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
