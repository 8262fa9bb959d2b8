# SPDX-License-Identifier: Apache-2.0
"""The pages on what `tessera` wrote: a training run of `run --export`, and the memory of a step of `plan --timeline`."""

import json
import tempfile
import unittest
from pathlib import Path

import numpy
from make_fixture import write_timeline
from support import Page, call, change_json, with_value

KINDS = {
    # samples, positions and columns of x and y, and what the page must name
    "fno": ((4, 64, 3), (4, 64, 1), "Predicted fields"),
    "pinn": ((200, 6, 2), (200, 6, 1), "Solution of the equation"),
    "vae": ((3, 1, 16), (3, 1, 16), "Reconstructions"),
    "transformer": ((5, 7, 1), (5, 7, 1), None),
    "mlp": ((5, 1, 4), (5, 1, 1), None),
}


def write_export(directory, kind):
    x_shape, y_shape, _ = KINDS[kind]
    draw = numpy.random.default_rng(1)
    y = draw.random(y_shape)
    directory.mkdir()
    numpy.save(directory / "x.npy", draw.random(x_shape))
    numpy.save(directory / "y.npy", y)
    numpy.save(directory / "prediction.npy", y * 1.5)
    if kind == "vae":
        numpy.save(directory / "sample.npy", y * 0.5)
    results = {
        "parameters": 1234, "steps": 40, "final_loss": 0.25, "epoch_losses": [1.0, 0.5, 0.25],
        "config": {"model": {"kind": kind}, "training": {"loss": "mse"},
                   "distributed": {"strategy": "fsdp", "mesh_axis_names": ["fsdp", "model"], "mesh_shape": [2, 3]}},
        "validation": {"epochs": [2, 3], "losses": [0.6, 0.3], "best_loss": 0.2},
    }  # fmt: skip
    (directory / "results.json").write_text(json.dumps(results))


class Export(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def test_every_kind_has_its_picture_and_losses(self):
        for kind, (_, _, title) in KINDS.items():
            with self.subTest(kind):
                write_export(self.root / kind, kind)
                self.assertEqual(call(self.root / kind, drawn=True)[0], 0)
                text = (self.root / kind / "report" / "report.html").read_text()
                self.assertIn("1,234 parameters, 40 steps under fsdp on fsdp=2, model=3", text)
                figures = {path.stem for path in (self.root / kind / "report" / "figures").glob("*.svg")}
                self.assertEqual(figures, {"losses", "predictions"} if title else {"losses"})
                for name in filter(None, ("Losses", title)):
                    self.assertIn(f"<h3>{name}</h3>", text)
                if kind == "fno":
                    self.assertIn("error: 50.0 %", text)

    def test_free_samples_are_drawn_if_a_model_has_them(self):
        for has, rows in ((True, 3), (False, 2)):
            write_export(self.root / f"vae{has}", "vae")
            if not has:
                (self.root / f"vae{has}" / "sample.npy").unlink()
            call(self.root / f"vae{has}", drawn=True)
            svg = (self.root / f"vae{has}" / "report" / "figures" / "predictions.svg").read_text()
            self.assertEqual(svg.count("<image"), 3 * rows)

    def test_a_run_without_validation_has_its_losses(self):
        write_export(self.root / "mlp", "mlp")
        change_json(self.root / "mlp" / "results.json", lambda results: results.pop("validation"))
        self.assertEqual(call(self.root / "mlp")[0], 0)

    def test_results_of_another_kind_are_named(self):
        paths = [("parameters",), ("final_loss",), ("epoch_losses",), ("config",), ("config", "model"),
                 ("config", "model", "kind"), ("config", "training", "loss"), ("config", "distributed", "mesh_shape"),
                 ("validation",), ("validation", "losses")]  # fmt: skip
        write_export(self.root / "vae", "vae")
        file = self.root / "vae" / "results.json"
        sound = file.read_text()
        for path in paths:
            for value in (None, [], {}, 3, "text", [{}], -1e300, float("nan")):
                file.write_text(sound)
                change_json(file, with_value(path, value))
                code, error = call(self.root / "vae", "-o", self.root / "page")
                if code != 0:
                    self.assertEqual(code, 1)
                    self.assertIn(f"error: {file}: {'.'.join(path)}", error)
                    self.assertEqual(error.count("\n"), 1)
                elif path[-1] in ("kind", "loss"):
                    self.assertEqual(value, "text")

    def test_files_that_cannot_be_read_are_one_line(self):
        for name, content in (("x.npy", b"no array"), ("results.json", b"{"), ("results.json", b"[]")):
            with self.subTest(name):
                directory = self.root / f"broken{len(list(self.root.iterdir()))}"
                write_export(directory, "vae")
                (directory / name).write_bytes(content)
                code, error = call(directory)
                self.assertEqual(code, 1)
                self.assertEqual(error.count("\n"), 1)
                self.assertIn("cannot be read", error)


class Timeline(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = Path(directory.name) / "memory.json"

    def test_the_page_tells_the_peak_and_what_is_in_use_there(self):
        for length in (1, 12, 5000):
            write_timeline(self.file, length)
            self.assertEqual(call(self.file, drawn=True), (0, ""))
        page = Page((self.file.with_name("memory.json.report") / "report.html").read_text(encoding="utf-8"))
        self.assertIn("Rank 56 of pipeline=8,fsdp=2,model=4 under fsdp allocates 8.00 GiB.", page.text)
        self.assertIn("A step uses 7.02 GiB at most, in action 2,498, forward(block2498/attention/output, m31).", page.text)
        rows = page.table("tensors", "number", "bytes", "part")
        self.assertEqual([row["tensors"] for row in rows[:4]], ["moments", "parameters", "gradients", "block*/fc1/output"])
        self.assertEqual([rows[3][title] for title in ("number", "bytes")], ["6", "192 MiB"])
        self.assertIn("peak, 7.02 GiB", page.text)

    def test_other_files_are_one_line(self):
        write_timeline(self.file, 12)
        sound = self.file.read_text()
        for path in (("memory",), ("memory", "total"), ("actions",), ("peak",), ("peak", "action"), ("peak", "in_use")):
            for value in (None, [], {}, 3e300, "text", [{}], -1, float("nan")):
                self.file.write_text(sound)
                change_json(self.file, with_value(path, value))
                code, error = call(self.file)
                self.assertEqual((code, error.count("\n")), (1, 1) if code else (0, 0), (path, value, error))
        for content in ("{", "[]", "3", "{}"):
            self.file.write_text(content)
            self.assertEqual(call(self.file)[0], 1)


if __name__ == "__main__":
    unittest.main()
