# SPDX-License-Identifier: Apache-2.0
"""Groups cases that do the same work, because only these may compete, and lines of cases that differ in one axis."""

from collections import defaultdict

from .case import Case
from .style import strategy_order


def is_choice(key):
    """True for a factor that leaves the work as it is, as in bench/results/scaling.cpp."""
    is_distributed = key.startswith("distributed.") and key != "distributed.mixed_precision"
    return "." not in key or is_distributed or key == "training.activation_checkpointing"


def factor_name(key):
    """'distributed.virtual_stages' -> 'virtual stages', 'model.kind' -> 'model'"""
    return key.removesuffix(".kind").rpartition(".")[2].replace("_", " ")


def factor_value(value):
    """Returns None for a factor that a case does not have."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, (int, float)) else None if value is None else str(value)


def shown_factors(factors, keys):
    """'microbatches 8, schedule 1f1b', without the factors that a case does not have."""
    known = [key for key in keys if factors.get(key) is not None]
    return ", ".join(f"{factor_name(key)} {factor_value(factors[key])}" for key in known)


def varied(settings):
    """Returns the keys whose values are not the same in all of the settings."""
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1]


class Work:
    """The cases that do one amount of work."""

    def __init__(self, title, cases):
        self.title, self.cases = title, sorted(cases, key=Case.order)
        self.measured = [case for case in self.cases if case.ok]
        for case in cases:
            case.work = title

    @property
    def best(self):
        """The fastest case, or None. The summary decides between equal ones."""
        return max(self.measured, key=lambda case: (case.samples_per_second, case.standing == "fastest"), default=None)

    @property
    def ranks(self):
        """The ranks on which cases are explained: as many as the fastest has, or the most if the baseline has as many."""
        if self.best.baseline and self.best.baseline.ranks != self.best.ranks:
            return self.best.ranks
        return max((case.ranks for case in self.measured if case.ranks), default=None)


def works_of(cases, scaling):
    """Returns the works in the order of the cases. A title names as few factors as tell the works apart."""
    batch = "batch_per_rank" if scaling == "weak" else "global_batch"
    settings = [{batch: case.factors.get(batch), **{k: v for k, v in case.other_factors().items() if not is_choice(k)}}
                for case in cases]  # fmt: skip
    keys = sorted(varied(settings), key=lambda key: key != "model.kind")
    distinct = len({repr(one) for one in settings})
    for key in reversed(keys):
        fewer = [other for other in keys if other != key]
        if len({shown_factors(one, fewer) for one in settings}) == distinct:
            keys = fewer
    found = defaultdict(list)
    for case, one in zip(cases, settings):
        # A work may have none of the factors, because another grid gave them.
        found[shown_factors(one, keys) or ("all other cases" if distinct > 1 else "")].append(case)
    return [Work(title, own) for title, own in found.items()]


def lines_of(cases):
    """Returns (axis, cases) for each of the longest lines of cases of one strategy in which only the size of this axis
    varies, and (None, [case]) for other cases. One rank has no choices, so a case on it belongs to every line."""
    runs = defaultdict(list)
    for case in cases:
        own = [other for other in cases if other.strategy == case.strategy]
        settings = {repr(sorted(other.other_factors().items())) for other in (own if case.ranks == 1 else [case])}
        for axis in {name for other in own for name, _ in other.axes}:
            rest = tuple(sorted((n, s) for n, s in case.axes if n != axis and s > 1))
            for setting in settings:
                runs[(case.strategy, axis, rest, setting)].append(case)
    found = [(axis, sorted(run, key=Case.order)) for (_, axis, _, _), run in sorted(runs.items())
             if 1 < len({case.ranks for case in run}) == len(run)]  # fmt: skip
    joined = {case.id for _, line in found for case in line}
    found += [(None, [case]) for case in cases if case.id not in joined]
    return sorted(found, key=lambda line: (strategy_order(line[1][0].strategy), -len(line[1])))
