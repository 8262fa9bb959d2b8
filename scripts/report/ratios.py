# SPDX-License-Identifier: Apache-2.0
"""Ratios of cases, with 95 % intervals between rounds, as bench/METHOD.md (Statistics) defines them."""

import math
from collections import Counter, namedtuple
from statistics import median

# `low` and `high` are None if there are too few rounds for an interval.
Ratio = namedtuple("Ratio", "value low high", defaults=(None, None))

SMALLEST = 1.03  # smaller differences are never significant
ENOUGH_ROUNDS = 6
SHARES = (1.0, 0.5, 0.0)  # of the product in the speed of the machine


def median_of(values):
    """Returns the median, with its interval by order statistics."""
    values, tail, outside = sorted(values), 0.0, 0
    while outside < len(values) / 2:
        tail += math.comb(len(values), outside) / 2 ** len(values)
        if tail > 0.025:
            break
        outside += 1
    ends = (values[outside - 1], values[-outside]) if outside else ()
    return Ratio(median(values), *ends)


def _scatter(values):
    middle = median(values)
    return median(abs(value - middle) for value in values) / middle


def _numbered(rounds):
    """Returns (launch, number in the launch) -> round."""
    seen, found = Counter(), {}
    for one in rounds:
        found[one.launch, seen[one.launch]] = one
        seen[one.launch] += 1
    return found


def _paired(slower, faster):
    """Returns the ratio of the rounds of one launch, corrected for the speed of the machine if they then scatter less."""
    base = _numbered(faster)
    pairs = [(one, base[key]) for key, one in _numbered(slower).items() if key in base]
    raw = [one.seconds / other.seconds for one, other in pairs]
    if not raw:
        return None
    tried = [raw]
    for share in SHARES:
        if None not in [one.machine(share) for pair in pairs for one in pair]:
            values = [one.seconds / one.machine(share) / (other.seconds / other.machine(share)) for one, other in pairs]
            level = median(one.machine(share) for one, _ in pairs) / median(other.machine(share) for _, other in pairs)
            tried.append([value * level for value in values])
    return median_of(min(tried, key=_scatter))


def of_samples(slower, faster):
    """Returns how many times as long a case takes for a sample as another one of the same study."""
    known = faster.samples_per_second / slower.samples_per_second
    if slower.result.get("simulated"):
        return Ratio(known, known, known)
    ratio = _paired(slower.rounds, faster.rounds)
    if ratio is None or None in (slower.global_batch, faster.global_batch):
        return Ratio(known)
    samples = faster.global_batch / slower.global_batch
    return Ratio(*(end and end * samples for end in ratio))
