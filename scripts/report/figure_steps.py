# SPDX-License-Identifier: Apache-2.0
"""How much the times of a case's steps differ among themselves."""

from matplotlib.ticker import MaxNLocator

from . import document as doc
from . import layout, style
from .numbers import percent, seconds


def distribution(study):
    found = layout.facets_with(
        study, lambda case: case.step("min") is not None, "no measured case has step times"
    )
    tallest = max(len(cases) for _, cases in found)
    figure, axes = layout.panels(len(found), 0.8 + 0.215 * tallest, sharex=True)
    for axis, (facet, cases) in zip(axes, found):
        for row, case in enumerate(cases):
            _strip(axis, row, case)
        _beside(axis, -0.95, "median", fontstyle="italic")
        layout.case_rows(axis, cases, range(len(cases)))
        axis.set_ylim(tallest - 0.4, -1.4)
        axis.set_xlabel("step time ÷ median of the case")
        axis.set_title(facet.title)
    for axis in axes:
        if axis.get_xlim()[1] > 2:
            # Steps that took several times as long would leave no room for the others.
            layout.log_axis(axis, "x", percent, most=5)
        else:
            axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axis.xaxis.set_major_formatter(lambda value, _: percent(value))
        axis.tick_params(labelbottom=True)
    caption = (
        "Every step of every measured case, slowest rank (dots); thin line: minimum to 95th "
        "percentile; thick line: 95 % confidence interval of the median, whose value stands at the "
        "right. Outliers are counted, never dropped."
    )
    return doc.Figure("steps", "Step times", caption, figure)


def _strip(axis, row, case):
    median, colour = case.step("median"), style.colour(case.strategy)
    for low, high, width in (("min", "p95", 0.9), ("ci95_low", "ci95_high", 5)):
        ends = [case.step(low), case.step(high)]
        if None not in ends:
            axis.plot([end / median for end in ends], [row, row], color=colour, linewidth=width,
                      solid_capstyle="butt", zorder=2)  # fmt: skip
    values = case.steps or [case.step("max") or median]
    axis.scatter([value / median for value in values], [row] * len(values), s=9, color=colour,
                 alpha=0.45, linewidths=0, zorder=4)  # fmt: skip
    _beside(axis, row, seconds(median))


def _beside(axis, row, text, **options):
    axis.text(1.01, row, text, transform=axis.get_yaxis_transform(), va="center", size=7.5,
              color=style.MUTED[0], **options)  # fmt: skip
