# SPDX-License-Identifier: Apache-2.0
"""Strategy × mesh: samples per second where there are any, and otherwise what happened."""

import math

from matplotlib.patches import Rectangle

from . import document as doc
from . import layout, style
from .numbers import is_number, percent, significant
from .series import facets, mesh_order, strategy_order

WORDS = {"oom": "OOM", "stale": "stale", "n/a": "n/a"}
HATCHES = {"invalid": "////", "oom": "xxxx", "timeout": "----", "failed": "\\\\\\\\"}


def _shade(value, low, high):
    """Logarithmic, because throughput of different meshes differs by factors."""
    number = len(style.CELLS)
    share = 1.0 if high <= low else math.log(value / low) / math.log(high / low)
    index = min(number - 1, int(share * number))
    ink = style.CELL_STRONG_INK if index >= style.CELL_STRONG else style.CELL_INK
    return style.CELLS[index][0], ink[0]


def cell_text(case, ratios):
    """What stands in a cell: never blank, never zero."""
    if case is None:
        return WORDS["n/a"]
    if not case.ok:
        return WORDS.get(case.status, case.status)
    text = significant(case.samples_per_second)
    efficiency = case.derived("efficiency")
    if ratios and is_number(efficiency):
        text += f" · {percent(efficiency)}"
    return text


def _cell(axis, x, y, case, limits, ratios, narrow):
    text = cell_text(case, ratios)
    if case is not None and case.ok:
        fill, ink = _shade(case.samples_per_second, *limits)
        hatch = None
    else:
        status = "n/a" if case is None else case.status
        fill = style.CELL_STATUS.get(status, style.CELL_STATUS["pending"])[0]
        ink, hatch = style.CELL_INK[0], HATCHES.get(status)
        if case is None:
            ink = style.MUTED[0]
    box = Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, facecolor=fill, edgecolor="none")
    axis.add_patch(box)
    if hatch:
        axis.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, fill=False, hatch=hatch,
                                 edgecolor=style.CELL_EDGE[0], linewidth=0))  # fmt: skip
    size = 7.5 if narrow else 8.5
    if narrow:
        text = text.replace(" · ", "\n")
    label = axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=size, color=ink,
                      linespacing=1.15)  # fmt: skip
    if hatch:
        label.set_bbox({"facecolor": fill, "edgecolor": "none", "pad": 1.2})


def heatmap(study):
    ratios = study.ratios
    found = facets(study.cases, study.scaling)
    speeds = [case.samples_per_second for case in study.measured if case.samples_per_second]
    limits = (min(speeds, default=1), max(speeds, default=1))
    strategies = sorted({case.strategy for case in study.cases}, key=strategy_order)
    # One row of panels must share its rows of cells, so that labels stand once.
    meshes = {}
    for case in sorted(study.cases, key=mesh_order):
        meshes.setdefault(case.mesh, case)
    columns = 2 if len(found) > 1 else 1
    narrow = columns * len(strategies) > 7
    row_height = 0.34 if narrow else 0.27
    figure, axes = layout.panels(len(found), 0.75 + row_height * len(meshes), columns,
                                 sharey=True)  # fmt: skip
    for axis, facet in zip(axes, found):
        _panel(axis, facet, strategies, list(meshes.values()), limits, ratios, narrow)
    what = "Samples per second" + (" and efficiency" if ratios else "")
    caption = (
        f"{what} of every strategy on every mesh (and its ranks); a stronger colour is faster, on a "
        "logarithmic scale. Cells without a measurement say why; n/a: not part of the study."
    )
    return doc.Figure("heatmap", "Strategy × mesh", caption, figure)


def _panel(axis, facet, strategies, rows, limits, ratios, narrow):
    cells = {}
    for case in facet.cases:
        key = (case.strategy, case.mesh)
        # Of cases that differ in more than the facet says, the best.
        if key not in cells or (case.samples_per_second or 0) > (
            cells[key].samples_per_second or 0
        ):
            cells[key] = case
    for y, row in enumerate(rows):
        for x, strategy in enumerate(strategies):
            _cell(axis, x, y, cells.get((strategy, row.mesh)), limits, ratios, narrow)
        if y and rows[y - 1].ranks != row.ranks:
            axis.axhline(y, color=style.REFERENCE[0], linewidth=0.8)
    axis.set_xlim(0, len(strategies))
    axis.set_ylim(len(rows), 0)
    axis.set_xticks([x + 0.5 for x in range(len(strategies))], strategies)
    axis.set_yticks([y + 0.5 for y in range(len(rows))], [_mesh_label(row) for row in rows])
    axis.xaxis.tick_top()
    for tick, strategy in zip(axis.get_xticklabels(), strategies):
        tick.set_color(style.colour(strategy))
        tick.set_fontweight("bold")
    axis.tick_params(length=0)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    layout.title(axis, facet.title)


def _mesh_label(case):
    ranks = "?" if case.ranks is None else f"{case.ranks:g}"
    return f"{case.mesh}  ({ranks})"
