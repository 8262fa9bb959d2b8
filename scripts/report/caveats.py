# SPDX-License-Identifier: Apache-2.0
"""Warns where results say less than they seem to."""

from collections import defaultdict

from .contents import Points
from .drawing import NothingToShow
from .fields import get, number, positive
from .numbers import percent, plural, seconds

# A test of a case, and the sentence about the cases for which it holds. None of them holds for a simulated case.
OF_CASES = (
    (lambda case: case.status == "invalid", "{} gave wrong results and took part in no comparison"),
    (lambda case: case.oversubscribed and case.ok,
     "{} had more ranks than processors. Such times show how ranks take turns, not how a mesh scales"),
    (lambda case: case.efficiency and case.efficiency_at("ci95_high") > 1.1 and not case.result.get("simulated"),
     "{} had an efficiency far above 100 %, so the baseline was disturbed or short of cache"),
    (lambda case: case.ok and not case.result.get("simulated") and case.step("ci95_low") is None,
     "{} had too few rounds (fewer than 6) for a confidence interval, so no difference is significant"),
    (lambda case: (number(case.row, "mfu") or 0) > 1,
     "{} had an MFU above 100 %, which is impossible. Something else used the processors whenever the GEMM peak was "
     "measured; do not use the MFU of this launch"),
    (lambda case: case.ok and get(case.launch, "provenance", "git_dirty") is True,
     "{} ran a program with uncommitted changes, which its revision does not identify"),
)  # fmt: skip


def caveats(study):
    items = []
    for test, sentence in OF_CASES:
        cases = [case for case in study.cases if test(case)]
        if cases:
            more = f", and {len(cases) - 4} more" if len(cases) > 4 else ""
            names = "; ".join(case.name + (f" ({case.work})" if case.work else "") for case in cases[:4])
            if len(cases) == len(study.measured) > 1:
                items.append(f"{sentence.format(f'All {len(cases)} cases')}.")
            else:
                items.append(f"{sentence.format(plural(len(cases), 'case'))}: {names}{more}.")
    items = [said for said in (_drift(study), _one_rank_spread(study)) if said] + items
    if not items:
        raise NothingToShow("nothing speaks against the results")
    return Points("", items)


def _one_rank_spread(study):
    """On one rank all strategies do the same."""
    steps = defaultdict(list)
    for case in study.measured if study.ratios else ():
        if case.ranks == 1:
            steps[case.work, repr(sorted(case.other_factors().items()))].append(case.step())
    ratio, low, high = max(((max(own) / min(own), min(own), max(own)) for own in steps.values()), default=(1, 0, 0))
    if ratio <= 1.05:
        return None
    return (
        f"On one rank all strategies do the same work, but took from {seconds(low)} to {seconds(high)} a step. "
        f"Differences of {percent(ratio - 1)} are noise in this study."
    )


def _drift(study):
    drift, resolution = (positive(study.summary, "machine", key) for key in ("drift", "resolution"))
    if drift is None:
        return None
    finds = f" Those of the median case tell a difference of {percent(resolution, 1)} from none." if resolution else ""
    return (
        f"The speed of the machine varied by {percent(drift)} between rounds, measured by fixed kernels. Only ratios "
        f"that are called corrected take this into account, and only their intervals say which differences are "
        f"significant.{finds}"
    )
