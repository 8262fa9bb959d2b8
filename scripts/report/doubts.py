# SPDX-License-Identifier: Apache-2.0
"""What a reader should be careful about: signs in the results that they say less than they seem to."""

from . import document as doc
from .fields import get, number, positive, table, text
from .numbers import flops, percent, plural, seconds
from .series import facets


def processors(cpu_set):
    """'0-3,8' -> {0, 1, 2, 3, 8}; empty for what is no such text."""
    found = set()
    for part in (cpu_set if isinstance(cpu_set, str) else "").split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return set()
        found.update(range(int(first), int(last or first) + 1))
    return found


def crowded(case):
    """(ranks, processors) of a host on which the ranks of a case share processors, or None."""
    hosts = {}
    ranks = table(case.launch, "provenance", "ranks") if case.launch else []
    for rank in ranks[: int(case.ranks or 0)]:
        own = processors(get(rank, "cpu_set"))
        if not own or text(rank, "gpu"):
            return None
        number_, available = hosts.get(text(rank, "host"), (0, set()))
        hosts[text(rank, "host")] = (number_ + 1, available | own)
    for number_, available in hosts.values():
        if number_ > len(available):
            return number_, len(available)
    return None


def blocks(study):
    checks = [_wrong, _crowded, _slower_together, _wide, _beyond_the_peak, _uncommitted]
    if study.ratios:
        checks[1:1] = [_one_rank_spread, _too_efficient]
    items = [item for check in checks for item in check(study)]
    if not items:
        return []
    return [doc.Heading("What to be careful about", 3), doc.Bullets(items)]


def _listed(cases, most=4):
    """The cases by strategy and mesh; all are in the tables."""
    names = []
    for case in cases[:most]:
        names += [doc.Strategy(case.strategy), " on ", doc.Code(case.mesh), ", "]
    more = [f", and {len(cases) - most} more"] if len(cases) > most else []
    return [*names[:-1], *more]


def _wrong(study):
    cases = [case for case in study.cases if case.status == "invalid"]
    if cases:
        what = f"{plural(len(cases), 'case')} gave wrong results and took part in no comparison: "
        yield [what, *_listed(cases), "."]


def _one_rank_spread(study):
    """On one rank every strategy does the same: what differs there is not the strategies' doing."""
    worst = None
    for facet in facets(study.cases, study.scaling):
        alone = sorted(case.step("median") for case in facet.measured if case.ranks == 1)
        if len(alone) > 1 and (worst is None or alone[-1] / alone[0] > worst[1] / worst[0]):
            worst = (alone[0], alone[-1])
    if worst and worst[1] / worst[0] > 1.05:
        low, high = worst
        yield (
            f"On one rank all strategies do the same work, but took from {seconds(low)} to "
            f"{seconds(high)} a step: differences of {percent(high / low - 1)} are noise in this study."
        )


def _too_efficient(study):
    cases = [case for case in study.measured if (case.derived("efficiency_low") or 0) > 1.1]
    if cases:
        what = (
            "An efficiency far above 100 % says that the baseline was slow, be it disturbed or short of "
            "cache: "
        )
        yield [what, *_listed(cases), "."]


def _crowded(study):
    cases = [(case, crowded(case)) for case in study.measured]
    cases = [(case, where) for case, where in cases if where]
    if cases:
        ranks, available = max(where for _, where in cases)
        yield (
            f"{plural(len(cases), 'case')} had more ranks than processors (up to {ranks} on "
            f"{plural(available, 'processor')}): their times tell how ranks take turns, not how a mesh "
            "scales."
        )


def _slower_together(study):
    """The peak of a rank beside others that are busy, against that of a rank alone."""
    worst = None
    for launch in study.launches.values():
        peaks = {
            number(one, "ranks"): positive(one, "gemm_flops_per_second")
            for one in table(launch, "calibration")
        }
        for ranks, peak in peaks.items():
            if peak and peaks.get(1) and ranks and (worst is None or peak / peaks[1] < worst[0]):
                worst = (peak / peaks[1], ranks, peak, peaks[1])
    if worst and worst[0] < 0.8:
        share, ranks, peak, alone = worst
        yield (
            f"On {ranks:g} ranks that are all busy, each reached {flops(peak)} in a plain matrix product "
            f"where one alone reached {flops(alone)}: {percent(share)}. No strategy can be expected to "
            "be more efficient there."
        )


def _wide(study):
    cases = [
        case for case in study.measured if get(case.result, "step_seconds", "ci_within") is False
    ]
    if cases:
        limit = percent(number(study.study, "measure", "ci"), 1)
        what = (
            f"In {plural(len(cases), 'case')} of {len(study.measured)} the confidence interval of the "
            f"median is wider than the {limit} asked for: "
        )
        yield [what, *_listed(cases), "."]


def _beyond_the_peak(study):
    cases = [case for case in study.measured if (case.compute("mfu") or 0) > 1]
    if cases:
        what = (
            "An MFU above 100 % cannot be: the GEMM peak was measured while something else had the "
            "processors. Do not use the MFU of this launch. Seen in "
        )
        yield [what, *_listed(cases), "."]


def _uncommitted(study):
    if any(get(case.launch, "provenance", "git_dirty") is True for case in study.measured):
        yield (
            "The program was built from sources with uncommitted changes: the revision alone does not "
            "tell what was measured."
        )
