# SPDX-License-Identifier: Apache-2.0
"""Reads a results directory of tessera-bench, as far as it can be read."""

import json
import sys
from pathlib import Path

from .case import Case
from .fields import get, located, table, text
from .files import read
from .works import find_same_programs, is_choice, shown_factors, unit_of, varied, works_of

SCHEMA_VERSION = 1


class ReportError(Exception):
    """One line for the user."""


class Study:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.problems = []  # (file below the directory, what is wrong with it)
        if not self.directory.is_dir():
            raise ReportError(f"{directory}: is not a directory")
        self.study = self._read("study.json")
        self.summary = self._read("summary.json", required=False)
        self.peers = self._read("peers.json", required=False)
        launches = {f.stem: self._read(f"launches/{f.name}") for f in sorted(self.directory.glob("launches/*.json"))}
        self.launches = {text(one, "name") or stem: one for stem, one in launches.items() if one}
        results = self._results()
        if not self.study and not results:
            raise ReportError(
                f"{directory}: holds no results of tessera-bench"
                " (no readable study.json, no readable cases/*/result.json)"
            )
        self.name = text(self.study, "name") or self.directory.name
        self.scaling = text(self.study, "scaling") or "none"
        # The machine of `tessera-bench simulate`, which runs nothing.
        self.machine = next(filter(None, (text(result, "simulated") for result in results.values())), None)
        self.made = "simulated" if self.machine else "measured"
        self.parted = "simulated" if self.machine else "instrumented"  # steps whose parts are known
        cases = self._cases(results)
        self.unit = unit_of(cases)
        self.choices = [key for key in varied([case.other_factors() for case in cases]) if is_choice(key)]
        find_same_programs(cases)
        self.works = works_of(cases, self.scaling)
        self.cases = [case for work in self.works for case in work.cases]
        self.measured = [case for case in self.cases if case.ok]
        for case in self.cases:
            settings = shown_factors(case.factors, self.choices)
            case.name += f", {settings}" if settings else ""
        for case in self.measured:
            if case.same_as:
                case.same_as.name = case.same_as.name.replace(f"{case.same_as.strategy} on {case.same_as.mesh}", "1 rank")
        self._check_summary()
        self.ratios = False
        self.doubt = self._doubt()

    @property
    def efficiency(self):
        """Returns the formula."""
        if self.unit == "core":
            return "S·p₀/p for a speed-up S on p cores, ranks × threads"
        return "T(p₀)/T(p)" if self.scaling == "weak" else "p₀·T(p₀)/(p·T(p))"

    def compare(self):
        """Computes the ratios of the cases to their baselines and, if times are reliable, to the fastest ones."""
        self.ratios = True
        by_id = {case.id: case for case in self.measured}
        for case in self.measured:
            baseline = by_id.get(text(case.row, "baseline"))
            case.compare(baseline and baseline.same_as or baseline)
        for work in self.works if not self.doubt else ():
            work.compare()

    def _doubt(self):
        """Returns why times do not tell which case is fastest, or None."""
        if self.machine or get(self.summary, "machine", "timing_reliable") is True:
            return None
        return text(self.summary, "machine", "problem") or "tessera-bench has no verdict on the times"

    def _problem(self, path, what):
        if (path, what) not in self.problems:
            self.problems.append((path, what))
            print(f"warning: {self.directory / path}: {what}", file=sys.stderr)

    def _read(self, path, required=True):
        """Returns the object in a file. If it cannot be used, notes the reason and returns {}."""
        try:
            content = json.loads(read(self.directory / path))
        except FileNotFoundError:
            if required:
                self._problem(path, "is missing")
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self._problem(path, error.strerror if isinstance(error, OSError) else f"is no JSON ({error})")
            return {}
        version = content.get("schema_version") if isinstance(content, dict) else None
        if version != SCHEMA_VERSION or isinstance(version, bool):
            shown = "no schema_version" if version is None else f"schema_version {version!r}"
            self._problem(path, f"has {shown}; this report reads version {SCHEMA_VERSION}")
            return {}
        return located(content, lambda key, what: self._problem(path, f"{key} = {what}"))

    def _results(self):
        results = {}
        for file in sorted(self.directory.glob("cases/*/result.json")):
            name, path = file.parent.name, f"cases/{file.parent.name}/result.json"
            content = self._read(path)
            if content and text(content, "id") != name:
                self._problem(path, f"is of a case {get(content, 'id')!r}, not of this one")
            elif content and text(content, "status") is None:
                self._problem(path, "has no status")
            elif content:
                results[name] = content
        return results

    def _cases(self, results):
        rows = {text(row, "id"): row for row in table(self.summary, "cases")}
        entries = {entry["id"]: entry for entry in table(self.study, "cases") if text(entry, "id")}
        # Results of cases that the study has no more may be of other work. Without a readable study, all results count.
        entries = entries or {name: {"id": name} for name in results}
        cases = []
        for name, entry in entries.items():
            result = results.get(name, {})
            cases.append(Case(entry, result, rows.get(name, {}), self.launches))
        return cases

    def _check_summary(self):
        """Baselines come from the summary, which must be as new as the results."""
        old = [case.id for case in self.measured if not case.same_as and case.derived("step_seconds_median") is None]
        if old:
            more = f" and {len(old) - 1} more" if len(old) > 1 else ""
            self._problem("summary.json", f"is missing or older than the results of {old[0]}{more}: no ratios for them")
