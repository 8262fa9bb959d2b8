# SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes: one stacked bar for each measured case."""

from . import document as doc
from . import layout, style
from .case import PHASES
from .numbers import TIME_UNITS, axis_unit, percent, seconds

# Work first, so that what the mesh costs ends the bar.
ORDER = ("compute", "optimizer", "other", "communication", "idle")


def _rank_time(case):
    """Phase -> time of all ranks for one sample. Ideal scaling keeps the sum as it is."""
    share = case.ranks / case.global_batch
    return {name: max(0.0, case.phase(name) or 0.0) * share for name in PHASES}


def _positions(cases):
    """Rows from the top, with a gap between strategies."""
    rows, y = [], 0.0
    for before, case in zip([None, *cases], cases):
        if before is not None and before.strategy != case.strategy:
            y += 0.55
        rows.append(y)
        y += 1.0
    return rows, y


def breakdown(study):
    found = layout.facets_with(study, lambda c: c.has_breakdown and c.ranks and c.global_batch)
    if not found:
        raise layout.NothingToShow("no measured case has a breakdown")
    tallest = max(_positions(cases)[1] for _, cases in found)
    figure, axes = layout.panels(len(found), 0.8 + 0.205 * tallest)
    longest = max(sum(_rank_time(case).values()) for _, cases in found for case in cases)
    factor, unit = axis_unit([longest], TIME_UNITS)
    for axis, (facet, cases) in zip(axes, found):
        rows, _ = _positions(cases)
        ends = [0.0] * len(cases)
        for name in ORDER:
            widths = [_rank_time(case)[name] / factor for case in cases]
            axis.barh(rows, widths, left=ends, height=0.78, color=style.PHASES[name][0],
                      edgecolor=style.SURFACE[0], linewidth=0.4)  # fmt: skip
            ends = [end + width for end, width in zip(ends, widths)]
        for row, end, case in zip(rows, ends, cases):
            text = seconds(sum(case.phase(name) or 0.0 for name in PHASES))
            if case.ranks > 1:
                text += f" · {percent(case.communication_share)}"
            axis.text(end + 0.01 * longest / factor, row, text, va="center", size=7.5,
                      color=style.MUTED[0])  # fmt: skip
        layout.case_rows(axis, cases, rows)
        axis.set_ylim(tallest - 0.4, -0.7)
        axis.set_xlabel(f"rank time per sample ({unit})")
        layout.title(axis, facet.title)
        axis.set_xlim(0, 1.28 * longest / factor)
    layout.legend_above(figure, layout.phase_handles(ORDER))
    caption = (
        "Time of all ranks for one sample: ranks × mean time of a rank in one step ÷ global batch, so "
        "that under ideal scaling the bars of a strategy are equally long. Beside each bar: the step "
        "itself, and the share of exposed communication and idle time. From the second, instrumented "
        "run, whose fences make it slower than the figure of merit."
    )
    return doc.Figure("breakdown", "Breakdown of a step", caption, figure)
