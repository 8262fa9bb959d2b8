# SPDX-License-Identifier: Apache-2.0
"""The figures of a study: plates against the number of ranks, and plates with a row for the fastest case of each strategy on
each number of ranks. Where threads vary, the number is that of cores."""

from collections import Counter

from . import drawing, style
from .contents import Figure
from .drawing import NothingToShow
from .numbers import BYTE_UNITS, TIME_UNITS, Ratio, bytes_, percent, plural, times, unit_of

MOST_WORKS, MOST_ROWS = 4, 36


def _works(study):
    """Returns the works with the most cases, because a page with a plate for each of many works says nothing."""
    return sorted(sorted(study.works, key=lambda work: -len(work.measured))[:MOST_WORKS], key=study.works.index)


def is_joined(one, other):
    """True if only the size of one axis differs. One rank has no choices."""
    varied = [name for name in {*one.axes, *other.axes} if one.axes.get(name, 1) != other.axes.get(name, 1)]
    return len(varied) == 1 and (one.ranks == 1 or one.other_factors() == other.other_factors())


def _lines(work):
    """Returns strategy -> its fastest cases on growing numbers of cores. What all do on one core begins every line."""
    found = work.fastest_of_strategies()
    alone = found.get(1, [])
    shared = alone[0] if len({case.strategy for case in alone}) == 1 else None
    lines = {}
    for cases in found.values():
        for case in cases:
            if case is not shared or len(found) == 1:
                lines.setdefault(case.strategy, [shared] if shared and len(found) > 1 else []).append(case)
    return dict(sorted(lines.items(), key=lambda line: style.strategy_order(line[0]))), shared


def _against_cores(work, value, show, ideal=None):
    """Draws value(case) as a plate, or returns None if there are no two numbers of cores."""
    lines, shared = _lines(work)
    lines = {name: [case for case in line if value(case)] for name, line in lines.items()}
    cores = sorted({case.cores for line in lines.values() for case in line})
    if len(cores) < 2:
        return None
    figure, panel = drawing.plate()
    always = [ideal(one) for one in cores] if ideal else []
    if ideal:
        panel.plot(cores, always, **style.DASHED)
    found = []
    step = min((b / a for a, b in zip(cores, cores[1:]))) ** 0.05  # of the places beside each other
    for place, (strategy, line) in enumerate(lines.items()):
        mark, beside = style.mark(strategy), step ** (place - (len(lines) - 1) / 2)
        drawn = [(case.cores * (1 if case is shared else beside), value(case)) for case in line]
        own = [(x, one, mark["color"]) for case, (x, one) in zip(line, drawn) if case is not shared]
        for (case, point), (other, next_point) in zip(zip(line, drawn), list(zip(line, drawn))[1:]):
            if is_joined(case, other):
                panel.plot(*zip(*((x, one.value) for x, one in (point, next_point))), color=mark["color"], linewidth=1.4)
        drawing.points(panel, [(x, one) for x, one, _ in own], mark)
        found += own
    if shared and value(shared):
        own = style.mark("one rank")
        drawing.points(panel, [(shared.cores, value(shared))], own)
        found.append((shared.cores, value(shared), own["color"]))
    drawing.rank_axis(panel, cores, f"{work.unit}s")
    drawing.fit_to_data(panel, found, show, *always)
    drawing.legend(figure, drawing.marks(lines))
    return figure


def _plates(study, *kinds):
    """Draws each kind for each work. A kind is its name, title, caption, and a function that draws a work or returns None. The
    first of a kind has the caption."""
    found = [(name, title, caption, work, figure) for work in _works(study) for name, title, caption, draw in kinds
             if (figure := draw(work))]  # fmt: skip
    if not found:
        raise NothingToShow(f"{kinds[0][1]}: too few cases have these numbers")
    plates, numbers = [], Counter()
    for name, title, caption, work, figure in found:
        numbers[name] += 1
        title, caption = f"{title}: {work.title}" if work.title else title, caption if numbers[name] == 1 else ""
        plates.append(Figure(f"{name}-{numbers[name]}", title, caption, figure))
    if len(study.works) > MOST_WORKS:
        plates[0].caption += f" Of {len(study.works)} amounts of work, the {MOST_WORKS} with the most cases have figures."
    return plates


def _ideal(work):
    """Returns cores -> the speed-up of ideal scaling. All cases of a work have one baseline."""
    base = next((case.baseline for case in work.measured if case.baseline), None)
    return base and (lambda cores: cores / base.cores)


def scaling(study):
    has_bars = any(case.interval for case in study.measured) and not study.machine
    bars = "" if not has_bars else " Bars are 95 % intervals; arrows mark bars that go on."
    how = "" if study.machine else ", corrected for the speed of the machine within a launch"
    return _plates(
        study,
        ("speedup", "Speed-up", f"Samples/s over those of the baseline{how}; the dashed line is ideal. A mark is the fastest case of its "
         f"strategy. Marks are joined where only the size of one axis differs.{bars}",
         lambda work: _against_cores(work, lambda case: case.speedup, times, _ideal(work))),
        ("efficiency", "Efficiency", f"This speed-up over the ideal one: {study.efficiency}.",
         lambda work: _against_cores(work, lambda case: case.efficiency, percent, _ideal(work) and (lambda _: 1))),
    )  # fmt: skip


