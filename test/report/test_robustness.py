# SPDX-License-Identifier: Apache-2.0
"""Whatever lies in a results directory, there is a report that says so, or one clear line."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import unittest

from support import (
    SCRIPTS,
    WithDirectory,
    change_json,
    keep_only,
    plain,
    quietly,
    read_json,
    results_of,
    run_report,
    small,
)

# isort: split
from report import document as doc
from report import layout, style
from report.build import build
from report.output import figures_of
from report.study import Study

style.use()


def paths_of(value, depth=3, path=()):
    """Every key of a result, down to the third level."""
    for key, inner in value.items():
        yield (*path, key)
        if isinstance(inner, dict) and depth > 1:
            yield from paths_of(inner, depth - 1, (*path, key))


def without(path):
    def change(content):
        *outer, last = path
        for key in outer:
            content = content[key]
        del content[last]

    return change


def with_value(path, value):
    def change(content):
        *outer, last = path
        for key in outer:
            content = content[key]
        content[last] = value

    return change


def apart(changes):
    """For each case up to five of them, which change different parts of a result."""
    cases = []
    for path, change in changes:
        case = next((c for c in cases if path[0] not in c and len(c) < 5), None)
        if case is None:
            cases.append(case := {})
        case[path[0]] = change
    return [case.values() for case in cases]


class Spoiled(WithDirectory):
    def test_any_key_of_a_result_may_be_spoiled(self):
        """Different keys of every ok case are changed in different ways, in as few reports as it takes."""
        ok = [name for name, r in results_of(self.fixture).items() if r["status"] == "ok"]
        keys = [path for path in paths_of(read_json(self.fixture / "cases" / ok[-1] / "result.json"))
                if path[0] not in ("schema_version", "id", "config", "status")]  # fmt: skip
        self.assertGreater(len(keys), 60)
        changes = [(path, without(path)) for path in keys]
        changes += [(p, with_value(p, v)) for p in keys for v in (None, "text", [{}], 0, -1.5)]
        spoiled = apart(changes)
        for start in range(0, len(spoiled), len(ok)):
            results = self.copy()
            for name, of_case in zip(ok, spoiled[start : start + len(ok)]):
                for change in of_case:
                    change_json(results / "cases" / name / "result.json", change)
            tables = self.drawn(results)
            self.assertIn(48, {len(table.rows) for table in tables})
            cells = {plain(cell) for table in tables for row in table.rows for cell in row}
            self.assertFalse({"", "nan", "None", "inf"} & cells, sorted(cells)[:5])

    def drawn(self, results):
        """The tables of a report whose figures have been drawn, but neither laid out nor written, which
        takes longer."""
        with quietly():
            blocks = build(Study(results))
        for figure in figures_of(blocks):
            figure.figure.set_layout_engine("none")
            layout.settle(figure.figure)
        return [block for block in blocks if isinstance(block, doc.Table)]

    def test_other_files_may_lack_everything(self):
        for name in ("study.json", "summary.json", "launches"):
            results = self.copy(small)
            if name == "launches":
                shutil.rmtree(results / name)
            else:
                (results / name).unlink()
            self.assertIn("samples/s", "".join(self.report(results).text))
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
        text = "".join(self.report(results).text)
        for name in contents:
            self.assertIn(f"cases/{name}/result.json: ", text)
            self.assertIn(f"cases/{name}/result.json: ", self.stderr)

    def test_nobody_waits_for_a_writer(self):
        results = self.copy(small)
        name = sorted(results_of(results))[0]
        directory = results / "cases" / name
        for file in (directory / "result.json", directory / "lock", results / "summary.json"):
            file.unlink(missing_ok=True)
            os.mkfifo(file)
        text = "".join(self.report(results).text)
        for file in (f"cases/{name}/result.json", "summary.json"):
            self.assertIn(f"{file}: is no regular file", text)

    def test_values_of_another_kind_are_named(self):
        results = self.copy(small)
        names = sorted(name for name, result in results_of(results).items() if result["status"] == "ok")
        wrong = {
            ("loss",): "fine",
            ("rounds",): {"seconds": 1},
            ("memory", "measured_bytes"): [1],
            ("traffic", "rows"): [{"axis": 3}],
            ("compute", "mfu"): 10**400,
        }
        untimed = {("step_seconds", "median"): "0.5"}
        for name, values in ((names[0], wrong), (names[3], untimed)):
            for path, value in values.items():
                change_json(results / "cases" / name / "result.json", with_value(path, value))
        change_json(results / "study.json", with_value(("name",), 7))
        (results / "cases" / names[1] / "result.json").write_text("[" * 100_000)
        steps = results / "cases" / names[2] / "steps.json"
        change_json(steps, with_value(("rounds",), "none"))
        text = "".join(self.report(results).text)
        for said in (text, self.stderr):
            for path in wrong:
                key = ".".join(path).replace("traffic.rows", "traffic.rows[0].axis")
                self.assertIn(f"cases/{names[0]}/result.json: {key} = ", said)
            self.assertIn(f'cases/{names[3]}/result.json: step_seconds.median = "0.5": must be a', said)
            self.assertIn(f"cases/{names[1]}/result.json: is no JSON", said)
            self.assertIn("study.json: name = 7: must be a text", said)

    def test_sound_files_are_not_complained_of(self):
        self.report(self.fixture)
        self.assertEqual(self.stderr, "")

    def test_numbers_that_are_none(self):
        results = self.copy(small)
        name = read_json(results / "summary.json")["best"]
        file = results / "cases" / name / "result.json"
        change_json(file, with_value(("step_seconds", "median"), float("nan")))
        text = "".join(self.report(results).text)
        self.assertNotIn("nan", text.replace("NaN", "").lower().replace("provenance", ""))

    def test_text_is_never_markup(self):
        results = self.copy(small)
        name = next(n for n, r in results_of(results).items() if r["status"] == "failed")
        evil = "<script>alert(1)</script> | `x` **y** \\ &amp; </td>"
        change_json(results / "cases" / name / "result.json", with_value(("reason",), evil))
        change_json(results / "study.json", with_value(("description",), evil))
        page = self.report(results)
        rows = {row["case"]: row for row in page.table("case", "status")}
        self.assertEqual(rows[name]["what became of it"], evil)
        self.assertNotIn("script", {tag for tag, _ in page.tags})
        markdown = (self.output / "report.md").read_text(encoding="utf-8")
        self.assertNotIn("<script>", markdown.replace("\\<script", ""))


class Few(WithDirectory):
    def test_one_case(self):
        for status in ("ok", "invalid", "oom", "timeout", "failed", "skipped", "running"):
            results = self.copy()
            names = [n for n, r in results_of(results).items() if r["status"] == status]
            keep_only(results, names[:1])
            page = self.report(results)
            shown = status.replace("running", "stale")
            self.assertEqual([row["status"] for row in page.table("case", "status")], [shown])
            text = "".join(page.text)
            wanted = "One case was measured" if status == "ok" else "No case was measured"
            self.assertIn(wanted, text)

    def test_no_ok_case(self):
        results = self.copy(small)
        names = [n for n, r in results_of(results).items() if r["status"] != "ok"]
        keep_only(results, names)
        text = "".join(self.report(results).text)
        self.assertIn("No case was measured", text)
        self.assertIn("Figures left out", text)

    def test_nothing_run_yet(self):
        results = self.copy(small)
        for name in ("cases", "launches"):
            shutil.rmtree(results / name)
        (results / "summary.json").unlink()
        page = self.report(results)
        statuses = {row["status"] for row in page.table("case", "status")}
        self.assertEqual(statuses, {"pending", "skipped"})


class Kinds(WithDirectory):
    def test_weak_scaling(self):
        results = self.copy(small)
        change_json(results / "study.json", with_value(("scaling",), "weak"))
        for file in results.glob("cases/*/result.json"):
            change_json(file, lambda result: result["case"].update({"batch_per_rank": 64}))
        text = "".join(self.report(results).text)
        self.assertIn("the batch per rank is fixed", text)

    def test_a_pipeline_waits_as_scheduled_predicted_and_measured(self):
        results = self.copy(small)
        name = read_json(results / "summary.json")["best"]

        def change(result):
            result["pipeline"] = {"schedule": "1f1b", "stages": 4, "virtual_stages": 1,
                                  "microbatches": 8, "bubble": 3 / 11,
                                  "live_microbatches": [4, 3, 2, 1],
                                  "timeline": {"measured_bubble": 0.31, "replayed_bubble": 0.295}}  # fmt: skip
            result["prediction"].update({"step_seconds": 2.0, "idle_seconds": 0.5})
            result["breakdown"]["step_seconds"] = 4.0
            result["breakdown"]["idle"]["mean_rank_seconds"] = 1.2

        change_json(results / "cases" / name / "result.json", change)
        (row,) = self.report(results).table("case", "bubble of the schedule")
        self.assertEqual(row["case"], name)
        wanted = {"schedule": "1f1b", "stages": "4", "microbatches": "8",
                  "bubble of the schedule": "27 %", "idle, predicted": "25 %",
                  "idle, measured": "30 %", "one step: idle": "31.0 %",
                  "its passes replayed": "29.5 %", "microbatches kept by stage": "4, 3, 2, 1"}  # fmt: skip
        self.assertEqual({key: row[key] for key in wanted}, wanted)

    def test_the_passes_of_a_pipeline_are_drawn_if_they_are_there(self):
        results = self.copy(small)
        name = read_json(results / "summary.json")["best"]
        file = results / "cases" / name / "result.json"
        passes = [[["F0", 0.0, 1.0], ["B0", 3.0, 5.0]], [["F0", 1.0, 2.0], ["B0", 2.0, 3.0]]]
        pipeline = {"schedule": "gpipe", "stages": 2, "microbatches": 1}

        def figures():
            with quietly():
                return [figure.name for figure in figures_of(build(Study(results)))]

        change_json(file, with_value(("pipeline",), {**pipeline, "timeline":
                                     {"measured": passes, "ideal": passes}}))  # fmt: skip
        self.assertIn("pipeline", figures())
        for bad in (None, [], [1], [[["F0", 0.0]]], [[["?0", 0.0, 1.0]]], [[["F0", 0.0, "x"]]]):
            change_json(file, with_value(("pipeline", "timeline", "measured"), bad))
            self.assertNotIn("pipeline", figures(), bad)

    def test_figures_of_other_libraries_beside_the_results_are_shown(self):
        results = self.copy(small)
        rows = [{"name": "PyTorch eager", "ranks": 1, "precision": "bf16", "step_seconds": 0.5,
                 "ratio_to_tessera": 1.25, "version": "PyTorch 2"}, {"name": 3}]  # fmt: skip
        (results / "peers.json").write_text(json.dumps({"schema_version": 1, "peers": rows}))
        shown = self.report(results).table("over ours", "version")
        wanted = {"ranks": "1", "type": "bf16", "step": "500 ms", "over ours": "1.25×", "version": "PyTorch 2"}
        self.assertEqual({key: shown[0][key] for key in wanted}, wanted)
        self.assertEqual(len(shown), 2)

    def test_a_case_is_running_while_its_launch_holds_the_lock(self):
        results = self.copy()
        (name,) = [n for n, r in results_of(results).items() if r["status"] == "running"]
        lock = results / "cases" / name / "lock"
        with quietly():
            self.assertEqual(Study(results).by_id(name).status, "stale")
            with open(lock, "w", encoding="utf-8") as held:
                self.assertEqual(Study(results).by_id(name).status, "stale")
                fcntl.flock(held, fcntl.LOCK_EX)
                self.assertEqual(Study(results).by_id(name).status, "running")
            self.assertEqual(Study(results).by_id(name).status, "stale")

    def test_strategies_meshes_and_factors_unheard_of(self):
        results = self.copy(small)
        names = sorted(results_of(results))

        def rename(entry):
            entry["factors"].update(
                {"strategy": "expert", "mesh": "expert=4,pipeline=2", "ranks": 8}
            )
            entry["factors"]["distributed.overlap"] = True

        for name in names[:3]:
            change_json(results / "cases" / name / "result.json", rename)
        change_json(
            results / "study.json",
            lambda study: [rename(e) for e in study["cases"] if e["id"] in names[:3]],
        )
        text = "".join(self.report(results).text)
        self.assertIn("expert", text)
        self.assertIn("overlap on", text)


class Refused(WithDirectory):
    def test_a_directory_without_results(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.assertIn("holds no results of tessera-bench", self.fails(empty))
        self.assertEqual(list(empty.iterdir()), [])
        self.assertIn("is not a directory", self.fails(self.scratch / "nowhere"))
        self.assertIn("is not a directory", self.fails(self.fixture / "study.json"))

    def test_a_place_that_cannot_be_written(self):
        file = self.scratch / "file"
        file.write_text("")
        self.assertIn("-o DIR puts it elsewhere", self.fails(self.fixture, "-o", file / "report"))

    def test_only_regular_files_are_replaced(self):
        for name in ("report.md", "report.html"):
            output = self.scratch / f"fifo-{name}"
            output.mkdir()
            os.mkfifo(output / name)
            self.assertIn("is no regular file", self.fails(self.fixture, "-o", output))
            self.assertTrue((output / name).is_fifo())

    def test_links_are_written_through(self):
        output = self.scratch / "links"
        output.mkdir()
        (output / "report.md").symlink_to("../page.md")
        for _ in range(2):  # to a file that is not there, and to one that is
            self.assertEqual(run_report(self.fixture, "-o", output).returncode, 0)
            self.assertTrue((output / "report.md").is_symlink())
            self.assertGreater((self.scratch / "page.md").stat().st_size, 1000)

    def test_output_that_cannot_be_printed(self):
        output = self.scratch / "unprinted"
        with open("/dev/full", "w", encoding="utf-8") as full:
            command = [sys.executable, "-B", str(SCRIPTS / "report.py"), str(self.fixture), "-o", str(output)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr.splitlines()[-1],
            "error: cannot write to standard output: No space left on device",
        )
        self.assertTrue((output / "report.html").exists())

    def test_results_are_only_read(self):
        results = self.copy(small)
        before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
        for path in before:
            path.chmod(0o555 if path.is_dir() else 0o444)
        self.report(results)
        after = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
        self.assertEqual(before, after)
        for path in before:
            if path.is_dir():
                path.chmod(0o755)
        results.chmod(0o755)

    def test_without_matplotlib(self):
        broken = self.scratch / "broken" / "matplotlib"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise ImportError('not this one')")
        error = self.fails(self.fixture, environment={"PYTHONPATH": str(broken.parent)})
        self.assertIn("has no matplotlib: install python3-matplotlib", error)

    def test_help(self):
        done = run_report("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("usage: report.py", done.stdout)
        self.assertIn("--allow-mixed", done.stdout)
        self.assertTrue(os.access(SCRIPTS / "report.py", os.X_OK))

    def test_it_goes_beside_the_results_unless_told(self):
        results = self.copy(small)
        done = run_report(results)
        self.assertEqual(done.returncode, 0)
        self.assertTrue((results / "report" / "report.html").exists())
        self.assertIn(str(results / "report" / "report.html"), done.stdout)
        # A later report leaves no figures of the earlier one, and what is not its own alone.
        figures = results / "report" / "figures"
        (figures / "mine.png").write_text("")
        keep_only(results, [read_json(results / "summary.json")["best"]])
        self.assertTrue((figures / "speedup.svg").exists())
        self.assertEqual(run_report(results).returncode, 0)
        self.assertFalse((figures / "speedup.svg").exists() or (figures / "speedup.png").exists())
        self.assertTrue((figures / "heatmap.svg").exists() and (figures / "mine.png").exists())


if __name__ == "__main__":
    unittest.main()
