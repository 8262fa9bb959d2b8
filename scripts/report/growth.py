# SPDX-License-Identifier: Apache-2.0
"""Figures of the step as a number of the work grows, such as the positions of a sequence."""

from collections import defaultdict

from . import drawing, style
from .contents import Figure
from .drawing import Line2D, NothingToShow
from .numbers import Ratio, count, is_number, plural, seconds
from .works import factor_name, is_choice, shown_factors, varied

MOST_LINES = len(style.SERIES)


def growth(study):
    """Returns a figure for each number of the work and each number of ranks."""
    found = []
    for key in keys_of(study.measured) if study.ratios else ():
        lines = lines_of(study.measured, key)
        ranks = sorted({line[-1].ranks for line in lines})
        columns = [(plural(int(p), "rank"), [line for line in lines if line[-1].ranks in (1, p)])
                   for p in ranks if p > 1 or len(ranks) == 1]  # fmt: skip
        if any(len(lines) > 1 for _, lines in columns):
            found += [figure_of(key, *column) for column in columns]
    return numbered(found)


def numbered(figures):
    if not figures:
        raise NothingToShow("no number of the work has three values in two lines of cases")
    for place, figure in enumerate(figures, 1):
        figure.name = f"growth-{place}"
    return figures


def keys_of(cases):
    """Returns the factors that change the work and are numbers."""
    keys = [key for key in varied([case.factors for case in cases]) if key == "global_batch" or not is_choice(key)]
    return [key for key in keys if all(is_number(case.factors.get(key, 0)) for case in cases)]


def lines_of(cases, key):
    """Returns the lines of three cases or more that differ in this factor only, each in its order."""
    groups = defaultdict(list)
    for case in cases:
        rest = {k: v for k, v in case.factors.items() if k not in (key, "batch_per_rank")}
        if key in case.factors and case.ranks and not case.same_as:
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


def figure_of(key, title, lines):
    """Lines of one rank are a reference beside those of several."""
    several = [line for line in lines if line[-1].ranks > 1]
    named = _named(several or lines, key)
    figure, panel = drawing.plate()
    found = []

    def draw(line, mark, beside=1.0):
        points = [(case.factors[key] * beside, Ratio(case.step(), *(case.interval or ()))) for case in line]
        drawing.points(panel, points, {k: v for k, v in mark.items() if k != "linestyle"}, line=mark.get("linestyle", "-"))
        found.extend((x, one, mark["color"]) for x, one in points)

    for line in [line for line in lines if several and line not in several]:
        draw(line, style.DASHED)
    series = {label or title: style.series(place) for place, label in enumerate(named)}
    for place, (mark, line) in enumerate(zip(series.values(), named.values())):
        draw(line, mark, 1.012 ** (place - (len(named) - 1) / 2))
    drawing.log_axis(panel, "x", count, ticks=sorted({case.factors[key] for line in lines for case in line}))
    drawing.fit_to_data(panel, found, seconds)
    panel.set(xlabel=factor_name(key), ylabel="step")
    if several and len(several) < len(lines):
        series["1 rank"] = style.DASHED
    drawing.legend(figure, [Line2D([], [], label=label, **mark) for label, mark in series.items()])
    caption = f"Cases that differ only in {factor_name(key)}; both axes are logarithmic. Bars: the 95 % interval of the step."
    return Figure("", f"Step and {factor_name(key)}, {title}", caption, figure)