def node_hours(study):
    if not study.ratios:
        raise NothingToShow("cases may not be compared")
    caption = "Nodes times the time for a million samples, in hours. Lower is better."
    return _plates(study, ("node-hours", "Node-hours for a million samples", caption,
                           lambda work: _against_cores(work, lambda case: case.node_hours and Ratio(case.node_hours), "{:g}".format)))


def predicted(study):
    def ratio(case):
        ends = [case.predicted / end for end in case.interval[::-1]] if case.predicted and case.interval else []
        return case.predicted and Ratio(case.predicted / case.step(), *ends)

    caption = "Above 1 × a step is shorter than predicted. Bars are those of the measured step."
    return _plates(study, ("predicted", "Predicted over measured step", caption,
                           lambda work: _against_cores(work, ratio, times, lambda _: 1)))  # fmt: skip


def _rows(work, parts):
    """Returns (label, colour, parts of a case or None) for a heading of each number of cores and the cases below it. If there are
    too many rows, only the fastest case of each number of cores has one."""
    found = {cores: [case for case in cases if parts(case)] for cores, cases in work.fastest_of_strategies().items()}
    found = {cores: cases for cores, cases in found.items() if cases}
    if sum(len(cases) + 1 for cases in found.values()) > MOST_ROWS:
        found = {cores: [max(cases, key=lambda case: case.samples_per_second)] for cores, cases in found.items()}
    rows = []
    for cores, cases in found.items():
        heading = plural(int(cores), work.unit)
        if len(cases) == 1:
            own = cases[0]
            rows.append((heading if cores == 1 else f"{heading}, {own.strategy}",
                         "black" if cores == 1 else style.colour(own.strategy), parts(own)))  # fmt: skip
        else:
            rows.append((heading, "black", None))
            rows += [(case.strategy, style.colour(case.strategy), parts(case)) for case in cases]
    return rows


def _stacked(work, parts, colours, label, units, limit=None):
    """Draws a bar of parts(case) for each row, or returns None if no case has parts."""
    rows = _rows(work, parts)
    used = {name: colour for name, colour in colours.items() if any(own and own.get(name) for _, _, own in rows)}
    if not used:
        return None
    figure, panel = drawing.plate(0.75 + 0.175 * len(rows))
    longest = max(sum(own.values()) for _, _, own in rows if own)
    factor, unit = unit_of([longest], units)
    ends = [0.0] * len(rows)
    for name, colour in used.items():
        sizes = [(own or {}).get(name, 0) / factor for _, _, own in rows]
        panel.barh(range(len(rows)), sizes, left=ends, height=0.8, color=colour)
        ends = [end + size for end, size in zip(ends, sizes)]
    panel.set_xlim(0, 1.03 * longest / factor)
    if limit and limit < 1.6 * longest:
        panel.set_xlim(0, 1.03 * max(limit, longest) / factor)
        panel.axvline(limit / factor, **{**style.DASHED, "color": style.BAD})
    drawing.rows_of(panel, [name for name, _, _ in rows], [colour for _, colour, _ in rows])
    panel.set_xlabel(f"{label}, {unit}")
    drawing.legend(figure, drawing.patches(used))
    return figure


def parts_of_time(study):
    colours = {words: colour for words, colour in style.PHASES.values()}

    def parts(case):
        scale = case.cores / (case.global_batch or 1)
        return {words: case.phases[name] * scale for name, (words, _) in style.PHASES.items()} if case.phases else {}

    caption = (
        f"Time of all {study.unit}s for one sample: bars of ideal scaling are equally long. The fastest case of each strategy. "
        "Communication is what computation does not hide. "
        f"Parts are those of the {study.parted} steps, the mean over ranks{'.' if study.machine else ', scaled to the measured step.'}"
    )
    return _plates(study, ("time", "Parts of a step", caption,
                           lambda work: _stacked(work, parts, colours, f"{work.unit}s × time for a sample", TIME_UNITS)))  # fmt: skip


def _coloured(names):
    return dict(zip(names, style.PARTS))


def costs(study):
    axes = sorted({axis for case in study.measured for axis in case.sent})
    total = Counter()
    for case in study.measured:
        for role, size in case.memory.items():
            total[role] = max(total[role], size / sum(case.memory.values()))
    roles = [role for role, part in total.most_common(len(style.PARTS) - 1) if part > 0.02]
    names = _coloured([*(role.replace("_", " ") for role in roles), "rest"])
    limit = next((limit for case in study.measured if (limit := case.number("memory", "limit_bytes"))), None)

    def parts(case):
        own = {role.replace("_", " "): size for role, size in case.memory.items() if role in roles}
        rest = sum(case.memory.values()) - sum(own.values())
        return {**own, "rest": rest} if rest else own

    said = f" The limit of a rank, {bytes_(limit)}, is dashed where a case comes near it." if limit else ""
    return _plates(
        study,
        ("bytes", "Bytes by axis", "What a rank sends in a step, with the algorithms that send the fewest bytes.",
         lambda work: _stacked(work, lambda case: case.sent, _coloured(axes), "sent by a rank", BYTE_UNITS)),
        ("memory", "Memory by role", f"Planned memory of the rank that needs most.{said}",
         lambda work: _stacked(work, parts, names, "memory of a rank", BYTE_UNITS, limit)),
    )  # fmt: skip
