# SPDX-License-Identifier: Apache-2.0
"""A results directory of tessera-bench, read as far as it can be read."""

import json
import sys
from pathlib import Path

from .case import Case
from .fields import get, located, numbers, table, text
from .files import read_text
from .series import in_order
from .style import use_strategies

SCHEMA_VERSION = 1


class ReportError(Exception):
    """One line for the user."""


class Study:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.ratios = True  # whether its cases may be compared with each other
        self.problems = []  # (file below the directory, what is wrong with it)
        if not self.directory.is_dir():
            raise ReportError(f"{directory}: is not a directory")
        self.study = self._read("study.json") or {}
        self.summary = self._read("summary.json", required=False) or {}
        self.calibration = self._read("calibration.json", required=False) or {}
        self.peers = table(self._read("peers.json", required=False) or {}, "peers")
        self.launches = self._launches()
        results = self._results()
        if not self.study and not results:
            raise ReportError(
                f"{directory}: holds no results of tessera-bench"
                " (no readable study.json, no readable cases/*/result.json)"
            )
        use_strategies(self._strategies(results))
        self.name = text(self.study, "name") or self.directory.name
        self.scaling = text(self.study, "scaling") or "none"
        self.cases = in_order(self._cases(results), self.scaling)
        self.measured = [case for case in self.cases if case.ok]
        # Of `tessera-bench simulate`: the machine that was described, and nothing was run on.
        self.machine = next(filter(None, (text(result, "simulated") for result in results.values())), None)
        self.made = "simulated" if self.machine else "measured"
        ties = get(self.summary, "ties")
        for case in self.measured:
            case.tied = isinstance(ties, list) and case.id in ties
        self._check_summary()

    def _strategies(self, results):
        """As the study lists them; without a list, those of its cases in alphabetical order."""
        listed = self.study.get("strategies")
        if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            return listed
        return sorted({text(result, "factors", "strategy") or "" for result in results.values()})

    def _problem(self, path, what):
        self.problems.append((path, what))
        print(f"warning: {self.directory / path}: {what}", file=sys.stderr)

    def _read(self, path, required=True):
        """The object in a file; None, with the reason noted, if there is none that can be used."""
        try:
            content = json.loads(read_text(self.directory / path))
        except FileNotFoundError:
            if required:
                self._problem(path, "is missing")
            return None
        except (OSError, ValueError, RecursionError) as error:
            what = error.strerror if isinstance(error, OSError) else f"is no JSON ({error})"
            self._problem(path, what)
            return None
        if not isinstance(content, dict):
            self._problem(path, "is not an object of tessera-bench")
            return None
        version = content.get("schema_version")
        if version != SCHEMA_VERSION or isinstance(version, bool):
            shown = "no schema_version" if version is None else f"schema_version {version!r}"
            self._problem(path, f"has {shown}; this report reads version {SCHEMA_VERSION}")
            return None
        noted = set()

        def note(key, what):
            if key not in noted:
                noted.add(key)
                self._problem(path, f"{key} = {what}")

        return located(content, note)

    def _launches(self):
        launches = {}
        for file in sorted(self.directory.glob("launches/*.json")):
            content = self._read(f"launches/{file.name}")
            if content is not None:
                launches[text(content, "name") or file.stem] = content
        return launches

    def _results(self):
        results = {}
        for file in sorted(self.directory.glob("cases/*/result.json")):
            name = file.parent.name
            path = f"cases/{name}/result.json"
            content = self._read(path)
            if content is None:
                continue
            if text(content, "id") != name:
                self._problem(path, f"is of a case {get(content, 'id')!r}, not of this one")
            elif text(content, "status") is None:
                self._problem(path, "has no status")
            else:
                results[name] = content
        return results

    def _cases(self, results):
        rows = {text(row, "id"): row for row in table(self.summary, "cases")}
        entries = {entry["id"]: entry for entry in table(self.study, "cases") if text(entry, "id")}
        # Cases of an earlier version of the study file are results all the same.
        for name in results:
            entries.setdefault(name, {"id": name})
        cases = []
        for name, entry in entries.items():
            result = results.get(name, {})
            launch = self.launches.get(text(result, "launch"))
            blocks = get(self._read(f"cases/{name}/steps.json", required=False), "rounds")
            blocks = blocks if isinstance(blocks, list) else []
            steps = [second for block in blocks for second in numbers({"": block}, "")]
            lock = self.directory / "cases" / name / "lock"
            cases.append(Case(entry, result, rows.get(name, {}), launch, steps, lock))
        return cases

    def _check_summary(self):
        """Ratios come from the summary, which must be of these results."""
        if self.measured and not self.summary:
            self._problem("summary.json", "is missing or unusable: no speed-up and no efficiency")
            return
        old = [case.id for case in self.measured if case.derived("step_seconds_median") is None]
        if old:
            more = f" and {len(old) - 1} more" if len(old) > 1 else ""
            what = f"is older than the results of {old[0]}{more}: no ratios for them"
            self._problem("summary.json", what)

    def by_id(self, name):
        return next((case for case in self.cases if case.id == name), None)

    def baseline_of(self, case):
        """The case that the ratios of this one are relative to."""
        return self.by_id(text(case.row, "baseline"))
