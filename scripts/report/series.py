# SPDX-License-Identifier: Apache-2.0
"""Which cases belong together: facets share all factors but strategy, mesh and ranks; in a series of a
facet only the size of one axis varies, and only the points of a series are joined."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

from .style import strategy_order


def _settings(case, weak):
    """The factors that make the work of a case, and how it is cut up, as far as they apply to it."""
    batch = "batch_per_rank" if weak else "global_batch"
    return {batch: case.factors.get(batch), **case.other_factors()}


def _agrees(settings, facet):
    return all(key in facet and facet[key] == value for key, value in settings.items())


class Facet:
    def __init__(self, factors, cases):
        self.title = ", ".join(shown_factor(key, value) for key, value in factors.items())
        self.cases = cases
        self.measured = [case for case in cases if case.ok]


def shown_factor(key, value):
    """'distributed.prefetch', True -> 'prefetch on'"""
    name = key.rpartition(".")[2].replace("_", " ")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    return f"{name} {value:,}" if isinstance(value, (int, float)) else f"{name} {value}"


def varied(settings):
    """The factors that are not the same in all of them."""
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1]


def facets(cases, scaling):
    """In the order of the cases. Every facet holds the cases that agree with it; a factor a case does not
    have (because it does not apply to it) disagrees with nothing."""
    weak = scaling == "weak"
    found = []
    for case in cases:
        settings = _settings(case, weak)
        if settings not in found:
            found.append(settings)
    full = [one for one in found if sum(_agrees(one, other) for other in found) == 1]
    keys = varied(full)
    return [
        Facet({key: one[key] for key in keys if key in one},
              [case for case in cases if _agrees(_settings(case, weak), one)])
        for one in full
    ]  # fmt: skip


def mesh_order(case):
    return (case.ranks or 0, len(case.axes), case.mesh)


def in_order(cases, scaling):
    """By amount of work, strategy and mesh."""
    work = {}
    for index, facet in enumerate(facets(cases, scaling)):
        for case in facet.cases:
            work.setdefault(case.id, index)
    return sorted(
        cases, key=lambda case: (work[case.id], strategy_order(case.strategy), mesh_order(case))
    )


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
        own = [other for other in cases if other.strategy == case.strategy]
        for axis in {name for other in own for name, _ in other.axes}:
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
