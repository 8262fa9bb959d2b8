# SPDX-License-Identifier: Apache-2.0
"""The answer first: which mesh is fastest, by how much, and why the others lose."""

from collections import Counter

from . import document as doc
from .case import PHASES
from .fields import text
from .numbers import percent, plural, seconds, seconds_between, significant, times
from .series import facets, strategy_order
from .style import PHASE_NAMES

SMALLEST_EFFECT = 0.03  # below this two cases are not told apart; as in tessera-bench compare


def named(case):
    return [doc.Strategy(case.strategy), " on ", doc.Code(case.mesh)]


def best_of(cases):
    return max(cases, key=lambda case: (case.samples_per_second or 0, case.id), default=None)


def best_case(study):
    chosen = study.by_id(text(study.summary, "best"))
    return chosen if chosen is not None and chosen.ok else best_of(study.measured)


def indistinguishable(one, other):
    """Overlapping confidence intervals, or less than 3 % between the medians."""
    medians = sorted((one.step("median"), other.step("median")))
    effect = medians[1] / medians[0] - 1
    ends = [case.step(key) for case in (one, other) for key in ("ci95_low", "ci95_high")]
    overlap = None not in ends and ends[0] <= ends[3] and ends[2] <= ends[1]
    return overlap or effect < SMALLEST_EFFECT


def _statuses(cases):
    """'1 oom, 2 timeout'"""
    counts = Counter(case.status for case in cases)
    return ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))


def lead(study, best):
    if best is None:
        listed = _statuses(study.cases)
        return [f"No case was measured: {listed}. The reasons stand under “All cases”."]
    speed = f"{significant(best.samples_per_second, 4)} samples/s"
    what = [*named(best), f": {speed}, {seconds(best.step('median'))} a step"]
    measured = plural(len(study.measured), "measured case")
    if not study.ratios:
        return ["The highest throughput of ", measured, " is that of ", *what,
                ". The cases were measured under different conditions, so it is not said to be the "
                "best."]  # fmt: skip
    if len(study.measured) == 1:
        return ["One case was measured: ", *what, "."]
    parts = ["Fastest of ", measured, " is ", *what]
    base = study.by_id(text(best.row, "baseline"))
    if best.derived("speedup") and base is not None and base is not best:
        parts += [f". That is {times(best.derived('speedup'))} the throughput of ", *named(base),
                  f" ({seconds(base.step('median'))} a step): an efficiency of "
                  f"{percent(best.derived('efficiency'))}"]  # fmt: skip
    return [*parts, ".", *_ties(study, best), *_more_ranks(study, best)]


def _rivals(study, best):
    """The other measured cases of the same work."""
    work = (best.global_batch, best.other_factors())
    return [
        case
        for case in study.measured
        if case is not best and (case.global_batch, case.other_factors()) == work
    ]


def _more_ranks(study, best):
    """Whether ranks were added for nothing."""
    wider = {case.ranks for case in _rivals(study, best) if (case.ranks or 0) > (best.ranks or 0)}
    if not wider:
        return []
    listed = " or ".join(f"{ranks:g}" for ranks in sorted(wider))
    return [f" No mesh of {listed} ranks was faster than this one of {best.ranks:g}."]


def _ties(study, best):
    equal = [case for case in _rivals(study, best) if indistinguishable(best, case)]
    if not equal:
        return []
    names = [part for case in equal for part in (*named(case), ", ")][:-1]
    verb = "is" if len(equal) == 1 else "are"
    return [" Not told apart from it by these measurements ", verb, " ", *names, "."]


def tiles(study, best):
    median, low, high = (best.step(key) for key in ("median", "ci95_low", "ci95_high"))
    value, _, ends = seconds_between(median, low, high).partition(" [")
    where = f"{best.strategy} on {best.mesh}"
    shown = [
        doc.Tile("samples/s", significant(best.samples_per_second, 4), where),
        doc.Tile("step, median", value, f"95 % CI [{ends}" if ends else ""),
    ]
    base = study.by_id(text(best.row, "baseline"))
    if study.ratios and best.derived("speedup") and base is not None:
        against = f"against {base.strategy} on {base.mesh}"
        ranks = plural(int(best.ranks or 1), "rank")
        shown.append(doc.Tile("speed-up", times(best.derived("speedup")), against))
        shown.append(doc.Tile("efficiency", percent(best.derived("efficiency")), f"on {ranks}"))
    if best.communication_share is not None:
        share = percent(best.communication_share)
        shown.append(doc.Tile("comm. + idle", share, "of its instrumented step"))
    if best.compute("mfu") is not None:
        shown.append(doc.Tile("MFU", percent(best.compute("mfu")), "of the measured GEMM peak"))
    return doc.Tiles(shown)


