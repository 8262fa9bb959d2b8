# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the report: the fixture, the command, and a strict reader of the page."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

import make_fixture

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))


def run_report(*arguments, environment=None):
    command = [sys.executable, "-B", str(SCRIPTS / "report.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240,
                          env={**os.environ, **(environment or {})})  # fmt: skip


def call(*arguments, drawn=False):
    """Runs the command in this process, because matplotlib takes long to load, with empty figures unless they are `drawn`.
    Returns its exit code and what it said on stderr."""
    from report import drawing
    from report.command import main

    def leave_empty(block):
        block.svg, block.png = "<svg></svg>", b"\x89PNG"

    draw, messages = drawing.draw if drawn else leave_empty, io.StringIO()
    with (
        mock.patch.object(drawing, "draw", draw),
        contextlib.redirect_stderr(messages),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        # matplotlib warns of a figure that is too small for its contents.
        warnings.simplefilter("error", UserWarning)
        return main([*map(str, arguments)]), messages.getvalue()


def read_json(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def change_json(path, change):
    content = read_json(path)
    change(content)
    Path(path).write_text(json.dumps(content), encoding="utf-8")


def with_value(path, value, missing=False):
    """Returns a function that sets the value at a path of keys, or deletes it."""

    def change(content):
        *outer, last = path
        for key in outer:
            content = content[key]
        content[last] = value
        if missing:
            del content[last]

    return change


class Page:
    """Fails on tags that do not match. Gathers tables, ids, references and text."""

    def __init__(self, source):
        root = ElementTree.fromstring(source.replace("\u00a0", " "))
        self.tags = [element.tag.rpartition("}")[2] for element in root.iter()]
        self.ids = [element.get("id") for element in root.iter() if element.get("id")]
        self.references = [value for element in root.iter() for name, value in element.attrib.items()
                           if name.rpartition("}")[2] in ("href", "src")]  # fmt: skip
        self.text = "".join(root.find("body").itertext())
        self.tables = [[["".join(cell.itertext()).strip() for cell in row] for row in table.iter("tr")]
                       for table in root.iter("table")]  # fmt: skip

    def table(self, *titles):
        """Returns the rows, as title -> cell, of the first table that has these columns."""
        for table in self.tables:
            if set(titles) <= set(table[0]):
                return [dict(zip(table[0], row)) for row in table[1:]]
        raise AssertionError(f"no table with the columns {titles}")


class WithDirectory(unittest.TestCase):
    """Every test gets a directory and a copy of the fixture to spoil."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="tessera-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.fixture = cls.scratch / "fixture"
        make_fixture.main(cls.fixture)

    def copy(self, wanted=lambda result: True):
        """Returns a copy of the fixture, or of its cases that were run and are wanted."""
        target = Path(tempfile.mkdtemp(dir=self.scratch)) / "results"
        shutil.copytree(self.fixture, target)
        results = results_of(target)
        keep = {name for name, result in results.items() if wanted(result)}
        if len(keep) < len(results):
            keep_only(target, keep)
        return target

    def report(self, results, *options, drawn=False):
        """Returns the page of a report that has to succeed."""
        self.output = Path(tempfile.mkdtemp(dir=self.scratch)) / "report"
        status, self.stderr = call(results, "-o", self.output, *options, drawn=drawn)
        self.assertEqual(status, 0, self.stderr)
        return Page((self.output / "report.html").read_text(encoding="utf-8"))

    def fails(self, *arguments):
        """Returns the one line with which a report refuses."""
        status, said = call(*arguments)
        self.assertEqual(status, 1, said)
        errors = [line for line in said.splitlines() if line.startswith("error:")]
        self.assertEqual(len(errors), 1, said)
        return errors[0]


def results_of(directory):
    """Returns the results of all cases that were run, by id."""
    files = sorted((Path(directory) / "cases").glob("*/result.json"))
    return {file.parent.name: read_json(file) for file in files}


def fastest(directory):
    """Returns the id of the fastest case of the largest batch."""
    rows = read_json(Path(directory) / "summary.json")["cases"]
    return [row["id"] for row in rows if row.get("standing") == "fastest"][-1]


def keep_only(directory, names):
    """Makes a study of these cases alone."""
    for folder in (Path(directory) / "cases").iterdir():
        if folder.name not in names:
            shutil.rmtree(folder)
    for file, key in (("study.json", "cases"), ("summary.json", "cases")):
        change_json(
            Path(directory) / file,
            lambda content, key=key: content.update(
                {key: [entry for entry in content[key] if entry["id"] in names]}
            ),
        )


def small(result):
    """True for a few cases of every status, which are quick to draw."""
    return result["factors"]["ranks"] > 4 or result["factors"]["strategy"] == "hybrid"


@contextlib.contextmanager
def quietly():
    """Hides the warnings that a test provokes on purpose."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield
