# SPDX-License-Identifier: Apache-2.0
"""States what may be said: which case is fastest on each number of ranks and by how much, if the times tell; and where results
say less than they seem to."""

from collections import Counter

from .case import ENOUGH_ROUNDS
from .contents import Points, Text
from .drawing import NothingToShow
from .fields import get, number, positive
from .numbers import percent, plural, ratio, significant

MOST_OPEN = 4  # more amounts of work are folded


def _rate(*cases):
    ends = [significant(case.samples_per_second, 3) for case in (cases[-1], cases[0])]
    return f"{' to '.join(dict.fromkeys(ends))} samples/s"


def _listed(names, most=6):
    names = [*names[:most], f"{len(names) - most} more"] if len(names) > most else names
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def short_name(case, cases):
    """Returns the strategy if it tells the case from the others."""
    if case.ranks == 1 and len(cases) == 1:
        return "1 rank"
    alone = sum(other.strategy == case.strategy for other in cases) == 1
    return case.strategy if alone else case.name


def _sentence(study, work, ranks, cases):
    """States what is known about the cases on as many ranks, of which the first is the fastest."""
    where, best, names = f"On {plural(int(ranks), 'rank')}", cases[0], [short_name(case, cases) for case in cases]
    if len(cases) == 1:
        same = sum(case.same_as is best for case in work.cases) + 1
        program = f"{same} cases are one program" if same > 1 else f"{best.strategy} is the only case"
        return f"{where} {program}: {_rate(best)}{_over_baseline(best)}."
    if study.doubt or not study.ratios:
        return f"{where}: {len(cases)} cases with {_rate(*cases)}."
    tied = [case for case in cases if work.tied(case)]
    slower = [case for case in cases[1:] if case.behind and case.behind.low and not work.tied(case)]
    behind = next(iter(slower), None)
    by = behind and f"{ratio(behind.behind)} faster than {short_name(behind, cases)}"
    if not tied and behind:
        verb = "is predicted to be" if study.machine else "is"
        return f"{where} {names[0]} {verb} {by}: {_rate(best)}{_over_baseline(best)}."
    equal = [best, *tied]
    if not behind:
        nothing = "nothing differs by 3 %" if study.machine else "nothing differs significantly"
        if not study.machine and all(case.behind and case.behind.low is None for case in cases[1:]):
            nothing = f"nothing can be called faster, for want of {ENOUGH_ROUNDS} rounds in a common launch"
        return f"{where} {nothing}: {_listed(names)} reach {_rate(*equal)}."
    alike = "differ by less than 3 %" if study.machine else "do not differ significantly"
    return (
        f"{where} {_listed([short_name(case, cases) for case in equal])} {alike} ({_rate(*equal)}); "
        f"{names[0]} is {by}, the next."
    )


def _over_baseline(case):
    if case.baseline in (None, case) or not case.speedup:
        return ""
    how = "; corrected for the speed of the machine," if case.corrected else ","
    return f"{how} {ratio(case.speedup)} those of {case.baseline.name}, an efficiency of {percent(case.efficiency.value)}"


def blocks(study):
    """Returns the banner, and a sentence for each number of ranks of each work."""
    if not study.measured:
        said = ", ".join(f"{n} {status}" for status, n in sorted(Counter(case.status for case in study.cases).items()))
        return [Text(f"No case was {study.made}: {said}. “All cases” has the reasons.", "lead")]
    found = [Text(f"Times are not reliable: {study.doubt}. No case is called the fastest.", "warning")] if study.doubt else []
    if len(study.works) > 1:
        found.append(Text(f"The study has {len(study.works)} amounts of work. Only cases that do the same work are compared.", "lead"))
    for work in study.works:
        said = [_sentence(study, work, ranks, cases) for ranks, cases in work.by_ranks().items()]
        if not said:
            said = [f"No case was {study.made}."]
        found.append(Points(work.title[:1].upper() + work.title[1:], said, folded=len(study.works) > MOST_OPEN))
    return found


# A test of a case, and the sentence about the cases for which it holds.
OF_CASES = (
    (lambda case: case.status == "invalid", "{} gave wrong results and took part in no comparison"),
    (lambda case: case.oversubscribed and case.ok,
     "{} had more ranks than processors. Such times show how ranks take turns, not how a mesh scales"),
    (lambda case: case.efficiency and (case.efficiency.low or case.efficiency.value) > 1.1,
     "{} had an efficiency far above 100 %, so the baseline was disturbed or short of cache"),
    (lambda case: (number(case.row, "mfu") or 0) > 1,
     "{} had an MFU above 100 %, which is impossible. Something else used the processors whenever the GEMM peak was "
     "measured; do not use the MFU of this launch"),
    (lambda case: case.ok and any(get(launch, "provenance", "git_dirty") is True for launch in case.launches),
     "{} ran a program with uncommitted changes, which its revision does not identify"),
)  # fmt: skip


def _said(sentence, cases, measured):
    more = f", and {len(cases) - 4} more" if len(cases) > 4 else ""
    names = "; ".join(case.name + (f" ({case.work})" if case.work else "") for case in cases[:4])
    if len(cases) == len(measured) > 1:
        return f"{sentence.format(f'All {len(cases)} cases')}."
    return f"{sentence.format(plural(len(cases), 'case'))}: {names}{more}."


def caveats(study):
    tests = [] if study.machine else list(OF_CASES)
    without = [case for case in study.measured if not (study.machine or case.interval)]
    if without:
        why = list(dict.fromkeys(case.no_interval for case in without))
        tests.append((lambda case: case in without,
                      f"{{}} had no interval ({'; '.join(why[:3])}), without which no difference is significant"))  # fmt: skip
    found = [(sentence, cases) for test, sentence in tests if (cases := [case for case in study.cases if test(case)])]
    items = [_said(sentence, cases, study.measured) for sentence, cases in found]
    drift, resolution = (positive(study.summary, "machine", key) for key in ("drift", "resolution"))
    if drift:
        finds = f" The rounds of the median case tell a difference of {percent(resolution, 1)} from none." if resolution else ""
        items.insert(0, f"The speed of the machine varied by {percent(drift)} between rounds, measured by fixed kernels. Ratios are "
                        f"corrected for it.{finds}")  # fmt: skip
    if not items:
        raise NothingToShow("nothing speaks against the results")
    return Points("How certain this is", items)
