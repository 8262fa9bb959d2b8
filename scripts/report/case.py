# SPDX-License-Identifier: Apache-2.0
"""One case of a study: its factors, its result, and its ratios to the baseline."""

import re
from collections import Counter

from .fields import get, mapping, number, positive, table, text
from .numbers import Ratio
from .style import PHASES, STATUSES, strategy_order

MEASURED = ("ok", "unverified")
WIDEST = 10  # an interval whose ends are further apart, as a ratio, says nothing
ENOUGH_ROUNDS = 6  # for an interval


class Case:
    """`entry` is from study.json, `result` is result.json, `row` is from summary.json. Each may be {}. `launches` are the
    documents of all launches by name."""

    def __init__(self, entry, result, row, launches=None):
        self.entry, self.result, self.row = entry, result, row
        self.id = text(entry, "id")
        self.factors = mapping(entry, "factors") or mapping(result, "factors")
        # A grid need not name the schedule.
        if (schedule := text(result, "pipeline", "schedule")) and self.factors:
            self.factors.setdefault("distributed.schedule", schedule)
        self.strategy = text(self.factors, "strategy") or "unknown"
        self.mesh = text(self.factors, "mesh") or "unknown"
        # 'data=2,model=4' -> {'data': 2, 'model': 4}
        self.axes = {name: int(size) for name, size in re.findall(r"([^=,]+)=(\d+)", self.mesh)}
        self.ranks = positive(self.factors, "ranks")
        # A rank has one thread unless the study varies them, as in bench/results/scaling.cpp.
        self.cores = self.ranks and self.ranks * (positive(self.factors, "distributed.threads") or 1)
        self.global_batch = positive(self.factors, "global_batch")
        self.samples_per_second = positive(result, "samples_per_second")
        self.traffic = table(result, "traffic", "rows")
        self.predicted = positive(result, "prediction", "step_seconds")
        self.oversubscribed = get(result, "prediction", "oversubscribed") is True  # ranks share processors
        self.rounds = [one for one in table(result, "rounds") if positive(one, "seconds")]
        # Documents of the launches that have rounds of the case; {} for one that is lost.
        names = dict.fromkeys(filter(None, [*(text(one, "launch") for one in self.rounds), text(result, "launch")]))
        self.launches = [(launches or {}).get(name, {}) for name in names]
        self.status, self.reason = self._status()
        self.ok = self.status in MEASURED
        # The study completes these when it has read all cases.
        self.name, self.work = f"{self.strategy} on {self.mesh}", ""
        self.same_as = None  # the case that stands for all that are the same program on one rank
        self.baseline = self.speedup = self.efficiency = None  # the latter are Ratios
        self.corrected = False  # these, for the speed of the machine
        self.behind = None  # Ratio of the time for a sample to that of the fastest case on as many ranks

    def _status(self):
        skip = text(self.entry, "skip_reason")
        status, reason = text(self.result, "status"), text(self.result, "reason")
        if status is None:
            ended = number(self.row, "crashes")
            return ("skipped", skip) if skip else ("pending", f"launches that ended during it: {ended:g}" if ended else "not run yet")
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

    def step(self):
        """Returns the median."""
        return positive(self.result, "step_seconds", "median")

    @property
    def interval(self):
        """Returns the 95 % interval of the step, or None if it has none or it means nothing. A launch that was cut short
        gives its rounds, but is none of the launches between which an interval is known."""
        low, high = (positive(self.result, "step_seconds", f"ci95_{end}") for end in ("low", "high"))
        return (low, high) if low and high and high <= WIDEST * low else None

    @property
    def no_interval(self):
        """Returns why there is no interval."""
        said = text(self.result, "step_seconds", "ci95_problem")
        few = len(self.rounds) < ENOUGH_ROUNDS
        return said or (f"{len(self.rounds)} rounds, where an interval needs {ENOUGH_ROUNDS}" if few else
                        "rounds or launches differ too much for an interval")  # fmt: skip

    def derived(self, key):
        """Returns a ratio of the summary; None if the summary is older than the result."""
        median = number(self.row, "step_seconds_median")
        return positive(self.row, key) if median is not None and median == self.step() else None

    def over(self, fastest):
        """Returns how many times as long it takes for a sample as the fastest case on as many ranks."""
        known = fastest.samples_per_second / self.samples_per_second
        if self.result.get("simulated"):
            return Ratio(known, known, known)
        ratio, *ends = (self.derived("over_fastest_on_ranks" + end) for end in ("", "_low", "_high"))
        return Ratio(ratio, *ends) if ratio else Ratio(known)

    def compare(self, baseline):
        """Takes the ratios to the baseline from the summary. The speed-up is corrected for the speed of the machine
        where both cases have rounds in one launch."""
        own, efficiency = self.derived("speedup"), self.derived("efficiency")
        if baseline and own and efficiency:
            corrected = [self.derived("corrected_speedup" + end) for end in ("", "_low", "_high")]
            self.corrected = corrected[0] is not None
            if corrected[0] is None and self.interval and not self.result.get("simulated"):
                corrected = [own, *(own * self.step() / end for end in self.interval[::-1])]
            if None in corrected or corrected[2] > WIDEST * corrected[1]:
                corrected = [corrected[0] or own]
            self.baseline, self.speedup = baseline, Ratio(*corrected)
            self.efficiency = Ratio(*(end and end * efficiency / own for end in self.speedup))

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
    def sent(self):
        """Returns the bytes that a rank sends in a step, by axis, with the algorithms that send the fewest."""
        found = Counter()
        for row in self.traffic:
            if text(row, "axis") and text(row, "operation") != "receive":
                found[text(row, "axis")] += positive(row, "wire_bytes_per_step") or 0
        return dict(found)

    @property
    def memory(self):
        """Returns the planned bytes by role, of the rank that needs most."""
        return {role: size for role in mapping(self.result, "memory", "parts")
                if (size := positive(self.result, "memory", "parts", role))}  # fmt: skip

    @property
    def node_hours(self):
        """Returns the node-hours for a million samples."""
        nodes = positive(self.result, "case", "nodes", "count")
        return nodes and self.samples_per_second and nodes * 1e6 / self.samples_per_second / 3600

    def other_factors(self):
        """All factors besides strategy, mesh, ranks and batch."""
        usual = ("strategy", "mesh", "ranks", "global_batch", "batch_per_rank")
        return {key: value for key, value in self.factors.items() if key not in usual}
