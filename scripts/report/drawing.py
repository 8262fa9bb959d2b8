# SPDX-License-Identifier: Apache-2.0
"""Plates, axes and legends of figures, and their files. A plate is as wide as a phone, so that it can be read there."""

import io
import math
import re

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from . import style
from .numbers import count

WIDTH = 4.9  # inches of a plate; one inch is 72 pixels on a phone
BEYOND = 1.5  # bars are drawn this far beyond the data, as a ratio


class NothingToShow(Exception):
    """The reason for leaving out a figure or a table."""


def panels(number, height, columns=2, width=9.6):
    """Returns a figure with `number` panels in rows of `columns`, and the panels as a list."""
    columns = min(columns, number)
    rows = math.ceil(number / columns)
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for spare in axes[number:]:
        spare.set_visible(False)
    return figure, axes[:number]


def plate(height=2.9):
    """Returns a figure with one panel, and the panel."""
    figure, (panel,) = panels(1, height, width=WIDTH)
    return figure, panel


def log_axis(axis, which, show, ticks=None, most=5):
    """Makes an axis logarithmic, with these ticks or round ones between its limits, about as many as `most`."""
    getattr(axis, f"set_{which}scale")("log")
    own = getattr(axis, f"{which}axis")
    low, high = sorted(own.get_view_interval())
    subs = (1,) if high > 300 * low else (1, 2, 5) if high > 6 * low else (1, 1.5, 2, 3, 5, 7)
    if not ticks and high < 3 * low:
        ticks = MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
    own.set_major_locator(FixedLocator(ticks) if ticks is not None else LogLocator(subs=subs))
    own.set_major_formatter(lambda value, _: show(float(value)))  # NumPy makes integers of its own
    own.set_minor_locator(NullLocator())


def rank_axis(panel, ranks, label="ranks"):
    """Gives an axis the numbers of ranks, or of cores, as ticks, or as many of them as have room for their digits."""
    ranks = sorted(ranks)
    room = max(1.18, (ranks[-1] / ranks[0]) ** 0.04)  # for marks at the ends
    panel.set(xlabel=label, xlim=(ranks[0] / room, ranks[-1] * room))
    span, kept = math.log(ranks[-1] / ranks[0]) or 1, []
    for one in ranks:
        room = 0.04 + 0.014 * (len(count(one)) + len(count(kept[-1]))) if kept else 0  # part of the axis
        if not kept or math.log(one / kept[-1]) > room * span:
            kept.append(one)
    log_axis(panel, "x", count, ticks=kept)


def points(panel, found, mark, beside=1.0, line="none", which="y"):
    """Draws (place, Ratio) with bars along an axis, where an interval is known."""
    ends = [[abs((one.low or one.value) - one.value) for _, one in found],
            [abs((one.high or one.value) - one.value) for _, one in found]]  # fmt: skip
    places, values = [place * beside for place, _ in found], [one.value for _, one in found]
    across = (places, values) if which == "y" else (values, places)
    panel.errorbar(*across, **{f"{which}err": ends}, capsize=2.5, linestyle=line, elinewidth=1, **mark)


def fit_to_data(panel, found, show, *always, which="y", most=5):
    """Ends a logarithmic axis where the data do: `found` is (place, Ratio, colour), and `always` are values to be shown, too. Bars
    that go on are cut, and an arrow says so."""
    values = [one.value for _, one, _ in found] + list(always)
    ends = [end for _, one, _ in found for end in one[1:] if end]
    low, high = max(min(values + ends), min(values) / BEYOND), min(max(values + ends), max(values) * BEYOND)
    room = max((high / low) ** 0.06, 1.01)
    low, high = low / room, high * room
    for place, one, colour in found:
        for end, edge, arrow in ((one.low, low, "v" if which == "y" else "<"), (one.high, high, "^" if which == "y" else ">")):
            if end and not low <= end <= high:
                at = (place, edge) if which == "y" else (edge, place)
                panel.plot([at[0]], [at[1]], marker=arrow, color=colour, markersize=7, markerfacecolor="white", clip_on=False,
                           zorder=4)  # fmt: skip
    getattr(panel, f"set_{which}lim")(low, high)
    log_axis(panel, which, show, most=most)


def marks(names):
    """Returns the entries of a legend of strategies."""
    return [Line2D([], [], linestyle="none", label=name, **style.mark(name))
            for name in sorted(set(names), key=style.strategy_order)]  # fmt: skip


def patches(colours):
    """Returns the entries of a legend of stacked parts, from name -> colour."""
    return [Patch(facecolor=colour, label=name) for name, colour in colours.items()]


def legend(figure, handles):
    """Puts a legend above the panels, which keep their heights."""
    letters = figure.get_figwidth() * 10.5
    columns = min(len(handles), max(1, int(letters / (max(len(handle.get_label()) for handle in handles) + 6))))
    room = 0.08 + 0.21 * math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + room)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room / figure.get_figheight()))
    legend = figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncol=columns, borderpad=0,
                           columnspacing=1.2, handletextpad=0.4, handlelength=1.2, borderaxespad=0.2)  # fmt: skip
    legend.set_in_layout(False)


def rows_of(axis, rows, colours):
    """Names the rows of a panel, the first at the top."""
    axis.set_yticks(range(len(rows)), rows)
    for label, colour in zip(axis.get_yticklabels(), colours):
        label.set_color(colour)
    axis.tick_params("y", length=0)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(False, axis="y")
    axis.spines["left"].set_visible(False)


def draw(block):
    """Fills in the PNG of a figure and its SVG, in which the name of the figure precedes every id."""
    png, svg = io.BytesIO(), io.StringIO()
    block.figure.savefig(png, format="png", metadata={"Software": None}, dpi=200)
    block.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None}, dpi=160)
    element = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{block.name}-", svg.getvalue()[svg.getvalue().index("<svg") :])
    block.svg = re.sub(r"<metadata>.*?</metadata>\s*", "", element, flags=re.DOTALL)
    block.png = png.getvalue()
