# SPDX-License-Identifier: Apache-2.0
"""Which cases belong together: facets share all factors but strategy, mesh and ranks; in a series of a
facet only the size of one axis varies, and only the points of a series are joined."""

from collections import defaultdict

from .style import strategy_order


def _settings(case, weak):
    """The factors that make the work of a case, and how it is cut up, as far as they apply to it."""
    batch = ("batch_per_rank", case.batch_per_rank) if weak else ("global_batch", case.global_batch)
    return dict([batch, *case.other_factors().items()])


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


class Series:
    """Cases of one strategy, by the number of ranks; `axis` is what varies (None: one point)."""

    def __init__(self, strategy, axis, cases):
        self.strategy, self.axis = strategy, axis
        self.cases = sorted(cases, key=mesh_order)


def series(cases):
    """The longest runs in which one axis varies; cases in no run are series of their own."""
    by_strategy = defaultdict(list)
    for case in cases:
        by_strategy[case.strategy].append(case)
    result = []
    for strategy in sorted(by_strategy, key=strategy_order):
        result += _of_strategy(strategy, by_strategy[strategy])
    return result


def _of_strategy(strategy, members):
    runs = defaultdict(list)
    for case in members:
        for axis in {name for other in members for name, _ in other.axes}:
            rest = tuple(sorted((n, s) for n, s in case.axes if n != axis and s > 1))
            runs[(axis, rest)].append(case)
    found, joined = [], set()
    for (axis, _), run in sorted(runs.items(), key=lambda item: (-len(item[1]), item[0])):
        if len({case.ranks for case in run}) < 2 or len(run) != len({case.ranks for case in run}):
            continue
        found.append(Series(strategy, axis, run))
        joined.update(case.id for case in run)
    found += [Series(strategy, None, [case]) for case in members if case.id not in joined]
    return found
