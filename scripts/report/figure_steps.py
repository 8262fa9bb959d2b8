# SPDX-License-Identifier: Apache-2.0
"""How much the times of a case's steps differ among themselves."""

from matplotlib.ticker import MaxNLocator

from . import document as doc
from . import layout, style
from .numbers import percent, seconds


def _limits(found):
    cases = [case for _, cases in found for case in cases]
    shares = [case.step("min") / case.step("median") for case in cases]
    shares += [(case.step("max") or case.step("median")) / case.step("median") for case in cases]
    return min(shares), max(shares)


def distribution(study):
    found = layout.facets_with(study, lambda case: case.step("min") is not None)
    if not found:
        raise layout.NothingToShow("no measured case has step times")
    tallest = max(len(cases) for _, cases in found)
    figure, axes = layout.panels(len(found), 0.8 + 0.215 * tallest)
    low, high = _limits(found)
    for axis, (facet, cases) in zip(axes, found):
        for row, case in enumerate(cases):
            _strip(axis, row, case)
        _frame(axis, cases, tallest, low, high)
        layout.title(axis, facet.title)
    caption = (
        "Every step of every measured case, slowest rank (dots); thin line: minimum to 95th "
        "percentile; thick line: 95 % confidence interval of the median, whose value stands at the "
        "right. Outliers are counted, never dropped."
    )
    return doc.Figure("steps", "Step times", caption, figure)


def _strip(axis, row, case):
    median, colour = case.step("median"), style.colour(case.strategy)
    p95 = case.step("p95")
    if p95 is not None:
        axis.plot([case.step("min") / median, p95 / median], [row, row], color=colour,
                  linewidth=0.9, zorder=2)  # fmt: skip
    low, high = case.step("ci95_low"), case.step("ci95_high")
    if low is not None and high is not None:
        axis.plot([low / median, high / median], [row, row], color=colour, linewidth=5,
                  solid_capstyle="butt", zorder=3)  # fmt: skip
    values = case.steps or [case.step("max") or median]
    axis.scatter([value / median for value in values], [row] * len(values), s=9, color=colour,
                 alpha=0.45, linewidths=0, zorder=4)  # fmt: skip


def _frame(axis, cases, tallest, low, high):
    layout.case_rows(axis, cases, range(len(cases)))
    axis.set_ylim(tallest - 0.4, -1.4)
    if high > 2:
        # Steps that took several times as long would leave no room for the others.
        axis.set_xlim(low / 1.03, high * (high / low) ** 0.3)
        layout.plain_log_axis(axis, percent, "x", most=5)
    else:
        margin = 0.02 * (high - low) + 2e-3
        axis.set_xlim(low - margin, high + 0.32 * (high - low) + margin)
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.xaxis.set_major_formatter(lambda value, _: percent(value))
    axis.set_xlabel("step time ÷ median of the case")
    axis.text(axis.get_xlim()[1], -0.95, "median", ha="right", va="center", size=7.5,
              color=style.MUTED[0], fontstyle="italic")  # fmt: skip
    for row, case in enumerate(cases):
        axis.text(axis.get_xlim()[1], row, seconds(case.step("median")), ha="right", va="center",
                  size=7.5, color=style.MUTED[0])  # fmt: skip
