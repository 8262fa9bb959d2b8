# SPDX-License-Identifier: Apache-2.0
"""What a reader should be careful about: signs in the results that they say less than they seem to."""

from .answer import named
from .document import Bullets, Heading, listed
from .fields import get, number, positive, table, text
from .numbers import flops, percent, plural, seconds
from .placement import numbered, placed_ranks
from .series import facets


def blocks(study):
    checks = [_wrong, _crowded, _slower_together, _few_rounds, _drift, _beyond_the_peak, _uncommitted]
    if study.machine:
        checks = [_uncommitted]
    elif study.ratios:
        checks[1:1] = [_one_rank_spread, _too_efficient]
    items = [said for check in checks if (said := check(study))]
    return [Heading("What to be careful about", 3), Bullets(items)] if items else []


def _of(cases, sentence):
    """The sentence, if there are any such cases, and a few of them; all are in the tables."""
    if not cases:
        return None
    more = f", and {len(cases) - 4} more." if len(cases) > 4 else "."
    return [sentence, " ", *listed(map(named, cases[:4])), more]


def _wrong(study):
    cases = [case for case in study.cases if case.status == "invalid"]
    number_ = plural(len(cases), "case")
    return _of(cases, f"{number_} gave wrong results and took part in no comparison:")


def _one_rank_spread(study):
    """On one rank every strategy does the same: what differs there is not the strategies' doing."""
    spreads = []
    for facet in facets(study.cases, study.scaling):
        alone = [case.step("median") for case in facet.measured if case.ranks == 1]
        if alone:
            spreads.append((max(alone) / min(alone), min(alone), max(alone)))
    ratio, low, high = max(spreads, default=(1, 0, 0))
    if ratio <= 1.05:
        return None
    return (
        f"On one rank all strategies do the same work, but took from {seconds(low)} to {seconds(high)} "
        f"a step: differences of {percent(ratio - 1)} are noise in this study."
    )


def _too_efficient(study):
    return _of(
        [case for case in study.measured if (case.derived("efficiency_low") or 0) > 1.1],
        "An efficiency far above 100 % says that the baseline was slow, be it disturbed or short of "
        "cache:",
    )


def _most_crowded(case):
    """(ranks, processors) of the host on which the ranks of a case share processors; (0, 0) if none does."""
    hosts = {}
    for rank in placed_ranks(case.launch)[: int(case.ranks or 0)]:
        own = set(numbered(text(rank, "cpu_set")))
        if not own or text(rank, "gpu"):
            return 0, 0
        hosts.setdefault(text(rank, "host"), []).append(own)
    shared = [(len(sets), len(set.union(*sets))) for sets in hosts.values()]
    return max(((ranks, own) for ranks, own in shared if ranks > own), default=(0, 0))


def _crowded(study):
    crowded = [where for case in study.measured if any(where := _most_crowded(case))]
    if not crowded:
        return None
    ranks, available = max(crowded)
    return (
        f"{plural(len(crowded), 'case')} had more ranks than processors (up to {ranks} on "
        f"{plural(available, 'processor')}): their times tell how ranks take turns, not how a mesh "
        "scales."
    )


def _slower_together(study):
    """The peak of a rank beside others that are busy, against that of a rank alone."""
    shares = []
    for launch in study.launches.values():
        peaks = {number(one, "ranks"): positive(one, "gemm_flops_per_second")
                 for one in table(launch, "calibration")}  # fmt: skip
        alone = peaks.get(1)
        shares += [(peak / alone, ranks, peak, alone) for ranks, peak in peaks.items()
                   if alone and peak and ranks]  # fmt: skip
    share, ranks, peak, alone = min(shares, default=(1, 0, 0, 0))
    if share >= 0.8:
        return None
    return (
        f"On {ranks:g} ranks that are all busy, each reached {flops(peak)} in a plain matrix product "
        f"where one alone reached {flops(alone)}: {percent(share)}. No strategy can be expected to "
        "be more efficient there."
    )


def _few_rounds(study):
    cases = [case for case in study.measured if case.step("ci95_low") is None]
    return _of(
        cases,
        f"{plural(len(cases), 'case')} of {len(study.measured)} had too few rounds for a confidence "
        "interval (at least 6 are needed): nothing is said to be faster or slower than they are:",
    )


def _drift(study):
    drift = positive(study.summary, "machine", "drift")
    resolution = positive(study.summary, "machine", "resolution")
    if not drift or drift < 0.1:
        return None
    finds = f" Differences below {percent(resolution, 1)} are not significant." if resolution else ""
    return (
        f"The speed of the machine varied by {percent(drift)} between rounds, by fixed kernels that ran "
        f"beside them. Comparisons are corrected for it, times are not.{finds}"
    )


def _beyond_the_peak(study):
    return _of(
        [case for case in study.measured if (case.number("compute", "mfu") or 0) > 1],
        "An MFU above 100 % cannot be: the GEMM peak was measured while something else had the "
        "processors. Do not use the MFU of this launch. Seen in",
    )


def _uncommitted(study):
    if not any(get(case.launch, "provenance", "git_dirty") is True for case in study.measured):
        return None
    return (
        "The program was built from sources with uncommitted changes: the revision alone does not "
        "tell what was measured."
    )
