# SPDX-License-Identifier: Apache-2.0
"""What it costs to believe predictions: how fast the case is that they call the fastest."""

from dataclasses import dataclass

from . import layout, numbers
from .answer import named
from .document import Column, Table, listed
from .fields import positive, text
from .series import shown_factor, varied
from .tables import step_between

# Settings of the distribution that change what is computed, or with what.
NOT_CHOSEN = ("distributed.mixed_precision", "distributed.threads")


def sources(study):
    """Who predicts -> the seconds of a step that it predicts of a case, if it does."""
    found = {"calibration": lambda case: positive(case.result, "prediction", "step_seconds")}
    for machine in sorted({_machine(case) for case in study.measured} - {None}):
        found[f"machine file {machine}"] = lambda case, machine=machine: (
            positive(case.result, "machine_prediction", "step_seconds") if _machine(case) == machine else None
        )
    return found


def _machine(case):
    return text(case.result, "machine_prediction", "machine")


def _is_chosen(key):
    return "." not in key or (key.startswith("distributed.") and key not in NOT_CHOSEN)


def _work(case):
    """What is the same whatever is chosen, as bench/results/scaling.cpp has it, but for threads: predictions are of ranks as they are."""
    rest = {key: value for key, value in case.other_factors().items() if not _is_chosen(key)}
    return {"global batch": case.global_batch, **rest}


def _chosen(case):
    """What there was to choose beside strategy and mesh."""
    return {key: value for key, value in case.other_factors().items() if _is_chosen(key)}


def _is_choice(cases):
    """On one rank all strategies and meshes are the same."""
    return len(cases) > 1 and (cases[0].ranks != 1 or bool(varied([_chosen(case) for case in cases])))


def choices(study):
    """(title of the work, measured cases on as many ranks) wherever there was something to choose."""
    works, groups = [], {}
    for case in study.measured:
        work = _work(case)
        if work not in works:
            works.append(work)
        groups.setdefault((works.index(work), case.ranks), []).append(case)
    keys = varied(works)
    return [
        (", ".join(shown_factor(key, works[n][key]) for key in keys if key in works[n]), cases)
        for (n, _), cases in sorted(groups.items(), key=lambda group: group[0][0])
        if _is_choice(cases)
    ]


@dataclass
class Advice:
    """The case that a source calls the fastest of `cases`, and the one that is."""

    work: str
    source: str
    cases: list
    advised: object
    fastest: object

    @property
    def regret(self):
        """How much longer the step of the first takes."""
        return self.advised.step("median") / self.fastest.step("median") - 1

    @property
    def is_doubtful(self):
        """Whether the confidence intervals of the two overlap."""
        low, high = self.advised.step("ci95_low"), self.fastest.step("ci95_high")
        return bool(self.regret and low and high and low <= high)

    @property
    def shared(self):
        """Whether ranks shared processors, where no prediction can say much."""
        return any(case.oversubscribed for case in self.cases)


def advice(study):
    found = []
    for work, cases in choices(study):
        for source, predicted in sources(study).items():
            known = [case for case in cases if predicted(case)]
            if len(known) > 1:
                fastest = min(known, key=lambda case: case.step("median"))
                found.append(Advice(work, source, known, min(known, key=predicted), fastest))
    return found


def _named(case, one):
    """With what else there was to choose."""
    keys = varied([_chosen(other) for other in one.cases])
    own = case.other_factors()
    return listed([named(case), *(shown_factor(key, own[key]) for key in keys if key in own)])


def _worst(found):
    """'by calibration 1.2 % at most, ...'"""
    by_source = {}
    for one in found:
        by_source.setdefault(one.source, []).append(one.regret)
    return ", ".join(f"by {source} {numbers.percent(max(all_), 1)} at most" for source, all_ in by_source.items())


def regret(study):
    layout.needs_ratios(study)
    found = advice(study)
    if not found:
        raise layout.NothingToShow("no work was done in several ways that something predicted")

    columns = [
        Column("work", lambda one: one.work, ""),
        Column("ranks", lambda one: numbers.count(one.advised.ranks) + ("*" if one.shared else "")),
        Column("cases", lambda one: len(one.cases)),
        Column("predicted by", lambda one: one.source, ""),
        Column("predicted to be fastest", lambda one: _named(one.advised, one), ""),
        Column("step", lambda one: step_between(one.advised)),
        Column("fastest", lambda one: _named(one.fastest, one), ""),
        Column("step", lambda one: step_between(one.fastest)),
        Column("regret", lambda one: numbers.percent(one.regret, 1) + ("?" if one.is_doubtful else "")),
    ]
    own = [one for one in found if not one.shared]
    shared = [one for one in found if one.shared]
    caption = (
        "Regret: how much longer the step of the case takes that is predicted to be the fastest of all ways to do "
        "the same work on as many ranks."
    )
    if own:
        caption += f" Here: {_worst(own)}."
    if shared:
        caption += f" *: ranks share processors, where predictions are coarse: {_worst(shared)}."
    if any(one.is_doubtful for one in found):
        caption += " ?: the confidence intervals of the two steps overlap, so that the advised case may be as fast."
    return Table(found, columns, caption)
