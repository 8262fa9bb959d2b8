# SPDX-License-Identifier: Apache-2.0
"""States which case is fastest, by how much, why the others are slower, what to try next, and where results say less
than they seem to."""

from collections import Counter, defaultdict

from .contents import Points, Text
from .drawing import NothingToShow
from .fields import get, number, positive, table, text
from .numbers import RATIO, between, count, percent, plural, seconds, significant, times
from .style import PHASES, strategy_order
from .works import factor_name, is_choice


def statuses(cases):
    """'1 oom, 2 timeout'"""
    return ", ".join(f"{n} {status}" for status, n in sorted(Counter(case.status for case in cases).items()))


def samples(case):
    return f"{significant(case.samples_per_second, 4)} samples/s"


def _speed(case):
    return f"{samples(case)} ({seconds(case.step(), 4)} a step)"


def _fewer(case, best):
    return percent(1 - case.samples_per_second / best.samples_per_second, 1)


def _behind(case):
    """Returns the corrected ratio to the fastest case, as the end of a sentence."""
    if case.behind[0] is None:
        return ""
    return f"; corrected round by round, {between(*case.behind, RATIO, 3)} the time for a sample"


def blocks(study):
    """Returns the answer for one work; for several, a list with an answer for each."""
    if not study.measured:
        return [Text(f"No case was {study.made}: {statuses(study.cases)}. “All cases” has the reasons.", "lead")]
    if len(study.works) == 1:
        return [Text(_fastest(study, study.works[0]), "lead")]
    head = f"The study has {len(study.works)} amounts of work. Only cases that do the same work are compared."
    said = [f"{work.title}: {_fastest(study, work)}" for work in study.works if len(work.measured) != 1]
    alone = [work for work in study.works if len(work.measured) == 1]
    if alone:
        said.append(f"{plural(len(alone), 'work')} with a single case: "
                    + "; ".join(f"{work.title}: {_speed(work.best)}" for work in alone) + ".")  # fmt: skip
    return [Text(head, "lead"), Points("", said)]


def _fastest(study, work):
    best, number = work.best, len(work.measured)
    if best is None:
        return f"no case was {study.made} ({statuses(work.cases)})."
    # Cases that were measured under different conditions need not be the fastest.
    superlative = "the fastest of" if study.ratios else "the case with the most samples/s of"
    among = f"{superlative} {number} {study.made} cases" if number > 1 else f"the only {study.made} case"
    said = f"{best.name} is {among}: {_speed(best)}.{_against_baseline(best)}"
    if not study.ratios:
        return said
    rivals = sorted((case for case in work.measured if case is not best), key=lambda case: -case.samples_per_second)
    if tied := [case for case in rivals if case.tied]:
        said += f" {plural(len(tied), 'case')} cannot be told apart from it."
    behind = next((case for case in rivals if not case.tied), None)
    if behind:
        next_one = "The next that is slower beyond doubt is " if behind.behind[1] else "Next: "
        said += f" {next_one}{behind.name}: {samples(behind)}, {_fewer(behind, best)} fewer{_behind(behind)}."
    wider = {count(case.ranks) for case in work.measured if case.ranks and best.ranks and case.ranks > best.ranks}
    if wider:
        said += f" No case on {' or '.join(sorted(wider))} ranks has more samples/s."
    return said


def _against_baseline(best):
    base = best.baseline
    if base in (None, best):
        return ""
    said = f" That is {times(best.speedup)} the {samples(base)} of {base.name}"
    if best.efficiency and best.ranks and base.ranks and best.ranks != base.ranks:
        ranks = f"{count(best.ranks)} ranks against {count(base.ranks)}"
        said += f", an efficiency of {percent(best.efficiency)} on {ranks}"
    if None not in best.corrected:
        said += f"; corrected round by round for the speed of the machine, {between(*best.corrected, RATIO, 3)}"
    return said + "."


