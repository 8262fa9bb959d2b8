# SPDX-License-Identifier: Apache-2.0
"""The page on several results directories, such as those of two machines or two releases: each of their cases over that of the
first directory."""

from collections import Counter

from . import drawing, growth, numbers, provenance, ratios, style, tables
from .contents import Column, Figure, Table, Text
from .numbers import plural, times
from .study import ReportError
from .works import varied

MOST_ROWS = 40


def _key(case):
    return repr(sorted(case.factors.items()))


def _configured_alike(one, other):
    """False if a configuration key that both have has different values: the cases do not do the same work."""
    first, second = (provenance.flatten(case.result.get("config") or {}) for case in (one, other))
    return all(first[key] == second[key] for key in first.keys() & second.keys())


class Pair:
    """A case of another directory and that of the first one."""

    def __init__(self, base, case, same_machine):
        self.base, self.case, self.ratio = base, case, None
        if not (base.ok and case.ok):
            self.verdict = f"{base.status} → {case.status}"
        elif not _configured_alike(base, case):
            self.verdict = "different work"
        else:
            self.ratio = ratios.unpaired(case.rounds, base.rounds, same_machine)
            self.verdict = self._verdict() if self.ratio else "no rounds"

    def _verdict(self):
        if self.ratio.low is None:
            return f"too few rounds ({len(self.base.rounds)} and {len(self.case.rounds)})"
        if self.ratio.low > 1 and self.ratio.value >= ratios.SMALLEST:
            return "slower"
        return "faster" if self.ratio.high < 1 and self.ratio.value <= 1 / ratios.SMALLEST else "indistinguishable"


def build(studies, allow_mixed):
    """Returns the sections of the page."""
    for study in studies:
        if (mixed := provenance.mixed(study)) and not allow_mixed:
            raise ReportError(f"{study.directory}: cases differ in {', '.join(mixed)}; --allow-mixed compares them")
    first, *others = studies
    names = _names(studies)
    machines = [{provenance.machine(case.launch) for case in study.measured} for study in studies]
    known = {_key(case): case for case in first.cases}
    sections, common = {"": []}, 0
    for study, name, machine in zip(others, names[1:], machines[1:]):
        same_machine = machine == machines[0]
        pairs = [Pair(known[_key(case)], case, same_machine) for case in study.cases if _key(case) in known]
        common += len(pairs)
        title = f"{name} over {names[0]}"
        sections[title] = _compared(study, pairs, names[0], name, same_machine)
        verdicts = Counter(pair.verdict.partition(" (")[0] for pair in pairs if pair.base.ok or pair.case.ok)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        alone = len(first.cases) + len(study.cases) - 2 * len(pairs)
        only = f"; {plural(alone, 'case')} only in one of them" if alone else ""
        sections[""].append(Text(f"{title}: {counts or 'no case was measured in both'}{only}.", "lead"))
        sections[""] += [Text(f"Times of {one} are not reliable: {of.doubt}.", "warning")
                         for one, of in ((names[0], first), (name, study)) if of.doubt]  # fmt: skip
    if not common:
        raise ReportError(f"{', '.join(str(one.directory) for one in studies)}: no case is in two of them (cases with the same "
                          "strategy, mesh, batch and settings are compared)")  # fmt: skip
    sections["Steps"] = [figure for key in growth.keys_of(first.measured) for study, name in zip(studies, names)
                         if len(lines := growth.lines_of(study.measured, key)) > 1
                         for figure in [growth.figure_of(key, name, lines)]]  # fmt: skip
    if sections["Steps"]:
        growth.numbered(sections["Steps"])
    sections["Where they differ"] = [_provenance(studies, names)]
    return {title: blocks for title, blocks in sections.items() if blocks}


def _names(studies):
    """Returns the names of the directories, or their paths if names are equal."""
    names = [study.directory.name for study in studies]
    return names if len(set(names)) == len(names) else [str(study.directory) for study in studies]


def _compared(study, pairs, base, name, same_machine):
    columns = [
        Column("case", lambda pair: pair.case.name, "text"),
        Column("work", lambda pair: pair.case.work or None, "text"),
        Column(f"step: {base}", lambda pair: tables.step(pair.base)),
        Column(f"step: {name}", lambda pair: tables.step(pair.case)),
        Column("ratio [95 % CI]", lambda pair: pair.ratio and numbers.ratio(pair.ratio)),
        Column("", lambda pair: pair.verdict, "word"),
    ]
    how = "corrected for the speed of the machine" if same_machine else "as measured, because the machines differ"
    caption = (
        f"A ratio is the median of all ratios of a round of {name} to one of {base}, {how}, with the interval of the rank-sum test. "
        "A case is slower or faster if the interval excludes 1 and the difference is at least 3 %. Each interval holds for one "
        "case; of 20 cases that are equal, one may be called different. tessera-bench compare corrects for their number."
    )
    drawn = [pair for pair in pairs if pair.ratio and not pair.case.same_as]
    return [*([_figure(drawn[:MOST_ROWS], base, name, study)] if drawn else []), Table(pairs, columns, caption)]


def _figure(pairs, base, name, study):
    figure, panel = drawing.plate(0.8 + 0.19 * len(pairs))
    found = [(row, pair.ratio, style.colour(pair.case.strategy)) for row, pair in enumerate(pairs)]
    for (row, ratio, _), pair in zip(found, pairs):
        drawing.points(panel, [(row, ratio)], style.mark(pair.case.strategy), which="x")
    panel.axvline(1, **style.DASHED)
    drawing.fit_to_data(panel, found, times, 1, which="x", most=3)
    drawing.rows_of(panel, [pair.case.name for pair in pairs], [style.colour(pair.case.strategy) for pair in pairs])
    panel.set_xlabel(f"step over that of {base}")
    more = f" The first {MOST_ROWS} cases." if len(pairs) == MOST_ROWS else ""
    return Figure(f"ratios-{study.directory.name}", f"Step of {name} over {base}",
                  f"Right of the dashed line {name} is slower. Bars are 95 % intervals.{more}", figure)  # fmt: skip


def _provenance(studies, names):
    """A row for each key in which the directories differ."""
    settings = [{key: value for case in study.measured[:1] for key, value in provenance.settings(case.launch).items()
                 if key not in provenance.EACH_LAUNCH} for study in studies]  # fmt: skip
    columns = [Column("key", lambda key: key, "code")]
    columns += [Column(name, lambda key, own=own: own.get(key), "text") for name, own in zip(names, settings)]
    return Table(varied(settings), columns, "Keys of the provenance of the first measured case of each directory.")
