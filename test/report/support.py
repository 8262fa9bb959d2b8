# SPDX-License-Identifier: Apache-2.0
"""What the tests of the report share: the fixture, the command, and a strict reader of the page."""

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
from html.parser import HTMLParser
from pathlib import Path

import make_fixture

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

VOID = {"meta", "link", "br", "hr", "img", "input"}


def run_report(*arguments, environment=None):
    command = [sys.executable, "-B", str(SCRIPTS / "report.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240,
                          env={**os.environ, **(environment or {})})  # fmt: skip


def read_json(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def change_json(path, change):
    content = read_json(path)
    change(content)
    Path(path).write_text(json.dumps(content), encoding="utf-8")


class Page(HTMLParser):
    """Fails on tags that do not match; gathers tables, ids, references and text."""

    def __init__(self, source):
        super().__init__()
        self.open, self.ids, self.references, self.tags = [], [], [], []
        self.tables, self.row, self.cell, self.text = [], None, None, []
        self.feed(source)
        self.close()
        if self.open:
            raise AssertionError(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "xlink:href", "src"):
                self.references.append(value)
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = []

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing at {self.getpos()}")
        if tag == "tr":
            self.tables[-1].append(self.row)
        elif tag in ("td", "th"):
            self.row.append("".join(self.cell).strip())
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)
        if not set(self.open) & {"style", "title"}:
            self.text.append(data)

    def table(self, *titles):
        """The rows, as title -> cell, of the first table that has these columns."""
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
        """The fixture, or of it the cases that were run and are wanted."""
        target = Path(tempfile.mkdtemp(dir=self.scratch)) / "results"
        shutil.copytree(self.fixture, target)
        results = results_of(target)
        keep = {name for name, result in results.items() if wanted(result)}
        if len(keep) < len(results):
            keep_only(target, keep)
        return target

    def report(self, results, *options):
        """The page of a report that has to succeed."""
        from report.command import main

        output = Path(tempfile.mkdtemp(dir=self.scratch)) / "report"
        messages = io.StringIO()
        # In this process: many reports are made, and matplotlib takes long to load.
        with (
            contextlib.redirect_stderr(messages),
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):
            # matplotlib warns where a figure is too small for what stands in it.
            warnings.simplefilter("error", UserWarning)
            status = main([str(results), "-o", str(output), *options])
        self.assertEqual(status, 0, messages.getvalue())
        self.output, self.stderr = output, messages.getvalue()
        return Page((output / "report.html").read_text(encoding="utf-8"))

    def fails(self, *arguments, environment=None):
        """The one line with which a report refuses."""
        done = run_report(*arguments, environment=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        self.assertEqual(len(errors), 1, done.stderr)
        return errors[0]


def plain(text):
    """What a text of the document says, without its spans."""
    parts = text if isinstance(text, list) else [text]
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def results_of(directory):
    """id -> result of every case that was run."""
    files = sorted((Path(directory) / "cases").glob("*/result.json"))
    return {file.parent.name: read_json(file) for file in files}


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
    """A few cases of every status, which are quick to draw."""
    return result["factors"]["ranks"] > 4 or result["factors"]["strategy"] == "hybrid"


@contextlib.contextmanager
def quietly():
    """The warnings that tests provoke on purpose are checked, not shown."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield
