# SPDX-License-Identifier: Apache-2.0
"""The answer first: which mesh is fastest, by how much, and why the others lose."""

from collections import Counter

from .document import Bullets, Code, Heading, Strategy, listed
from .fields import text
from .numbers import percent, plural, seconds, significant, times
from .series import facets, strategy_order
from .style import PHASES

def named(case):
    threads = case.factors.get("distributed.threads")
    with_threads = [f" with {plural(threads, 'thread')} a rank"] if threads else []
    return [Strategy(case.strategy), " on ", Code(case.mesh), *with_threads]


def best_of(cases):
    return max(cases, key=lambda case: (case.samples_per_second, case.id), default=None)


def best_case(study):
    chosen = study.by_id(text(study.summary, "best"))
    return chosen if chosen is not None and chosen.ok else best_of(study.measured)


def statuses(cases):
    """'1 oom, 2 timeout'"""
    counts = Counter(case.status for case in cases)
    return ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))


def _step(case):
    return f"{seconds(case.step('median'))} a step"


def lead(study, best):
    if best is None:
        counts = statuses(study.cases)
        return f"No case was {study.made}: {counts}. The reasons stand under “All cases”."
    speed = f"{significant(best.samples_per_second, 4)} samples/s"
    ties = [c for c in study.measured if study.ratios and c.tied and c is not best]
    what = listed(map(named, [best, *ties]))
    if ties:
        what.append(", which these measurements cannot tell apart")
    what.append(f": {speed}, {_step(best)}" + (" for the first" if ties else ""))
    measured = plural(len(study.measured), f"{study.made} case")
    if not study.ratios:
        end = (
            ". The cases were measured under different conditions, so it is not said to be the best."
        )
        return [f"The highest throughput of {measured} is that of ", *what, end]
    if len(study.measured) == 1:
        return [f"One case was {study.made}: ", *what, "."]
    base = study.baseline_of(best)
    if best.derived("speedup") and base not in (None, best):
        efficiency = percent(best.derived("efficiency"))
        what += [f". That is {times(best.derived('speedup'))} the throughput of ", *named(base)]
        what.append(f" ({_step(base)}): an efficiency of {efficiency}")
    verb = "are" if ties else "is"
    return [f"Fastest of {measured} {verb} ", *what, ".", *_more_ranks(study, best)]


def _more_ranks(study, best):
    """Whether other measured cases of the same work have more ranks for nothing."""
    work = (best.global_batch, best.other_factors())
    wider = {case.ranks for case in study.measured if (case.ranks or 0) > (best.ranks or 0)
             and (case.global_batch, case.other_factors()) == work}  # fmt: skip
    if not wider:
        return []
    ranks = " or ".join(f"{number:g}" for number in sorted(wider))
    return [f" No mesh of {ranks} ranks was faster than this one of {best.ranks or 0:g}."]


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
        own.sort(key=lambda case: (not case.reason, case.status == "skipped"))
        reason = f": {own[0].reason}" if own[0].reason else ""
        return [Strategy(strategy), f": no measurement of this work ({statuses(own)}){reason}."]
    difference = rival.samples_per_second / best.samples_per_second - 1
    kind = "fewer" if difference <= 0 else "more"
    said = [*named(rival), f": {_step(rival)}, {percent(abs(difference), 1)} {kind} samples/s; "]
    if rival.ranks == best.ranks:
        return [*said, f"it {_compared(rival, best)}."]
    # What the strategy does on the ranks of the best, if it is at its best elsewhere.
    ranks = plural(int(best.ranks or 0), "rank")
    same = [case for case in own if case.ranks == best.ranks]
    measured = best_of([case for case in same if case.ok])
    if measured:
        takes = f", it takes {seconds(measured.step('median'))} and {_compared(measured, best)}."
        return [*said, f"on {ranks}, on ", Code(measured.mesh), takes]
    if same:
        became = ", ".join(f"{case.mesh} {case.status}" for case in same)
        return [*said, f"on {ranks} there is no measurement of it ({became})."]
    return [*said, f"the study has no case of it on {ranks}."]


def _compared(rival, best):
    """The phases that make most of the difference, by the mean rank of the instrumented steps."""
    if rival.tied:
        return "is indistinguishable from the best"
    if not (rival.phases and best.phases):
        return "has no breakdown that tells why"
    more = {name: rival.phases[name] - best.phases[name] for name in PHASES}
    slower = rival.step("median") - best.step("median")
    # The instrumented run is another one: it explains a difference only if it shows one.
    if sum(more.values()) < 0.5 * slower:
        return f"was not that much slower in its instrumented run ({_signed(sum(more.values()))})"
    gained = sum(value for value in more.values() if value > 0)
    main = sorted((name for name in PHASES if more[name] > 0.25 * gained), key=more.get)
    phases = [f"{PHASES[name][0]} ({_signed(more[name])})" for name in reversed(main)]
    return "spends more on " + " and ".join(phases)


def _signed(value):
    return ("+" if value >= 0 else "−") + seconds(abs(value), 2)
