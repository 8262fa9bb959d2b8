# SPDX-License-Identifier: Apache-2.0
"""What it costs to believe the predictions: how fast the case is that they call the fastest."""

from . import layout, numbers
from .answer import named
from .document import Column, Table
from .series import facets


def _predicted(case):
    return case.number("prediction", "step_seconds")


def choices(study):
    """(title of the work, cases on as many ranks) wherever there was something to choose."""
    found, seen = [], set()
    for facet in facets(study.cases, study.scaling):
        groups = {}
        for case in facet.measured:
            if _predicted(case) and not case.oversubscribed:
                groups.setdefault((case.ranks, case.global_batch), []).append(case)
        for cases in groups.values():
            names = frozenset(case.id for case in cases)
            if len(cases) > 1 and names not in seen:
                seen.add(names)
                found.append((facet.title, cases))
    return found


def regret_of(cases):
    """(advised case, fastest case, how much longer the step of the first takes)"""
    advised = min(cases, key=_predicted)
    fastest = min(cases, key=lambda case: case.step("median"))
    return advised, fastest, advised.step("median") / fastest.step("median") - 1


def regret(study):
    layout.needs_ratios(study)
    rows = [(title, cases[0].ranks, len(cases), *regret_of(cases)) for title, cases in choices(study)]
    if not rows:
        raise layout.NothingToShow("no work was done in several ways with a processor for each rank")

    def step(case):
        return numbers.seconds(case.step("median"), 4)

    columns = [
        Column("work", lambda row: row[0], ""),
        Column("ranks", lambda row: numbers.count(row[1])),
        Column("cases", lambda row: row[2]),
        Column("predicted to be fastest", lambda row: named(row[3]), ""),
        Column("step", lambda row: step(row[3])),
        Column("fastest", lambda row: named(row[4]), ""),
        Column("step", lambda row: step(row[4])),
        Column("regret", lambda row: numbers.percent(row[5], 1)),
    ]
    worst = max(row[5] for row in rows)
    caption = (
        "Regret: how much longer the step of the case takes that predictions call the fastest of all "
        f"strategies and meshes on as many ranks; {numbers.percent(worst, 1)} at most."
    )
    return Table(rows, columns, caption)
