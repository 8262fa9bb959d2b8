# SPDX-License-Identifier: Apache-2.0
"""Compares predictions with measurements: their errors, the cost of choosing a case by them, and planned bytes."""

from collections import defaultdict, namedtuple
from statistics import median

from .contents import Points
from .drawing import NothingToShow
from .fields import get
from .numbers import percent, plural, seconds, times

# `advised` is predicted to be the fastest of the cases of a work on as many ranks.
Advice = namedtuple("Advice", "cases advised fastest regret")


def advice(cases):
    """Returns an Advice for each work and number of ranks and threads. One rank leaves no choice."""
    groups, found = defaultdict(list), []
    for case in cases:
        if case.predicted and case.ranks != 1:
            groups[case.work, case.factors.get("distributed.threads"), case.ranks].append(case)
    for own in groups.values():
        advised = min(own, key=lambda case: case.predicted)
        fastest = min(own, key=lambda case: case.step())
        found.append(Advice(own, advised, fastest, advised.step() / fastest.step() - 1))
    return [one for one in found if len(one.cases) > 1]


def equal(study):
    """States whether bytes and memory are as planned."""
    said = []
    for key, what in (("traffic", "Calls and bytes"), ("memory", "Memory")):
        found = [get(case.result, key, "as_planned") for case in study.cases]
        found = [as_planned for as_planned in found if isinstance(as_planned, bool)]
        if found:
            said.append(f"{what}: planned and measured are equal for {sum(found)} of {plural(len(found), 'case')}.")
    return said


def gain(study):
    """States the largest predicted gain of a case over the baseline of its work, beside the measured one."""
    gains = {case: case.baseline.predicted / case.predicted * case.global_batch / case.baseline.global_batch
             for case in study.measured if case.baseline and case.predicted and case.baseline.predicted and case.speedup}  # fmt: skip
    if not gains or study.doubt:
        return []
    best = max(gains, key=gains.get)
    return [f"The largest predicted gain over the baseline is {times(gains[best])}, for {best.name}; measured: {times(best.speedup.value)}."]


def predictions(study):
    said = []
    for shared, which in ((False, "with a processor for each rank"), (True, "whose ranks share processors")):
        cases = [case for case in study.measured if case.predicted and case.oversubscribed is shared]
        errors = [abs(case.predicted / case.step() - 1) for case in cases]
        if errors:
            said.append(
                f"For {plural(len(cases), 'case')} {which}, the predicted step is off by "
                f"{percent(median(errors), 1)} in the median and by {percent(max(errors), 1)} at most, and by less "
                f"than 20 % for {sum(error <= 0.2 for error in errors)}."
            )
        found = advice(cases) if study.ratios and not study.doubt else []
        if found:
            worst, middle = max(found, key=lambda one: one.regret), median(one.regret for one in found)
            also = f", and {percent(middle, 1)} in the median of {len(found)} choices," if len(found) > 1 else ""
            said.append(
                f"The case that is predicted to be the fastest takes{' at most' if also else ''} "
                f"{percent(worst.regret, 1)} longer than the fastest{also} among cases {which}: {worst.advised.name} "
                f"({seconds(worst.advised.step(), 4)}), where {worst.fastest.name} "
                f"({seconds(worst.fastest.step(), 4)}) is the fastest."
            )
    said += gain(study) + equal(study)
    if not said:
        raise NothingToShow("no case has a prediction and a measurement of its step")
    return Points("", said)
