# SPDX-License-Identifier: Apache-2.0
"""One case of a study: what was asked for, what came of it, and what the summary derived from it."""

import fcntl
import math
import os
import re
from typing import NamedTuple

from .fields import get, mapping, number, numbers, positive, table, text, texts
from .style import PHASES, STATUSES


MEASURED = ("ok", "unverified")  # the latter had nothing that its losses could be held against


def is_locked(path):
    """Whether a launch that lives holds this file; as bench/results/case_lock.cpp."""
    try:
        # A FIFO is not waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Round(NamedTuple):
    """A block of steps, and the fixed kernels beside it."""

    launch: str
    at: float  # seconds since the launch began
    seconds: float  # of a step
    machine: float  # the geometric mean of both kernels

    @classmethod
    def of(cls, entry):
        at, step = number(entry, "at"), positive(entry, "seconds")
        kernels = [positive(entry, "machine", f"{k}_seconds") for k in ("product", "memory")]
        if None in (at, step, *kernels):
            return None
        return cls(text(entry, "launch") or "", at, step, math.sqrt(math.prod(kernels)))


class Case:
    """`entry` is of study.json, `result` of result.json, `row` of summary.json; each may be {}."""

    def __init__(self, entry, result, row, launch=None, steps=(), lock=""):
        self.entry, self.result, self.row, self.launch = entry, result, row, launch
        self.id = text(entry, "id")
        self.factors = mapping(entry, "factors") or mapping(result, "factors")
        self.steps = [second for second in steps if second is not None and second > 0]
        self.strategy = text(self.factors, "strategy") or "unknown"
        self.mesh = text(self.factors, "mesh") or "unknown"
        # 'data=2,model=4' -> (('data', 2), ('model', 4))
        self.axes = tuple((n, int(size)) for n, size in re.findall(r"([^=,]+)=(\d+)", self.mesh))
        self.ranks = positive(self.factors, "ranks")
        self.global_batch = positive(self.factors, "global_batch")
        self.status, self.reason = self._status(lock)
        self.ok = self.status in MEASURED
        self.tied = False  # with the best case of the study

    def crosses_nodes(self, axes):
        """'data' or 'data+fsdp'."""
        return any(axis in texts(self.result, "case", "nodes", "across") for axis in axes.split("+"))

    def _status(self, lock):
        skip = text(self.entry, "skip_reason")
        status, reason = text(self.result, "status"), text(self.result, "reason")
        if status is None:
            return ("skipped", skip) if skip else ("pending", "not run yet")
        if status == "running":
            since = f"begun at {text(self.result, 'started') or 'an unknown time'}"
            if is_locked(lock):
                return "running", since
            return "stale", f"{since}; its launch ended during the case"
        if status not in STATUSES:
            return "failed", f"the status '{status}' is not known"
        if status in MEASURED and None in (self.step("median"), self.samples_per_second):
            return "failed", "its result is measured, but has no step time"
        return status, reason

    def number(self, *path):
        return number(self.result, *path)

    def step(self, key):
        return positive(self.result, "step_seconds", key)

    @property
    def rounds(self):
        """Those that have everything, in the order in which they were made."""
        made = [Round.of(entry) for entry in table(self.result, "rounds")]
        return [one for one in made if one]

    @property
    def samples_per_second(self):
        return positive(self.result, "samples_per_second")

    def derived(self, key):
        """A ratio of the summary, unless that was made from other numbers than the result has."""
        median = number(self.row, "step_seconds_median")
        if median is None or median != self.step("median"):
            return None
        return positive(self.row, key)

    @property
    def phases(self):
        """The mean rank's seconds in each phase of the instrumented step; empty without a breakdown."""
        found = {name: self.number("breakdown", name, "mean_rank_seconds") for name in PHASES}
        known = any(value is not None for value in found.values())
        return {name: value or 0.0 for name, value in found.items()} if known else {}

    @property
    def communication_share(self):
        total = sum(self.phases.values())
        return (self.phases["communication"] + self.phases["idle"]) / total if total > 0 else None

    @property
    def product_share(self):
        """Of matrix products, in the instrumented step."""
        step = positive(self.result, "breakdown", "step_seconds")
        products = self.number("breakdown", "products", "mean_rank_seconds")
        return products / step if step and products is not None else None

    @property
    def traffic(self):
        return table(self.result, "traffic", "rows")

    def bytes_of(self, kind):
        """Payload bytes of the verification, `kind` is planned or measured; None if not known."""
        if not isinstance(get(self.result, "traffic", "rows"), list):
            return None
        parts = [number(row, f"{kind}_payload_bytes") for row in self.traffic]
        return None if None in parts else sum(parts)

    def losses(self, key):
        return numbers(self.result, "loss", key)

    @property
    def prediction_error(self):
        """Predicted over measured step time, less one; None without both."""
        predicted, measured = self.number("prediction", "step_seconds"), self.step("median")
        return predicted / measured - 1 if self.ok and predicted and measured else None

    @property
    def oversubscribed(self):
        """Whether its ranks shared processors."""
        return get(self.result, "prediction", "oversubscribed") is True

    @property
    def verdict(self):
        return text(self.result, "loss", "verdict")

    def other_factors(self):
        """What a grid varied besides strategy, mesh, ranks and batch."""
        usual = ("strategy", "mesh", "ranks", "global_batch", "batch_per_rank")
        return {key: value for key, value in self.factors.items() if key not in usual}
