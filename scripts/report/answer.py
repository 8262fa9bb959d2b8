# SPDX-License-Identifier: Apache-2.0
"""States which case is fastest, by how much, and why the others are slower."""

from collections import Counter

from .contents import Points, Text
from .numbers import RATIO, between, percent, seconds, significant, times
from .style import PHASES, strategy_order


def statuses(cases):
    """'1 oom, 2 timeout'"""
    return ", ".join(f"{n} {status}" for status, n in sorted(Counter(case.status for case in cases).items()))


def samples(case):
    return f"{significant(case.samples_per_second, 4)} samples/s"


def _speed(case):
    return f"{samples(case)} ({seconds(case.step(), 4)} a step)"


def blocks(study):
    """Returns the answer for one work; for several, a list with an answer for each."""
    if not study.measured:
        return [Text(f"No case was {study.made}: {statuses(study.cases)}. “All cases” has the reasons.", "lead")]
    if len(study.works) == 1:
        said = [Text(_fastest(study, study.works[0]), "lead")]
    else:
        head = f"The study has {len(study.works)} amounts of work. Only cases that do the same work are compared."
        said = [Text(head, "lead"), Points("", [f"{work.title}: {_fastest(study, work)}" for work in study.works])]
    for work in study.works:
        if study.ratios and (reasons := _reasons(study, work)):
            title = "Why the others are slower" + (f": {work.title}" if work.title else "")
            said.append(Points(title, reasons, folded=bool(work.title)))
    return said


def _fastest(study, work):
    best, number = work.best, len(work.measured)
    if best is None:
        return f"no case was {study.made} ({statuses(work.cases)})."
    # Cases that were measured under different conditions need not be the fastest.
    superlative = "the fastest of" if study.ratios else "the case with the most samples/s of"
    among = f"{superlative} {number} {study.made} cases" if number > 1 else f"the only {study.made} case"
    said = f"{best.name} is {among}: {_speed(best)}.{_against_baseline(best)}"
    ties = [f"{case.name} ({samples(case)})" for case in work.measured if case.tied and case is not best]
    if ties and study.ratios:
        more = [f"{len(ties) - 4} more"] if len(ties) > 4 else []
        said += f" These measurements cannot tell it apart from {' or '.join(ties[:4] + more)}."
    wider = {f"{case.ranks:g}" for case in work.measured if case.ranks and best.ranks and case.ranks > best.ranks}
    if wider and study.ratios:
        said += f" No case on {' or '.join(sorted(wider))} ranks is faster than this one on {best.ranks:g}."
    return said


def _against_baseline(best):
    base = best.baseline
    if base in (None, best):
        return ""
    said = f" That is {times(best.speedup)} the {samples(base)} of {base.name}"
    if best.efficiency and best.ranks and base.ranks and best.ranks != base.ranks:
        said += f", an efficiency of {percent(best.efficiency)} on {best.ranks:g} ranks against {base.ranks:g}"
    if None not in best.corrected:
        said += f"; corrected round by round for the speed of the machine, {between(*best.corrected, RATIO, 3)}"
    return said + "."


def _reasons(study, work):
    """Returns a sentence for each strategy, on as many ranks as the fastest case."""
    found = []
    for strategy in sorted({case.strategy for case in work.cases} if work.best else (), key=strategy_order):
        own = [case for case in work.cases
               if case.strategy == strategy and case.ranks == work.best.ranks and case is not work.best]  # fmt: skip
        rival = max((case for case in own if case.ok), key=lambda case: case.samples_per_second, default=None)
        if rival and not rival.tied:
            found.append(f"{rival.name}: {_compared(rival, work.best)}")
        elif own and not rival:
            # A failure says more than a case that was left out.
            first = min(own, key=lambda case: (not case.reason, case.status == "skipped"))
            reason = f": {first.reason}" if first.reason else ""
            found.append(f"{strategy} was not {study.made} on {first.ranks or 0:g} ranks ({statuses(own)}){reason}.")
    return found


def _compared(rival, best):
    """Names the phases that make up most of the difference. They are scaled to the measured step."""
    fewer = 1 - rival.samples_per_second / best.samples_per_second
    if fewer < 0.0005:
        return "as fast as the fastest."
    said = f"{_speed(rival)}, {percent(fewer, 1)} fewer."
    if rival.phases and best.phases:
        more = {name: rival.phases[name] - best.phases[name] for name in PHASES}
        gained = sum(value for value in more.values() if value > 0)
        main = sorted((name for name in PHASES if more[name] > 0.25 * gained > 0), key=more.get, reverse=True)
        if main:
            phases = [f"{PHASES[name][0]} (+{seconds(more[name], 2)})" for name in main]
            said += f" It spends more on {' and '.join(phases)}."
    return said