def ties(study):
    """Lists the cases that may be as fast as the fastest one, and what choosing them may cost."""
    said = []
    for work in study.works if study.ratios else ():
        tied = sorted((case for case in work.measured if case.tied), key=lambda case: -case.samples_per_second)
        title = f"{work.title}: " if work.title else ""
        said += [f"{title}{case.name}: {samples(case)}, {_fewer(case, work.best)} fewer{_behind(case)}."
                 for case in tied[:6]]  # fmt: skip
        if len(tied) > 6:
            said.append(f"{title}{len(tied) - 6} more; the table of results has them.")
    if not said:
        raise NothingToShow("no two cases are indistinguishable, or no case has an interval")
    return Points("Cannot be told apart from the fastest", said, folded=len(study.works) > 1)


def reasons(study):
    """Names what the fastest case of each strategy spends more time on, on the ranks that are explained."""
    said = [f"{work.title}: {one}" if work.title else one
            for work in study.works if study.ratios for one in _reasons(study, work)]  # fmt: skip
    if not said:
        raise NothingToShow("no other strategy is slower, or cases may not be compared")
    return Points("Why the others are slower", said, folded=len(study.works) > 1)


def _reasons(study, work):
    found = []
    for strategy in sorted({case.strategy for case in work.cases} if work.best else (), key=strategy_order):
        own = [case for case in work.cases
               if case.strategy == strategy and case.ranks == work.ranks and case is not work.best]  # fmt: skip
        rival = max((case for case in own if case.ok), key=lambda case: case.samples_per_second, default=None)
        if rival and not rival.tied:
            found.append(f"{rival.name}: {_compared(rival, work.best)}")
        elif own and not rival and strategy != work.best.strategy:
            # A failure says more than a case that was left out.
            first = min(own, key=lambda case: (not case.reason, case.status == "skipped"))
            reason = f": {first.reason}" if first.reason else ""
            found.append(f"{strategy} was not {study.made} on {first.ranks or 0:g} ranks ({statuses(own)}){reason}.")
    return found


def _compared(rival, best):
    """Names the phases that make up most of the difference. They are scaled to the measured step."""
    if rival.samples_per_second >= best.samples_per_second * 0.9995:
        return "as fast as the fastest."
    said = f"{_speed(rival)}, {_fewer(rival, best)} fewer."
    if rival.phases and best.phases:
        more = {name: rival.phases[name] - best.phases[name] for name in PHASES}
        gained = sum(value for value in more.values() if value > 0)
        main = sorted((name for name in PHASES if more[name] > 0.25 * gained > 0), key=more.get, reverse=True)
        if main:
            phases = [f"{PHASES[name][0]} (+{seconds(more[name], 2)})" for name in main]
            said += f" It spends more on {' and '.join(phases)}."
    return said


def untried(study):
    """Names the configurations that launches predict to be faster than the fastest case and that no case has."""
    said, unknown, by_id = [], {}, {work.best.id: work for work in study.works if work.best and study.ratios}
    for one in [row for launch in study.launches.values() for row in table(launch, "untried")]:
        work = by_id.get(text(one, "fastest"))
        if work and text(one, "unknown"):
            unknown.setdefault(text(one, "unknown"), []).append(work.title or work.best.name)
        own, fastest = number(one, "step_seconds"), number(one, "fastest_step_seconds")
        keys = ("strategy", "mesh", "microbatches")
        if work and own and fastest and not any(
                case.status != "pending" and [case.factors.get(key) for key in keys] == [one.get(key) for key in keys]
                for case in work.cases):  # fmt: skip
            recompute = text(one, "activation_checkpointing")
            said.append(
                f"{text(one, 'strategy')} on {text(one, 'mesh')}, microbatches {number(one, 'microbatches'):g}"
                + (f", recomputation {recompute}" if recompute not in (None, "none") else "")
                + f": {seconds(own)} a step is predicted. For {work.best.name}, the fastest case"
                + (f" ({work.title})" if work.title else "")
                + f", the prediction is {seconds(fastest)}, {times(fastest / own)} as long."
            )
    if not said:
        none = "no configuration on as many ranks is predicted to be 3 % faster than the fastest case"
        found = [f"{why} ({', '.join(dict.fromkeys(works))})" for why, works in sorted(unknown.items())]
        raise NothingToShow("; ".join(found) or none)
    return Points("", list(dict.fromkeys(said)))


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
