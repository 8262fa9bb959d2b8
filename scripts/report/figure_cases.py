# SPDX-License-Identifier: Apache-2.0
"""A row for each measured case: where the time of its step goes, and how much its steps differ."""

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from . import document as doc
from . import layout, style
from .numbers import TIME_UNITS, percent, seconds, unit_of
from .series import facets

GAP = 0.55  # between the rows of strategies


def _panels(study, keep, otherwise, **options):
    """The figure, and for each facet its panel, its cases for which `keep` holds, and their rows."""
    found = []
    for facet in facets(study.cases, study.scaling):
        cases = list(filter(keep, facet.measured))
        if cases:
            found.append((facet, cases))
    if not found:
        raise layout.NothingToShow(otherwise)
    rows = [[index + GAP * len({case.strategy for case in cases[: index + 1]})
             for index in range(len(cases))] for _, cases in found]  # fmt: skip
    lowest = max(own[-1] for own in rows)
    figure, axes = layout.panels(len(found), 0.9 + 0.205 * lowest, **options)
    for axis, (facet, cases), own in zip(axes, found, rows):
        axis.set_yticks(own, [f"{case.strategy}  {case.mesh}" for case in cases], size=8)
        for label, case in zip(axis.get_yticklabels(), cases):
            label.set_color(style.colour(case.strategy))
        axis.set_ylim(lowest + 0.6, -0.6)
        axis.grid(False, axis="y")
        axis.spines["left"].set_visible(False)
        axis.set_title(facet.title)
    return figure, [(axis, cases, own) for axis, (_, cases), own in zip(axes, found, rows)]


def _rank_time(case, name):
    """Time of all ranks in a phase for one sample. Ideal scaling keeps the sum over phases as it is."""
    return max(0.0, case.phases[name]) * case.ranks / case.global_batch


def _beside(case):
    step = seconds(sum(case.phases.values()))
    return f"{step} · {percent(case.communication_share)}" if case.ranks > 1 else step


def breakdown(study):
    def keep(case):
        return case.phases and case.ranks and case.global_batch

    figure, panels = _panels(study, keep, "no measured case has a breakdown")
    longest = max(sum(_rank_time(case, name) for name in style.PHASES)
                  for _, cases, _ in panels for case in cases)  # fmt: skip
    factor, unit = unit_of([longest], TIME_UNITS)
    for axis, cases, rows in panels:
        ends = [0.0] * len(cases)
        for name, (_, pair) in style.PHASES.items():
            widths = [_rank_time(case, name) / factor for case in cases]
            bars = axis.barh(rows, widths, left=ends, height=0.78, color=pair[0],
                             edgecolor=style.SURFACE[0], linewidth=0.4)  # fmt: skip
            ends = [end + width for end, width in zip(ends, widths)]
        texts = [_beside(case) for case in cases]
        axis.bar_label(bars, texts, padding=3, size=7.5, color=style.MUTED[0])
        axis.set_xlim(0, 1.28 * longest / factor)
        axis.set_xlabel(f"rank time per sample ({unit})")
    handles = [Patch(facecolor=pair[0], label=words) for words, pair in style.PHASES.values()]
    layout.legend_above(figure, handles)
    caption = (
        "Time of all ranks for one sample: ranks × mean time of a rank in one step ÷ global batch, so "
        "that under ideal scaling the bars of a strategy are equally long. Beside each bar: the step "
        "itself, and the share of exposed communication and idle time. From the second, instrumented "
        "run, whose fences make it slower than the figure of merit."
    )
    return doc.Figure("breakdown", "Breakdown of a step", caption, figure)


def distribution(study):
    def keep(case):
        return case.step("min") is not None

    figure, panels = _panels(study, keep, "no measured case has step times", sharex=True)
    for axis, cases, rows in panels:
        for case, row in zip(cases, rows):
            _strip(axis, row, case)
        _at_the_right(axis, -0.25, "median", fontstyle="italic")
        axis.set_xlabel("step time ÷ median of the case")
    for axis, _, _ in panels:
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
    _at_the_right(axis, row, seconds(median))


def _at_the_right(axis, row, text, **options):
    axis.text(1.01, row, text, transform=axis.get_yaxis_transform(), va="center", size=7.5,
              color=style.MUTED[0], **options)  # fmt: skip
