# SPDX-License-Identifier: Apache-2.0
"""Which cases belong together: facets share all factors but strategy, mesh and ranks; in a series of a
facet only the size of one axis varies, and only the points of a series are joined."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

from .style import strategy_order


def _settings(case, weak):
    """The factors that make the work of a case, and how it is cut up, as far as they apply to it."""
    batch = {"global_batch": case.global_batch}
    if weak:
        known = case.global_batch and case.ranks
        batch = {"batch_per_rank": case.global_batch / case.ranks if known else None}
    return {**batch, **case.other_factors()}


def _agrees(settings, facet):
    return all(key in facet and facet[key] == value for key, value in settings.items())


class Facet:
    def __init__(self, settings, varied, cases):
        self.settings, self.cases = settings, cases
        shown = [(key, settings[key]) for key in varied if key in settings]
        self.title = ", ".join(f"{factor_name(key)} {factor_value(value)}" for key, value in shown)

    @property
    def measured(self):
        return [case for case in self.cases if case.ok]


def factor_name(key):
    names = {"global_batch": "global batch", "batch_per_rank": "batch per rank"}
    return names.get(key, key.rpartition(".")[2].replace("_", " "))


def factor_value(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        return f"{value:,g}" if value == int(value) and abs(value) < 1e6 else f"{value:,}"
    return str(value)


def facets(cases, scaling):
    """Every facet holds the cases that agree with it; a factor a case does not have (because it does
    not apply to it) disagrees with nothing."""
    weak = scaling == "weak"
    all_settings = []
    for case in cases:
        settings = _settings(case, weak)
        if settings not in all_settings:
            all_settings.append(settings)
    full = [
        one
        for one in all_settings
        if not any(other != one and _agrees(one, other) for other in all_settings)
    ]
    keys = sorted({key for settings in full for key in settings}, key=_key_order)
    varied = [key for key in keys if len({repr(one.get(key)) for one in full}) > 1]
    full.sort(key=lambda one: [_value_order(one.get(key)) for key in varied])
    return [
        Facet(one, varied, [case for case in cases if _agrees(_settings(case, weak), one)])
        for one in full
    ]


def _key_order(key):
    return ({"global_batch": 0, "batch_per_rank": 0, "microbatches": 1}.get(key, 2), key)


def _value_order(value):
    is_number = isinstance(value, (int, float))
    return (not is_number, value if is_number else 0, str(value))


def mesh_order(case):
    return (case.ranks or 0, len(case.axes), case.mesh)


def case_order(case):
    return (strategy_order(case.strategy), mesh_order(case))


@dataclass
class Series:
    """Cases of one strategy, by the number of ranks; `axis` is what varies (None: one point)."""

    strategy: str
    axis: Optional[str]
    cases: list


def series(cases):
    """The longest runs in which one axis varies; cases in no run are series of their own."""
    runs = defaultdict(list)
    for case in cases:
        axes = {name for other in cases if other.strategy == case.strategy for name, _ in other.axes}
        for axis in axes:
            rest = tuple(sorted((n, s) for n, s in case.axes if n != axis and s > 1))
            runs[(case.strategy, axis, rest)].append(case)
    found = [
        Series(strategy, axis, sorted(run, key=mesh_order))
        for (strategy, axis, _), run in sorted(runs.items())
        if 1 < len({case.ranks for case in run}) == len(run)
    ]
    joined = {case.id for line in found for case in line.cases}
    found += [Series(case.strategy, None, [case]) for case in cases if case.id not in joined]
    return sorted(found, key=lambda line: (strategy_order(line.strategy), -len(line.cases)))
