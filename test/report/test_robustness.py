# SPDX-License-Identifier: Apache-2.0
"""Any results directory gives a report that names what is wrong with it, or one clear line."""

import ast
import json
import os
import shutil
import subprocess
import sys
import unittest

from support import (SCRIPTS, WithDirectory, call, change_json, fastest, keep_only, quietly, read_json, results_of,
                     run_report, small, with_value)  # fmt: skip

# isort: split
from report import style
from report.command import build
from report.contents import Table
from report.study import Study

style.use()


def paths_of(value, depth=3, path=()):
    """Yields every key of a result, down to the third level."""
    for key, inner in value.items():
        yield (*path, key)
        if isinstance(inner, dict) and depth > 1:
            yield from paths_of(inner, depth - 1, (*path, key))


def apart(changes):
    """Returns for each case up to five changes, of different parts of a result."""
    cases = []
    for path, change in changes:
        case = next((c for c in cases if path[0] not in c and len(c) < 5), None)
        if case is None:
            cases.append(case := {})
        case[path[0]] = change
    return [case.values() for case in cases]


class Spoiled(WithDirectory):
    def test_any_key_of_a_result_may_be_spoiled(self):
        """Changes different keys of every ok case in different ways, in as few reports as it takes."""
        ok = [name for name, r in results_of(self.fixture).items() if r["status"] == "ok"]
        keys = [path for path in paths_of(read_json(self.fixture / "cases" / ok[-1] / "result.json"))
                if path[0] not in ("schema_version", "id", "config", "status")]  # fmt: skip
        self.assertGreater(len(keys), 60)
        changes = [(path, with_value(path, None, missing=True)) for path in keys]
        changes += [(p, with_value(p, v)) for p in keys for v in (None, "text", [{}], 0, -1.5)]
        spoiled = apart(changes)
        for start in range(0, len(spoiled), len(ok)):
            results = self.copy()
            for name, of_case in zip(ok, spoiled[start : start + len(ok)]):
                for change in of_case:
                    change_json(results / "cases" / name / "result.json", change)
            with quietly():
                sections = build(Study(results))
            tables = [block for blocks in sections.values() for block in blocks if isinstance(block, Table)]
            cases = [len(table.rows) for blocks in [sections["All cases"]] for table in blocks]
            self.assertEqual(sum(cases), 48)
            cells = {cell for table in tables for row in table.rows for cell in row}
            self.assertFalse({"", "nan", "None", "inf"} & cells, sorted(cells)[:5])

    def test_other_files_may_lack_everything(self):
        for name in ("study.json", "summary.json", "launches"):
            results = self.copy(small)
            if name == "launches":
                shutil.rmtree(results / name)
            else:
                (results / name).unlink()
            self.assertIn("samples/s", self.report(results).text)
        results = self.copy(small)
        for file in [results / "study.json", results / "summary.json", *results.glob("launches/*")]:
            file.write_text('{"schema_version": 1}')
        self.report(results)

    def test_files_that_cannot_be_used_are_named(self):
        results = self.copy(small)
        names = sorted(results_of(results))
        contents = {
            names[0]: '{"schema_version": 1, "id": "data-',
            names[1]: "[1, 2]",
            names[2]: "",
            names[3]: json.dumps({"schema_version": 1, "id": "another", "status": "ok"}),
            names[4]: json.dumps({"schema_version": 2, "id": names[4], "status": "ok"}),
            names[5]: json.dumps({"hello": "world"}),
            names[6]: json.dumps({"schema_version": 1, "id": names[6]}),
            names[7]: "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        }
        for name, content in contents.items():
            (results / "cases" / name / "result.json").write_text(content, encoding="latin-1")
        (results / "summary.json").unlink()
        os.mkfifo(results / "summary.json")  # nobody writes to it
        text = self.report(results).text
        for name in contents:
            self.assertIn(f"cases/{name}/result.json: ", text)
            self.assertIn(f"cases/{name}/result.json: ", self.stderr)
        self.assertIn("summary.json: is no regular file", text)

    def test_values_of_another_kind_are_named(self):
        results = self.copy(small)
        names = sorted(name for name, result in results_of(results).items() if result["status"] == "ok")
        wrong = {
            ("loss",): "fine",
            ("memory", "measured_bytes"): [1],
            ("traffic", "rows"): [{"axis": 3}],
            ("compute", "vendor_mfu"): 10**400,
        }
        for path, value in wrong.items():
            change_json(results / "cases" / names[0] / "result.json", with_value(path, value))
        change_json(results / "cases" / names[3] / "result.json", with_value(("step_seconds", "median"), "0.5"))
        change_json(results / "cases" / names[2] / "result.json", with_value(("samples_per_second",), float("nan")))
        change_json(results / "study.json", with_value(("name",), 7))
        (results / "cases" / names[1] / "result.json").write_text("[" * 100_000)
        text = self.report(results).text
        for said in (text, self.stderr):
            for path in wrong:
                key = ".".join(path).replace("traffic.rows", "traffic.rows[0].axis")
                self.assertTrue(f"cases/{names[0]}/result.json: {key} = " in said, key)
            for line in (f"cases/{names[1]}/result.json: is no JSON", "study.json: name = 7: must be a text",
                         f'cases/{names[3]}/result.json: step_seconds.median = "0.5": must be a positive number',
                         f"cases/{names[2]}/result.json: samples_per_second = NaN: must be a positive number"):
                self.assertTrue(line in said, line)

    def test_text_is_never_markup(self):
        results = self.copy(small)
        name = next(n for n, r in results_of(results).items() if r["status"] == "failed")
        evil = "<script>alert(1)</script> | `x` **y** \\ &amp; </td>"
        change_json(results / "cases" / name / "result.json", with_value(("reason",), evil))
        change_json(results / "study.json", with_value(("description",), evil))
        page = self.report(results)
        self.assertEqual([row["reason"] for row in page.table("case", "status") if row["status"] == "failed"], [evil])
        self.assertNotIn("script", page.tags)
        markdown = (self.output / "RESULTS.md").read_text(encoding="utf-8")
        self.assertNotIn("<script>", markdown.replace("\\<script", ""))


class Few(WithDirectory):
    def test_one_case(self):
        for status in ("ok", "invalid", "oom", "timeout", "failed", "skipped"):
            results = self.copy()
            names = [n for n, r in results_of(results).items() if r["status"] == status]
            keep_only(results, names[:1])
            page = self.report(results)
            if status != "ok":
                (row,) = page.table("case", "status")
                self.assertEqual(row["status"], status)
                self.assertNotIn("work", row)  # a column without a value
            self.assertIn("On 1 rank data is the only case" if status == "ok" else "No case was measured", page.text)

    def test_cases_that_the_study_no_longer_has_are_left_out(self):
        results = self.copy(small)
        name = fastest(results)
        change_json(results / "study.json", lambda study: study.update(cases=[one for one in study["cases"] if one["id"] != name]))
        with quietly():
            self.assertNotIn(name, [case.id for case in Study(results).cases])

    def test_nothing_run_yet(self):
        results = self.copy(small)
        for name in ("cases", "launches"):
            shutil.rmtree(results / name)
        (results / "summary.json").unlink()
        page = self.report(results)
        self.assertEqual({row["status"] for row in page.table("case", "status")}, {"pending", "skipped"})
        self.assertIn("Left out", page.text)


class Kinds(WithDirectory):
    def changed(self, change):
        """Returns the page after a change of the best case."""
        results = self.copy(small)
        name = fastest(results)
        change_json(results / "cases" / name / "result.json", change)
        return self.report(results)

    def test_weak_scaling(self):
        results = self.copy(small)
        change_json(results / "study.json", with_value(("scaling",), "weak"))
        self.assertIn("The batch per rank is fixed", self.report(results).text)

    def test_a_pipeline_waits_as_scheduled_and_as_measured(self):
        def change(result):
            result["pipeline"] = {"schedule": "1f1b", "stages": 4, "virtual_stages": 1, "microbatches": 8,
                                  "bubble": 3 / 11, "live_microbatches": [4, 3, 2, 1]}  # fmt: skip
            phases = {"compute": 1.0, "communication": 0.5, "idle": 1.2, "optimizer": 1.0, "other": 0.3}
            result["breakdown"] = {name: {"mean_rank_seconds": seconds} for name, seconds in phases.items()}

        page = self.changed(change)
        (row,) = [row for row in page.table("strategy", "bubble of the schedule") if row["bubble of the schedule"] != "–"]
        wanted = {"mesh": "data=8", "schedule": "1f1b", "bubble of the schedule": "27 %", "idle": "30 %"}
        self.assertEqual({key: row[key] for key in wanted}, wanted)

    def test_checkpoints_have_columns(self):
        checkpoint = {"bytes": 3 * 2**20, "write_seconds": 0.5, "exposed_seconds": 0.0125, "write_bytes_per_second": 6e6,
                      "read_bytes_per_second": 1.2e7}  # fmt: skip
        page = self.changed(lambda result: result.update(checkpoint=checkpoint))
        (row,) = [row for row in page.table("strategy", "training stops for") if row["training stops for"] != "–"]
        wanted = {"checkpoint": "3.00 MiB", "write": "500 ms", "write rate": "6.00 MB/s", "training stops for": "12.5 ms", "read rate": "12.0 MB/s"}
        self.assertEqual({key: row[key] for key in wanted}, wanted)

    def test_simulated_results_are_marked(self):
        results = self.copy(lambda result: result["factors"]["strategy"] == "hybrid")
        for file in results.glob("cases/*/result.json"):
            change_json(file, lambda result: result.update(simulated="a cluster"))
        page = self.report(results, drawn=True)
        text = page.text
        self.assertIn("Nothing was run, and no loss was checked.", text)
        figures = page.tags.count("figure")
        self.assertEqual(text.count("Simulated on a cluster. "), len(page.tables) + figures)
        self.assertIn("simulated on a cluster", (self.output / "figures" / "time-1.svg").read_text())

    def test_unknown_strategies_meshes_and_factors(self):
        factors = {"strategy": "expert", "mesh": "expert=4,pipeline=2", "ranks": 8, "distributed.overlap": True}
        results = self.copy(small)
        name = fastest(results)
        change_json(results / "study.json", lambda study: [
            entry["factors"].update(factors) for entry in study["cases"] if entry["id"] == name])  # fmt: skip
        self.assertIn("expert on expert=4,pipeline=2, overlap on", self.report(results).text)


class Refused(WithDirectory):
    def setUp(self):
        self.results = self.copy(small)

    def test_a_directory_without_results(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.assertIn("holds no results of tessera-bench", self.fails(empty))
        self.assertEqual(list(empty.iterdir()), [])
        self.assertIn("is not a directory", self.fails(self.scratch / "nowhere"))
        self.assertIn("is neither a directory of results nor", self.fails(self.results / "study.json"))

    def test_a_place_that_cannot_be_written(self):
        file = self.scratch / "file"
        file.write_text("")
        self.assertIn("-o DIR puts it elsewhere", self.fails(self.results, "-o", file / "report"))
        for name in ("RESULTS.md", "report.html"):
            output = self.scratch / f"fifo-{name}"
            output.mkdir()
            os.mkfifo(output / name)
            self.assertIn("is no regular file", self.fails(self.results, "-o", output))
            self.assertTrue((output / name).is_fifo())

    def test_links_are_written_through(self):
        output = self.scratch / "links"
        output.mkdir()
        (output / "RESULTS.md").symlink_to("../page.md")
        for _ in range(2):  # to a file that is missing, and to one that exists
            self.assertEqual(call(self.results, "-o", output)[0], 0)
            self.assertTrue((output / "RESULTS.md").is_symlink())
            self.assertGreater((self.scratch / "page.md").stat().st_size, 1000)

    def test_output_that_cannot_be_printed(self):
        output = self.scratch / "unprinted"
        keep_only(self.results, [fastest(self.results)])
        with open("/dev/full", "w", encoding="utf-8") as full:
            command = [sys.executable, "-B", str(SCRIPTS / "report.py"), str(self.results), "-o", str(output)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "error: cannot write to standard output: No space left on device\n")
        self.assertTrue((output / "report.html").exists())

    def test_missing_packages_are_named(self):
        broken = self.scratch / "no-matplotlib" / "matplotlib"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise ImportError")
        done = run_report(self.results, environment={"PYTHONPATH": str(broken.parent)})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: .* has no matplotlib: install python3-matplotlib \(Debian\)")

    def test_run_sh_installs_what_the_report_needs(self):
        found = set()
        for file in [SCRIPTS / "report.py", *(SCRIPTS / "report").glob("*.py")]:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
                found |= {name.partition(".")[0] for name in names}
        # python3-matplotlib brings NumPy.
        self.assertEqual(found - set(sys.stdlib_module_names) - {"report"}, {"matplotlib", "numpy"})
        for script in ("run.sh", "study.sh"):
            self.assertRegex((SCRIPTS / script).read_text(encoding="utf-8"), r"install_missing .*\bMatplotlib\b")

    def test_help(self):
        self.assertTrue(os.access(SCRIPTS / "report.py", os.X_OK))
        self.assertIn("--allow-mixed", run_report("--help").stdout)

    def test_it_goes_beside_the_results_unless_told(self):
        results = self.copy(lambda result: small(result) or result["factors"]["strategy"] == "data")
        before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
        self.assertEqual(call(results)[0], 0)
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in before})
        self.assertTrue((results / "report" / "report.html").exists())
        # A later report removes figures of the earlier one, and no other files.
        figures = results / "report" / "figures"
        (figures / "mine.png").write_text("")
        keep_only(results, [fastest(results)])
        self.assertTrue((figures / "speedup-1.svg").exists())
        done = run_report(results)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(str(results / "report" / "report.html"), done.stdout)
        self.assertFalse((figures / "speedup-1.svg").exists() or (figures / "speedup-1.png").exists())
        self.assertTrue((figures / "time-1.svg").exists() and (figures / "mine.png").exists())


if __name__ == "__main__":
    unittest.main()
