# SPDX-License-Identifier: Apache-2.0
"""Strategy × mesh: samples per second where there are any, and otherwise what happened."""

import math

from matplotlib.patches import Rectangle

from . import document as doc
from . import layout, style
from .case import MEASURED
from .numbers import percent, significant
from .series import facets, mesh_order, strategy_order


def _cell_text(case, status, ratios):
    """What stands in a cell: never blank, never zero."""
    if status not in MEASURED:
        return "OOM" if status == "oom" else status
    efficiency = case.derived("efficiency") if ratios else None
    text = significant(case.samples_per_second)
    return text if efficiency is None else f"{text}\n{percent(efficiency)}"


def _shade(value, low, high):
    """Logarithmic, because throughput of different meshes differs by factors."""
    share = 1.0 if high <= low else math.log(value / low) / math.log(high / low)
    index = min(len(style.CELLS) - 1, int(share * len(style.CELLS)))
    ink = style.CELL_STRONG_INK if index >= style.CELL_STRONG else style.CELL_INK
    return style.CELLS[index][0], ink[0]


def _cell(axis, x, y, case, limits, ratios):
    status = "n/a" if case is None else case.status
    text = _cell_text(case, status, ratios)
    _, pair, hatch = style.STATUSES[status]
    if pair is None:
        fill, ink = _shade(case.samples_per_second, *limits)
    else:
        fill, ink = pair[0], (style.MUTED if case is None else style.CELL_INK)[0]
    box = {"xy": (x + 0.02, y + 0.04), "width": 0.96, "height": 0.92, "linewidth": 0}
    axis.add_patch(Rectangle(**box, facecolor=fill))
    label = axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=7.5, color=ink,
                      linespacing=1.15)  # fmt: skip
    if hatch:
        # By itself: the colour of a box with a hatch could not follow the colour scheme.
        axis.add_patch(Rectangle(**box, fill=False, hatch=hatch, edgecolor=style.CELL_EDGE[0]))
        label.set_bbox({"facecolor": fill, "edgecolor": "none", "pad": 1.2})


def heatmap(study):
    found = facets(study.cases, study.scaling)
    speeds = [case.samples_per_second for case in study.measured]
    limits = (min(speeds, default=1), max(speeds, default=1))
    strategies = sorted({case.strategy for case in study.cases}, key=strategy_order)
    # One row of panels shares its rows of cells, so that labels stand once.
    ranks = {case.mesh: case.ranks for case in sorted(study.cases, key=mesh_order)}
    figure, axes = layout.panels(len(found), 0.75 + 0.34 * len(ranks), sharey=True)
    for axis, facet in zip(axes, found):
        # Of cases that differ in more than the facet says, the best.
        cases = sorted(facet.cases, key=lambda case: case.samples_per_second or 0)
        cells = {(case.strategy, case.mesh): case for case in cases}
        for y, mesh in enumerate(ranks):
            for x, strategy in enumerate(strategies):
                _cell(axis, x, y, cells.get((strategy, mesh)), limits, study.ratios)
        _frame(axis, strategies, ranks)
        axis.set_title(facet.title)
    what = "Samples per second" + (" and efficiency" if study.ratios else "")
    caption = (
        f"{what} of every strategy on every mesh (and its ranks); a stronger colour is faster, on a "
        "logarithmic scale. Cells without a measurement say why; n/a: not part of the study."
    )
    return doc.Figure("heatmap", "Strategy × mesh", caption, figure)


def _frame(axis, strategies, ranks):
    """Names the columns, and the rows with a line wherever the number of ranks changes."""
    meshes = list(ranks)
    for y in range(1, len(meshes)):
        if ranks[meshes[y]] != ranks[meshes[y - 1]]:
            axis.axhline(y, color=style.REFERENCE[0], linewidth=0.8)
    axis.xaxis.tick_top()
    axis.set(xlim=(0, len(strategies)), ylim=(len(meshes), 0))
    axis.set_xticks([x + 0.5 for x in range(len(strategies))], strategies, fontweight="bold")
    axis.set_yticks([y + 0.5 for y in range(len(meshes))],
                    [f"{mesh}  ({ranks[mesh] or '?'})" for mesh in meshes])  # fmt: skip
    for tick, strategy in zip(axis.get_xticklabels(), strategies):
        tick.set_color(style.colour(strategy))
    axis.tick_params(length=0)
    axis.grid(False)
    axis.spines[:].set_visible(False)
