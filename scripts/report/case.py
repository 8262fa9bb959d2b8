# SPDX-License-Identifier: Apache-2.0
"""One case of a study: its factors, its result, and its ratios to the baseline."""

import re

from .fields import get, mapping, number, positive, table, text
from .style import PHASES, STATUSES, strategy_order

MEASURED = ("ok", "unverified")


class Case:
    """`entry` is from study.json, `result` is result.json, `row` is from summary.json. Each may be {}."""

    def __init__(self, entry, result, row, launch=None):
        self.entry, self.result, self.row, self.launch = entry, result, row, launch
        self.id = text(entry, "id")
        self.factors = mapping(entry, "factors") or mapping(result, "factors")
        # A grid need not name the schedule.
        if (schedule := text(result, "pipeline", "schedule")) and self.factors:
            self.factors.setdefault("distributed.schedule", schedule)
        self.strategy = text(self.factors, "strategy") or "unknown"
        self.mesh = text(self.factors, "mesh") or "unknown"
        # 'data=2,model=4' -> (('data', 2), ('model', 4))
        self.axes = tuple((n, int(size)) for n, size in re.findall(r"([^=,]+)=(\d+)", self.mesh))
        self.ranks = positive(self.factors, "ranks")
        self.global_batch = positive(self.factors, "global_batch")
        self.samples_per_second = positive(result, "samples_per_second")
        self.verdict = text(result, "loss", "verdict")
        self.traffic = table(result, "traffic", "rows")
        self.memory = positive(result, "memory", "planned_bytes")  # of the rank that needs most
        self.predicted = positive(result, "prediction", "step_seconds")
        self.oversubscribed = get(result, "prediction", "oversubscribed") is True  # ranks share processors
        self.status, self.reason = self._status()
        self.ok = self.status in MEASURED
        # The study completes these when it has read all cases.
        self.name, self.work = f"{self.strategy} on {self.mesh}", ""
        self.standing = None  # among the cases of the same work: "fastest" or "tied"
        self.baseline = self.speedup = self.efficiency = None
        # Medians of rounds and their intervals, corrected for the speed of the machine: the speed-up, and the time for
        # a sample over that of the fastest case.
        self.corrected, self.behind = [None] * 3, [None] * 3

    def _status(self):
        skip = text(self.entry, "skip_reason")
        status, reason = text(self.result, "status"), text(self.result, "reason")
        if status is None:
            return ("skipped", skip) if skip else ("pending", "not run yet")
        if status == "running":
            return status, f"begun at {text(self.result, 'started') or 'an unknown time'}, and not finished"
        if status not in STATUSES:
            return "failed", f"the status '{status}' is not known"
        if status in MEASURED and None in (self.step(), self.samples_per_second):
            return "failed", "its result is measured, but has no step time"
        return status, reason

    def order(self):
        """Sorts by strategy, then by ranks and mesh."""
        return strategy_order(self.strategy), self.ranks or 0, len(self.axes), self.mesh

    def number(self, *path):
        return number(self.result, *path)

    def step(self, key="median"):
        return positive(self.result, "step_seconds", key)

    def derived(self, key):
        """Returns a ratio of the summary; None if the summary is older than the result."""
        median = number(self.row, "step_seconds_median")
        return positive(self.row, key) if median is not None and median == self.step() else None

    def compare(self, baseline):
        """Takes the ratios from the summary, if the baseline is among the cases."""
        self.standing = text(self.row, "standing") if self.derived("step_seconds_median") else None
        self.behind = self._interval("over_fastest")
        if baseline and self.derived("speedup"):
            self.baseline, self.speedup, self.efficiency = baseline, self.derived("speedup"), self.derived("efficiency")
            self.corrected = self._interval("corrected_speedup")

    def _interval(self, key):
        return [self.derived(key + end) for end in ("", "_low", "_high")]

    @property
    def tied(self):
        return self.standing == "tied"

    def efficiency_at(self, key):
        """Returns the efficiency for another step time: 'ci95_low' or 'ci95_high'."""
        return self.efficiency * self.step() / (self.step(key) or self.step())

    @property
    def phases(self):
        """Mean seconds of a rank in each phase. The instrumented step is scaled to the measured one.
        Empty without a breakdown."""
        found = {name: self.number("breakdown", name, "mean_rank_seconds") or 0.0 for name in PHASES}
        scale = self.step() / total if self.step() and (total := sum(found.values())) > 0 else 0
        return {name: value * scale for name, value in found.items()} if scale else {}

    def share(self, *names):
        """Returns the part of the step that phases take; None without a breakdown."""
        return sum(self.phases[name] for name in names) / self.step() if self.phases else None

    @property
    def rounds(self):
        """(launch, seconds of a step) of each round that was timed, in the order in which they ran."""
        found = [(text(one, "launch"), positive(one, "seconds")) for one in table(self.result, "rounds")]
        return [one for one in found if one[1]]

    def other_factors(self):
        """All factors besides strategy, mesh, ranks and batch."""
        usual = ("strategy", "mesh", "ranks", "global_batch", "batch_per_rank")
        return {key: value for key, value in self.factors.items() if key not in usual}
