# SPDX-License-Identifier: Apache-2.0
"""The answer first: which mesh is fastest, by how much, and why the others lose."""

from collections import Counter

from .document import Bullets, Code, Column, Heading, Strategy, Table, Tiles, listed
from .fields import text
from .numbers import percent, plural, seconds, seconds_between, significant, times
from .series import facets, strategy_order
from .style import PHASES

SMALLEST_EFFECT = 0.03  # below this two cases are not told apart; as in tessera-bench compare


def named(case):
    return [Strategy(case.strategy), " on ", Code(case.mesh)]


def best_of(cases):
    return max(cases, key=lambda case: (case.samples_per_second, case.id), default=None)


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


def _step(case):
    return f"{seconds(case.step('median'))} a step"


def _base(study, case):
    """What a case is compared with; None if it has no ratios."""
    return study.baseline_of(case) if study.ratios and case.derived("speedup") else None


def lead(study, best):
    if best is None:
        statuses = _statuses(study.cases)
        return f"No case was measured: {statuses}. The reasons stand under “All cases”."
    speed = f"{significant(best.samples_per_second, 4)} samples/s"
    what = [*named(best), f": {speed}, {_step(best)}"]
    measured = plural(len(study.measured), "measured case")
    if not study.ratios:
        end = (
            ". The cases were measured under different conditions, so it is not said to be the best."
        )
        return [f"The highest throughput of {measured} is that of ", *what, end]
    if len(study.measured) == 1:
        return ["One case was measured: ", *what, "."]
    base = _base(study, best)
    if base and base is not best:
        what += [f". That is {times(best.derived('speedup'))} the throughput of ", *named(base),
                 f" ({_step(base)}): an efficiency of {percent(best.derived('efficiency'))}"]  # fmt: skip
    return [f"Fastest of {measured} is ", *what, ".", *_rivals(study, best)]


def _rivals(study, best):
    """Other measured cases of the same work that are as fast, or have more ranks for nothing."""
    work = (best.global_batch, best.other_factors())
    rivals = [case for case in study.measured
              if case is not best and (case.global_batch, case.other_factors()) == work]  # fmt: skip
    said = []
    equal = [case for case in rivals if indistinguishable(best, case)]
    if equal:
        verb = "is" if len(equal) == 1 else "are"
        said += [f" Not told apart from it by these measurements {verb} ",
                 *listed(map(named, equal)), "."]  # fmt: skip
    wider = {case.ranks for case in rivals if (case.ranks or 0) > (best.ranks or 0)}
    if wider:
        ranks = " or ".join(f"{number:g}" for number in sorted(wider))
        said.append(f" No mesh of {ranks} ranks was faster than this one of {best.ranks or 0:g}.")
    return said


def tiles(study, best):
    median, ends = seconds_between(*(best.step(key) for key in ("median", "ci95_low", "ci95_high")))
    shown = [
        ("samples/s", significant(best.samples_per_second, 4), f"{best.strategy} on {best.mesh}"),
        ("step, median", median, f"95 % CI {ends}" if ends else ""),
    ]
    base = _base(study, best)
    if base:
        ranks = plural(int(best.ranks or 1), "rank")
        against = f"against {base.strategy} on {base.mesh}"
        shown.append(("speed-up", times(best.derived("speedup")), against))
        shown.append(("efficiency", percent(best.derived("efficiency")), f"on {ranks}"))
    if best.communication_share is not None:
        share = percent(best.communication_share)
        shown.append(("comm. + idle", share, "of its instrumented step"))
    if best.compute("mfu") is not None:
        shown.append(("MFU", percent(best.compute("mfu")), "of the measured GEMM peak"))
    return Tiles(shown)


def why_others_lose(study, best):
    """A sentence for the best case of every other strategy, and for other meshes of the best one, all at
    the same work."""
    facet = next((f for f in facets(study.cases, study.scaling) if best in f.cases), None)
    items = []
    for strategy in sorted({case.strategy for case in facet.cases}, key=strategy_order):
        own = [case for case in facet.cases if case.strategy == strategy and case is not best]
        if strategy == best.strategy:
            own = [case for case in own if case.ranks == best.ranks]
        if own:
            items.append(_why(strategy, own, best))
    if not items:
        return []
    head = "Why the others lose" + (f" ({facet.title})" if facet.title else "")
    return [Heading(head, 3), Bullets(items)]


def _why(strategy, own, best):
    rival = best_of([case for case in own if case.ok])
    if rival is None:
        # What went wrong says more than what was left out.
        told = sorted((case for case in own if case.reason), key=lambda case: case.status == "skipped")
        reason = f": {told[0].reason}" if told else ""
        return [Strategy(strategy), f": no measurement of this work ({_statuses(own)}){reason}."]
    difference = rival.samples_per_second / best.samples_per_second - 1
    kind = "fewer" if difference <= 0 else "more"
    said = [*named(rival), f": {_step(rival)}, {percent(abs(difference), 1)} {kind} samples/s; "]
    if rival.ranks == best.ranks:
        return [*said, "it ", _compared(rival, best), "."]
    # What the strategy does on the ranks of the best, if it is at its best elsewhere.
    ranks = plural(int(best.ranks or 0), "rank")
    same = [case for case in own if case.ranks == best.ranks]
    measured = best_of([case for case in same if case.ok])
    if measured:
        takes = f", it takes {seconds(measured.step('median'))} and "
        return [*said, f"on {ranks}, on ", Code(measured.mesh), takes, _compared(measured, best), "."]
    if same:
        became = ", ".join(f"{case.mesh} {case.status}" for case in same)
        return [*said, f"on {ranks} there is no measurement of it ({became})."]
    return [*said, f"the study has no case of it on {ranks}."]


def _compared(rival, best):
    """The phases that make most of the difference, by the mean rank of the instrumented steps."""
    if indistinguishable(rival, best):
        return "is indistinguishable from the best"
    if not (rival.has_breakdown and best.has_breakdown):
        return "has no breakdown that tells why"
    more = {name: rival.phases[name] - best.phases[name] for name in PHASES}
    slower = rival.step("median") - best.step("median")
    # The instrumented run is another one: it explains a difference only if it shows one.
    if sum(more.values()) < 0.5 * slower:
        return f"was not that much slower in its instrumented run ({_signed(sum(more.values()))})"
    gained = sum(value for value in more.values() if value > 0)
    main = [name for name in sorted(PHASES, key=more.get, reverse=True) if more[name] > 0.25 * gained]
    return "spends more on " + " and ".join(f"{PHASES[name][0]} ({_signed(more[name])})" for name in main)


def _signed(value):
    return ("+" if value >= 0 else "−") + seconds(abs(value), 2)


def per_facet(study):
    """The best case of every amount of work, where there are several."""
    found = [(facet, best_of(facet.measured)) for facet in facets(study.cases, study.scaling)]
    if len(found) < 2:
        return []

    def of_best(title, show, kind="number"):
        return Column(title, lambda pair: show(pair[1]) if pair[1] else None, kind)

    columns = [
        Column("work", lambda pair: pair[0].title, ""),
        Column("fastest", lambda pair: named(pair[1]) if pair[1]
               else f"none ({_statuses(pair[0].cases)})", ""),
        of_best("step", lambda case: seconds(case.step("median"))),
        of_best("samples/s", lambda case: significant(case.samples_per_second, 4)),
    ]  # fmt: skip
    if study.ratios:
        columns += [
            of_best("speed-up", lambda case: times(case.derived("speedup"))),
            of_best("efficiency", lambda case: percent(case.derived("efficiency"))),
        ]
    return [Table(found, columns, "The fastest case of every amount of work.")]
