# SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes: one stacked bar for each measured case."""

from matplotlib.patches import Patch

from . import document as doc
from . import layout, style
from .numbers import TIME_UNITS, percent, seconds, unit_of


def _rank_time(case, name):
    """Time of all ranks in a phase for one sample. Ideal scaling keeps the sum over phases as it is."""
    return max(0.0, case.phases[name]) * case.ranks / case.global_batch


def _beside(case):
    step = seconds(sum(case.phases.values()))
    return f"{step} · {percent(case.communication_share)}" if case.ranks > 1 else step


def breakdown(study):
    found = layout.facets_with(
        study,
        lambda case: case.has_breakdown and case.ranks and case.global_batch,
        "no measured case has a breakdown",
    )
    # Rows from the top, with a gap between strategies.
    rows = [[0.55 * len({other.strategy for other in cases[: row + 1]}) + row
             for row in range(len(cases))] for _, cases in found]  # fmt: skip
    lowest = max(max(own) for own in rows)
    figure, axes = layout.panels(len(found), 0.8 + 0.205 * (lowest + 0.5))
    longest = max(sum(_rank_time(case, name) for name in style.PHASES)
                  for _, cases in found for case in cases)  # fmt: skip
    factor, unit = unit_of([longest], TIME_UNITS)
    for axis, (facet, cases), own in zip(axes, found, rows):
        ends = [0.0] * len(cases)
        for name, (_, pair) in style.PHASES.items():
            widths = [_rank_time(case, name) / factor for case in cases]
            bars = axis.barh(own, widths, left=ends, height=0.78, color=pair[0],
                             edgecolor=style.SURFACE[0], linewidth=0.4)  # fmt: skip
            ends = [end + width for end, width in zip(ends, widths)]
        axis.bar_label(bars, [_beside(case) for case in cases], padding=3, size=7.5,
                       color=style.MUTED[0])  # fmt: skip
        layout.case_rows(axis, cases, own)
        axis.set_ylim(lowest + 0.6, -0.2)
        axis.set_xlim(0, 1.28 * longest / factor)
        axis.set_xlabel(f"rank time per sample ({unit})")
        axis.set_title(facet.title)
    handles = [Patch(facecolor=pair[0], label=words) for words, pair in style.PHASES.values()]
    layout.legend_above(figure, handles)
    caption = (
        "Time of all ranks for one sample: ranks × mean time of a rank in one step ÷ global batch, so "
        "that under ideal scaling the bars of a strategy are equally long. Beside each bar: the step "
        "itself, and the share of exposed communication and idle time. From the second, instrumented "
        "run, whose fences make it slower than the figure of merit."
    )
    return doc.Figure("breakdown", "Breakdown of a step", caption, figure)
