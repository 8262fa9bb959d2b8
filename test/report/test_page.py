# SPDX-License-Identifier: Apache-2.0
"""What stands on the page and in the figures is what the fixture holds."""

import re
import struct
import unittest
import xml.etree.ElementTree as ElementTree
from collections import Counter

from support import Page, WithDirectory, read_json, results_of, run_report

FIGURES = ("alpha_beta", "amdahl", "bandwidth", "batch", "breakdown", "drift", "efficiency", "heatmap",
           "losses", "predicted", "speedup", "steps")  # fmt: skip


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
        cls.markdown = (cls.output / "report.md").read_text(encoding="utf-8")
        cls.results = results_of(cls.fixture)
        cls.summary = {row["id"]: row for row in read_json(cls.fixture / "summary.json")["cases"]}

    def test_nothing_is_wrong_with_the_fixture(self):
        self.assertNotIn("warning", self.messages)

    def test_the_fixture_holds_every_status_and_strategy(self):
        statuses = {result["status"] for result in self.results.values()}
        expected = {"ok", "invalid", "oom", "timeout", "failed", "skipped", "running"}
        self.assertEqual(statuses, expected)
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
        self.assertNotIn("script", {tag for tag, _ in self.page.tags})
        self.assertEqual(set(re.findall(r"url\((.)", self.source)), {"#"})

    def test_results_are_those_of_the_fixture(self):
        rows = self.page.table("strategy", "mesh", "speed-up", "efficiency")
        ok = {name: r for name, r in self.results.items() if r["status"] == "ok"}
        self.assertEqual(len(rows), len(ok))
        found = {(row["strategy"], row["mesh"], row["batch"]): row for row in rows}
        for name, result in ok.items():
            factors = result["factors"]
            batch = f"{factors['global_batch']:,}"
            row = found[(factors["strategy"], factors["mesh"], batch)]
            self.assertEqual(row["ranks"], str(factors["ranks"]))
            self.assertEqual(row["nodes"], "2" if factors["ranks"] == 8 else "1")
            across = factors["mesh"].split("=")[0] if factors["ranks"] == 8 else "–"
            self.assertEqual(row["across nodes"], across)
            speed = float(row["samples/s"].replace(",", ""))
            self.assertAlmostEqual(speed / result["samples_per_second"], 1, delta=6e-4)
            median, unit, low, high = re.match(
                r"([\d.]+) (s|ms) \[([\d.]+), ([\d.]+)\]", row["step: median [95 % CI]"]
            ).groups()
            for shown, key in ((median, "median"), (low, "ci95_low"), (high, "ci95_high")):
                seconds = float(shown) * (1 if unit == "s" else 1e-3)
                self.assertAlmostEqual(seconds / result["step_seconds"][key], 1, delta=6e-4)
            summary = self.summary[name]
            self.assertEqual(row["speed-up"], f"{summary['speedup']:.2f}×")
            self.assertEqual(row["efficiency"], f"{100 * summary['efficiency']:.0f} %")
            self.assertEqual(row["MFU"], f"{100 * result['compute']['mfu']:.0f} %")
            breakdown = result["breakdown"]
            share = breakdown["products"]["mean_rank_seconds"] / breakdown["step_seconds"]
            self.assertEqual(row["GEMM share"], f"{100 * share:.0f} %")
            of_a_rank = float(row["GFLOP/s"]) / factors["ranks"]
            self.assertAlmostEqual(float(row["GFLOP/s per rank"]) / of_a_rank, 1, delta=0.02)
            memory = result["memory"]["measured_bytes"] / 2**20
            self.assertAlmostEqual(float(row["memory"].split()[0]) / memory, 1, delta=6e-3)

    def test_every_case_is_listed_with_what_became_of_it(self):
        rows = {row["case"]: row for row in self.page.table("case", "status", "what became of it")}
        self.assertEqual(set(rows), set(self.summary))
        for name, row in rows.items():
            result = self.results.get(name, {"status": "pending", "reason": None})
            status = result["status"].replace("running", "stale")
            self.assertEqual(row["status"], status)
            if status != "ok":
                self.assertEqual(row["samples/s"], status)
            if result["reason"]:
                self.assertEqual(row["what became of it"], result["reason"])
            for title, cell in row.items():
                self.assertNotIn(cell, ("", "0", "None", "nan"), f"{name}: {title}")

    def test_the_answer_comes_first(self):
        best = self.summary[read_json(self.fixture / "summary.json")["best"]]
        start = "".join(self.page.text)
        start = start[: start.index("Why the others lose")]
        self.assertIn(f"{best['strategy']} on {best['mesh']}", start)
        self.assertIn(f"{best['samples_per_second']:,.0f} samples/s", start)
        self.assertIn(f"{best['speedup']:.2f}×", start)
        for strategy in ("data", "zero1", "fsdp", "hybrid", "tensor"):
            why = "".join(self.page.text).split("Why the others lose")[1].split("Results")[0]
            self.assertIn(f"{strategy} on ", why)

    def test_markdown_says_the_same(self):
        html_cells = {cell for table in self.page.tables for row in table for cell in row}
        plain = re.sub(r"\\([\\`*_|<>\[\]#~])", r"\1", self.markdown).replace("`", "")
        missing = [cell for cell in html_cells if " ".join(cell.split()) not in plain]
        self.assertEqual(missing, [])
        shown = re.findall(r"!\[[^]]*\]\((figures/[a-z_]+\.png)\)", self.markdown)
        self.assertEqual(sorted(shown), [f"figures/{name}.png" for name in FIGURES])

    def test_rows_of_markdown_tables_have_one_width(self):
        for block in re.findall(r"(?:^\|.*\n)+", self.markdown, flags=re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            self.assertEqual(len(widths), 1, block[:200])

    def test_figures_are_pictures(self):
        for name in FIGURES:
            png = (self.output / "figures" / f"{name}.png").read_bytes()
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            width, height = struct.unpack(">II", png[16:24])
            self.assertTrue(1200 <= width <= 2400 and height >= 300, (name, width, height))
            root = ElementTree.parse(self.output / "figures" / f"{name}.svg").getroot()
            texts = [part for part in root.iter() if part.tag.endswith("}text")]
            self.assertGreater(len(texts), 5, name)
            self.assertEqual([text for text in texts if not "".join(text.itertext()).strip()], [])

    def test_every_colour_has_one_for_dark_surfaces(self):
        from report import style

        light = {pair[0] for pair in style.pairs()}
        self.assertEqual(len(light), len(style.pairs()))  # or one rule would undo another
        for name in FIGURES:
            svg = (self.output / "figures" / f"{name}.svg").read_text(encoding="utf-8")
            drawing = svg[svg.index("</style>") :]
            used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawing))
            self.assertEqual(used - light, set(), name)
            self.assertNotIn("stroke: black", drawing)

    def test_no_cell_of_the_heat_map_is_blank_or_zero(self):
        root = ElementTree.parse(self.output / "figures" / "heatmap.svg").getroot()
        texts = [
            "".join(part.itertext()).strip() for part in root.iter() if part.tag.endswith("}text")
        ]
        words = Counter(texts)
        statuses = Counter(result["status"] for result in self.results.values())
        self.assertEqual(words["OOM"], statuses["oom"])
        for status in ("invalid", "timeout", "failed", "skipped"):
            self.assertEqual(words[status], statuses[status], status)
        self.assertEqual((words["pending"], words["stale"]), (1, 1))
        meshes = {row["mesh"] for row in self.summary.values()}
        cells = 2 * 6 * len(meshes)
        self.assertEqual(words["n/a"], cells - len(self.summary))
        self.assertEqual(words["0"] + words[""] + words["0 %"], 0)
        speeds = [text for text in texts if re.fullmatch(r"[\d,]+", text)]
        self.assertEqual(len(speeds), statuses["ok"])

    def test_output_is_the_same_every_time(self):
        again = self.scratch / "again"
        self.assertEqual(run_report(self.fixture, "-o", again).returncode, 0)
        files = sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
        self.assertEqual(len(files), 2 + 2 * len(FIGURES))
        for file in files:
            same = (again / file).read_bytes() == (self.output / file).read_bytes()
            self.assertTrue(same, file)


if __name__ == "__main__":
    unittest.main()
