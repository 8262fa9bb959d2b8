# SPDX-License-Identifier: Apache-2.0
"""Panels, axes and legends of figures, and their files."""

import io
import math
import re

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from . import style


class NothingToShow(Exception):
    """The reason for leaving out a figure or a table."""


def panels(number, height, columns=2, **options):
    """Returns a figure with `number` panels in rows of `columns`, and the panels as a list."""
    columns = min(columns, number)
    rows = math.ceil(number / columns)
    figure = Figure(figsize=(9.6, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for spare in axes[number:]:
        spare.set_visible(False)
    return figure, axes[:number]


def log_axis(axis, which, show, ticks=None):
    """Makes an axis logarithmic, with these ticks or round ones between its limits."""
    getattr(axis, f"set_{which}scale")("log")
    own = getattr(axis, f"{which}axis")
    low, high = sorted(own.get_view_interval())
    subs = (1,) if high > 300 * low else (1, 2, 5) if high > 6 * low else (1, 1.5, 2, 3, 5, 7)
    if not ticks and high < 3 * low:
        ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
    own.set_major_locator(FixedLocator(ticks) if ticks is not None else LogLocator(subs=subs))
    own.set_major_formatter(lambda value, _: show(float(value)))  # NumPy makes integers of its own
    own.set_minor_locator(NullLocator())


def marks(cases):
    """Returns the entries of a legend of strategies."""
    names = sorted({case.strategy for case in cases}, key=style.strategy_order)
    return [Line2D([], [], linestyle="none", label=name, **style.mark(name)) for name in names]


def legend(figure, handles):
    """Puts a legend above the panels, which keep their widths."""
    columns = min(6, max(1, 115 // (max(len(handle.get_label()) for handle in handles) + 2)))
    room = 0.1 + 0.22 * math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + room)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room / figure.get_figheight()))
    legend = figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncol=columns,
                           columnspacing=1.5, handletextpad=0.5, borderaxespad=0.3)  # fmt: skip
    legend.set_in_layout(False)


def rows_of(axis, rows, name=lambda case: case.name):
    """Names the rows of a panel, the first at the top. A row is a case or a text."""
    axis.set_yticks(range(len(rows)), [row if isinstance(row, str) else name(row) for row in rows], size=8)
    for label, row in zip(axis.get_yticklabels(), rows):
        label.set_color("black" if isinstance(row, str) else style.colour(row.strategy))
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(False, axis="y")
    axis.spines["left"].set_visible(False)


def draw(block):
    """Fills in the PNG of a figure and its SVG, in which the name of the figure precedes every id."""
    png, svg = io.BytesIO(), io.StringIO()
    block.figure.savefig(png, format="png", metadata={"Software": None}, dpi=160)
    block.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None}, dpi=160)
    element = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{block.name}-", svg.getvalue()[svg.getvalue().index("<svg") :])
    block.svg = re.sub(r"<metadata>.*?</metadata>\s*", "", element, flags=re.DOTALL)
    block.png = png.getvalue()
