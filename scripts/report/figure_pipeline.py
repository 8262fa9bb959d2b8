# SPDX-License-Identifier: Apache-2.0
"""Which stage of a pipeline computes which microbatch when, as measured and as scheduled."""

from matplotlib.patches import Patch

from . import document as doc
from . import layout, style
from .fields import get, is_number, number, text
from .numbers import TIME_UNITS, percent, unit_of

MOST = 6  # cases shown: the fastest of each schedule and number of stages


def _rows(case, kind):
    """(name, begin, end) of every pass of each stage; None if they are not there as they should be."""
    rows = get(case.result, "pipeline", "timeline", kind)
    if not isinstance(rows, list) or not rows:
        return None
    for row in rows:
        for one in row if isinstance(row, list) else [None]:
            is_pass = isinstance(one, list) and len(one) == 3 and isinstance(one[0], str)
            if not is_pass or one[0][:1] not in style.PASSES or not all(map(is_number, one[1:])):
                return None
    return rows


def _shown(study):
    """The fastest case of each schedule and number of stages, in their order."""
    best = {}
    for case in study.measured:
        if _rows(case, "measured") and _rows(case, "ideal"):
            key = (number(case.result, "pipeline", "stages") or 0,
                   text(case.result, "pipeline", "schedule") or "")  # fmt: skip
            if key not in best or case.step("median") < best[key].step("median"):
                best[key] = case
    return [best[key] for key in sorted(best)][:MOST]


def _end(rows):
    return max((one[2] for row in rows for one in row), default=0.0)


def _draw(axis, rows, top, factor, width):
    """A band for each stage, from `top` downwards; names where there is room for them."""
    for stage, row in enumerate(rows):
        for name, begin, end in row:
            colour = style.PASSES[name[0]][1][0]
            axis.barh(top + stage, (end - begin) / factor, left=begin / factor, height=0.86,
                      color=colour, edgecolor=style.SURFACE[0], linewidth=0.4)  # fmt: skip
            if (end - begin) / factor > 0.022 * width:
                axis.text((begin + end) / 2 / factor, top + stage, name[1:], ha="center", va="center",
                          size=6.5)  # fmt: skip


def pipeline(study):
    cases = _shown(study)
    if not cases:
        raise layout.NothingToShow("no measured case has a pipeline")
    stages = max(len(_rows(case, "measured")) for case in cases)
    figure, axes = layout.panels(len(cases), 1.1 + 0.44 * stages)
    for axis, case in zip(axes, cases):
        measured, ideal = _rows(case, "measured"), _rows(case, "ideal")
        factor, unit = unit_of([_end(measured)], TIME_UNITS)
        width = max(_end(measured), _end(ideal)) / factor
        below = len(measured) + 0.6
        _draw(axis, measured, 0, factor, width)
        _draw(axis, ideal, below, factor, width)
        ticks = [*range(len(measured)), *(below + stage for stage in range(len(ideal)))]
        names = [f"stage {s}" for s in range(len(measured))]
        axis.set_yticks(ticks, [*names, *(f"ideal {s}" for s in range(len(ideal)))], size=7.5)
        axis.set_ylim(below + len(ideal) - 0.4, -0.6)
        axis.set_xlim(0, 1.02 * width)
        axis.grid(False, axis="y")
        axis.set_xlabel(f"time since the first pass ({unit})")
        bubble = percent(number(case.result, "pipeline", "bubble"))
        axis.set_title(f"{text(case.result, 'pipeline', 'schedule')}, {case.mesh}: bubble {bubble}")
    used = {one[0][0] for case in cases for row in _rows(case, "measured") for one in row}
    handles = [Patch(facecolor=pair[0], label=words)
               for key, (words, pair) in style.PASSES.items() if key in used]  # fmt: skip
    layout.legend_above(figure, handles)
    caption = (
        "Passes of the first instrumented step on the first rank of each stage, with the number of their "
        "microbatch (and the letter of their chunk of layers). Ideal: the same schedule if every pass took "
        "the mean time of its kind and messages none. The fastest case of each schedule and number of "
        "stages. The bubble is that of the schedule, with backward passes twice as long as forward passes."
    )
    return doc.Figure("pipeline", "Passes of a pipeline", caption, figure)
