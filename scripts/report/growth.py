# SPDX-License-Identifier: Apache-2.0
"""Figures of what a step costs as a number of the work grows, such as the positions of a sequence."""

from collections import defaultdict

from matplotlib.lines import Line2D

from . import drawing, style
from .contents import Figure
from .drawing import NothingToShow
from .fields import number, text
from .numbers import count, is_number, plural, seconds, times
from .works import factor_name, is_choice, shown_factors, varied

MOST_LINES = len(style.SERIES)  # in a panel


def growth(study):
    """Returns two figures for each number of the work, with a column of panels for each number of ranks."""
    found = []
    for key in _keys(study.measured) if study.ratios else ():
        lines = _lines(study.measured, key)
        ranks = sorted({line[-1].ranks for line in lines})
        columns = [(plural(int(p), "rank"), [line for line in lines if line[-1].ranks in (1, p)])
                   for p in ranks if p > 1 or len(ranks) == 1]  # fmt: skip
        if any(len(lines) > 1 for _, lines in columns):
            found += [_figure(key, columns, TIME), _figure(key, columns, COSTS)]
    if not found:
        raise NothingToShow("no number of the work has three values in two lines of cases")
    return _numbered(found)


def conditions(studies):
    """Returns the first of these figures for one study under several conditions, with a column for each directory."""
    found = []
    for key in _keys(studies[0].measured):
        columns = [(study.directory.name, _lines(study.measured, key)) for study in studies]
        if all(len(lines) > 1 for _, lines in columns):
            found.append(_figure(key, columns, TIME))
    if not found:
        raise NothingToShow("no number of the work has three values in two lines of cases of each directory")
    return _numbered(found)


def _numbered(figures):
    for place, figure in enumerate(figures, 1):
        figure.name = f"growth-{place}"
    return figures


def _keys(cases):
    """Returns the factors that change the work and are numbers."""
    keys = [key for key in varied([case.factors for case in cases]) if key == "global_batch" or not is_choice(key)]
    return [key for key in keys if all(is_number(case.factors.get(key, 0)) for case in cases)]


def _lines(cases, key):
    """Returns the lines of three cases or more that differ in this factor only, each in its order."""
    groups = defaultdict(list)
    for case in cases:
        rest = {k: v for k, v in case.factors.items() if k not in (key, "batch_per_rank")}
        if key in case.factors and case.ranks:
            groups[repr(sorted(rest.items()))].append(case)
    return [sorted(line, key=lambda case: case.factors[key]) for line in groups.values() if len(line) > 2]


def _named(lines, key):
    """Returns the lines by the factors that tell them apart, the fastest ones if there are many."""
    lines = sorted(sorted(lines, key=lambda line: line[-1].step())[:MOST_LINES], key=lines.index)
    settings = [{k: v for k, v in line[-1].factors.items() if k not in (key, "ranks", "batch_per_rank")}
                for line in lines]  # fmt: skip
    keys = [one for one in varied(settings) if one != "mesh"]
    names = [shown_factors(one, keys) for one in settings]
    if len(set(names)) < len(names):
        names = [shown_factors(one, ["mesh", *keys]) for one in settings]
    return dict(zip(names, lines))


def _sent(case):
    rows = [row for row in case.traffic if text(row, "operation") != "receive"]
    return sum(number(row, "wire_bytes_per_step") or 0 for row in rows)


class Row:
    """A row of panels: its title, the value of a case beside those with the same number, and how that is written."""

    def __init__(self, title, value, show="{:g}".format, of_step=False):
        self.title, self.value, self.show, self.of_step = title, value, show, of_step

    def draw(self, panel, key, line, same, mark, beside=1.0):
        """The marks of several lines stand side by side."""
        points = [(case, value) for case in line if (value := self.value(case, same[case.factors[key]]))]
        ends = [[abs((case.step(end) or case.step()) / case.step() - 1) * value for case, value in points]
                for end in ("ci95_low", "ci95_high")]  # fmt: skip
        if points:
            panel.errorbar([beside * case.factors[key] for case, _ in points], [value for _, value in points],
                           yerr=ends if self.of_step else None, capsize=2, elinewidth=0.8, **mark)  # fmt: skip


OVER = Row("step over shortest", lambda case, same: case.step() / min(one.step() for one in same), times, True)
TIME = (Row("step", lambda case, _: case.step(), seconds, True), OVER)
MIB = 2.0**20
COSTS = (Row("memory of a rank, MiB", lambda case, _: (case.memory or 0) / MIB),
         Row("sent by a rank, MiB", lambda case, _: _sent(case) / MIB))  # fmt: skip


def _figure(key, columns, rows):
    """A column has a title and lines. Those of one rank are a reference beside those of several."""
    figure, panels = drawing.panels(len(columns) * len(rows), 2.3, len(columns), sharex=True, sharey="row")
    series, ticks, name = {}, set(), factor_name(key)
    for column, (title, lines) in enumerate(columns):
        several = [line for line in lines if line[-1].ranks > 1]
        named = _named(several or lines, key)
        same = defaultdict(list)
        for case in (case for line in named.values() for case in line):
            same[case.factors[key]].append(case)
        ticks |= set(same)
        for label in named:
            series.setdefault(label, style.series(len(series)))
        for panel, row in zip(panels[column :: len(columns)], rows):
            for line in [line for line in lines if several and line not in several and row is not OVER]:
                row.draw(panel, key, line, same, style.DASHED)
            for place, (label, line) in enumerate(named.items()):
                row.draw(panel, key, line, same, series[label], 1.012 ** (place - (len(named) - 1) / 2))
            panel.set(title=title if row is rows[0] else "", ylabel=row.title, xlabel=name)
            panel.label_outer()
    for panel, row in zip(panels[:: len(columns)], rows):
        drawing.log_axis(panel, "x", count, ticks=sorted(ticks))
        drawing.log_axis(panel, "y", row.show)
    if {line[-1].ranks for _, lines in columns for line in lines} > {1}:
        series["1 rank"] = style.DASHED
    drawing.legend(figure, [Line2D([], [], label=label, **mark) for label, mark in series.items()])
    if rows is TIME:
        caption = (
            f"Cases that differ only in {name}; both axes are logarithmic. Below, the step over the shortest of the "
            "marks with the same number above it. Bars: the 95 % confidence interval of the step."
        )
        return Figure("", f"Time and {name}", caption, figure)
    caption = (
        "The same cases. Memory is planned. Sent bytes are those of a step, with the algorithms that send the fewest."
    )
    return Figure("", f"Memory, messages and {name}", caption, figure)