def why_others_lose(study, best):
    """A sentence for the best case of every other strategy, and for other meshes of the best one, all at
    the same work."""
    facet = next((f for f in facets(study.cases, study.scaling) if best in f.cases), None)
    if facet is None:
        return []
    items = []
    strategies = sorted({case.strategy for case in facet.cases}, key=strategy_order)
    for strategy in strategies:
        own = [case for case in facet.cases if case.strategy == strategy and case is not best]
        if strategy == best.strategy:
            own = [case for case in own if case.ranks == best.ranks and case.mesh != best.mesh]
        if not own:
            continue
        rival = best_of([case for case in own if case.ok])
        if rival is None:
            items.append(_never_measured(strategy, own))
        else:
            items.append([*named(rival), ": ", *_compared(rival, best, own)])
    if not items:
        return []
    head = "Why the others lose" + (f" ({facet.title})" if facet.title else "")
    return [doc.Heading(head, 3), doc.Bullets(items)]


def _never_measured(strategy, own):
    # What went wrong says more than what was left out.
    told = sorted((case for case in own if case.reason), key=lambda case: case.status == "skipped")
    reason = f": {told[0].reason}" if told else ""
    return [doc.Strategy(strategy), f": no measurement of this work ({_statuses(own)}){reason}."]


def _compared(rival, best, own):
    parts = [f"{seconds(rival.step('median'))} a step, {_fewer(rival, best)}"]
    if rival.ranks != best.ranks:
        return [*parts, *_on_as_many_ranks(rival, best, own), "."]
    if indistinguishable(rival, best):
        return ["indistinguishable from the best: ", *parts, "."]
    return [*parts, "; it ", _phases(rival, best), "."]


def _fewer(rival, best):
    difference = rival.samples_per_second / best.samples_per_second - 1
    kind = "fewer" if difference <= 0 else "more"
    return f"{percent(abs(difference), 1)} {kind} samples/s"


def _on_as_many_ranks(rival, best, own):
    """What the strategy does on the ranks of the best, if it is at its best elsewhere."""
    ranks = plural(int(best.ranks), "rank")
    same = [case for case in own if case.ranks == best.ranks]
    measured = best_of([case for case in same if case.ok])
    if measured is not None:
        where = [" on ", doc.Code(measured.mesh)]
        takes = f" it takes {seconds(measured.step('median'))}"
        if indistinguishable(measured, best):
            return [f"; on {ranks},", *where, ",", takes, ", indistinguishable from the best"]
        return [f"; on {ranks},", *where, ",", takes, " and ", _phases(measured, best)]
    if same:
        listed = ", ".join(f"{case.mesh} {case.status}" for case in same)
        return [f"; on {ranks} there is no measurement of it ({listed})"]
    return [f"; the study has no case of it on {ranks}"]


def _phases(rival, best):
    """The phases that make most of the difference, by the mean rank of the instrumented steps."""
    if not (rival.has_breakdown and best.has_breakdown):
        return "has no breakdown that tells why"
    more = {name: (rival.phase(name) or 0.0) - (best.phase(name) or 0.0) for name in PHASES}
    slower = rival.step("median") - best.step("median")
    # The instrumented run is another one: it explains a difference only if it shows one.
    if sum(more.values()) < 0.5 * slower:
        return f"was not that much slower in its instrumented run ({_signed(sum(more.values()))})"
    gained = sum(value for value in more.values() if value > 0)
    main = [name for name in PHASES if more[name] > 0.25 * gained]
    main.sort(key=lambda name: -more[name])
    listed = " and ".join(f"{PHASE_NAMES[name]} ({_signed(more[name])})" for name in main)
    return f"spends more on {listed}"


def _signed(value):
    return ("+" if value >= 0 else "−") + seconds(abs(value), 2)


def per_facet(study):
    """The best case of every amount of work, where there are several."""
    found = [(facet, best_of(facet.measured)) for facet in facets(study.cases, study.scaling)]
    if len(found) < 2:
        return []
    rows = []
    for facet, best in found:
        if best is None:
            unknown = ["–"] * (4 if study.ratios else 2)
            rows.append([facet.title, f"none ({_statuses(facet.cases)})", *unknown])
            continue
        row = [facet.title, named(best), seconds(best.step("median")),
               significant(best.samples_per_second, 4)]  # fmt: skip
        if study.ratios:
            row += [times(best.derived("speedup")), percent(best.derived("efficiency"))]
        rows.append(row)
    columns = [doc.Column("work"), doc.Column("fastest"), doc.Column("step", True),
               doc.Column("samples/s", True)]  # fmt: skip
    if study.ratios:
        columns += [doc.Column("speed-up", True), doc.Column("efficiency", True)]
    return [doc.Table(columns, rows, "The fastest case of every amount of work.")]
