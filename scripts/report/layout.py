# SPDX-License-Identifier: Apache-2.0
"""What the figures share: panels, axes of ranks, legends, and labels that keep clear of each other."""

import math

import numpy
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from . import style
from .series import strategy_order

WIDTH = 9.6  # inches; 72 units of the SVG each
LABEL_SIZE = 8.5


class NothingToShow(Exception):
    """Why a figure is left out."""


def needs_ratios(study):
    if not study.ratios:
        raise NothingToShow("the cases were measured under different conditions")


def panels(number, height, columns=2, **options):
    """A figure with `number` panels in rows of `columns`, and the panels as a list."""
    columns = min(columns, number)
    rows = math.ceil(number / columns)
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for spare in axes[number:]:
        spare.set_visible(False)
    return figure, axes[:number]


def _set_ticks(axis, ticks, show):
    """These ticks alone."""
    axis.set_ticks(ticks, [show(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())


def rank_axis(axis, ranks, label="ranks"):
    """What was run, evenly spaced by factors."""
    ranks = sorted(set(ranks))
    axis.set_xscale("log", base=2)
    _set_ticks(axis.xaxis, ranks, "{:g}".format)
    axis.set_xlim(ranks[0] / 1.18, ranks[-1] * 1.18)
    axis.set_xlabel(label)


def _round_values(low, high, most, base):
    """At most about `most` round numbers that suit a logarithmic axis from low to high."""
    if base == 10 and high / low < 8:
        return [t for t in MaxNLocator(most - 1).tick_values(low, high) if low <= t <= high]
    powers = range(math.floor(math.log(low, base)), math.ceil(math.log(high, base)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)) if base == 10 else ((1,),):
        ticks = [s * float(base) ** p for p in powers for s in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def log_axis(axis, which, show, most=6, base=10):
    """A logarithmic axis between its limits, with as many round ticks as are legible."""
    getattr(axis, f"set_{which}scale")("log", base=base)
    low, high = sorted(getattr(axis, f"get_{which}lim")())
    _set_ticks(getattr(axis, f"{which}axis"), _round_values(low, high, most, base), show)


def label_ends(axis, ends):
    """Labels to the right of the panel: `ends` is (x, y, text, colour), and a thin line goes from each
    point to its label. How high the labels stand is decided when the figure is settled."""
    for x, y, text, colour in ends:
        line = {"arrowstyle": "-", "relpos": (0, 0.5), "color": colour, "linewidth": 0.6,
                "shrinkA": 1, "shrinkB": 3}  # fmt: skip
        axis.annotate(text, xy=(x, y), xytext=(1.02, 0.5), textcoords="axes fraction", va="center",
                      size=LABEL_SIZE, color=colour, annotation_clip=False,
                      arrowprops=line)  # fmt: skip


def settle(figure):
    """Lays the figure out, once and for all, and moves the labels of ends apart."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axis in figure.axes:
        labels = [text for text in axis.texts if getattr(text, "arrow_patch", None)]
        if labels:
            points = axis.transAxes.inverted().transform(
                axis.transData.transform([label.xy for label in labels])
            )
            gap = LABEL_SIZE * 1.25 * figure.dpi / 72 / axis.get_window_extent().height
            for label, height in zip(labels, spread(points[:, 1], gap)):
                label.set_position((1.02, height))


def spread(wanted, gap):
    """Positions near `wanted`, in their order, at least `gap` apart and between 0 and 1."""
    order = numpy.argsort(wanted, kind="stable")
    steps = gap * numpy.arange(len(wanted))
    # What is left of a position after these steps must never fall: half-way between the least numbers
    # above the wanted ones, and the largest below them, that do not.
    rest = numpy.array(wanted)[order] - steps
    rest = (numpy.maximum.accumulate(rest) + numpy.minimum.accumulate(rest[::-1])[::-1]) / 2
    placed = numpy.empty(len(wanted))
    placed[order] = rest.clip(gap / 2, 1 - gap / 2 - max(steps)) + steps
    return placed


def legend_above(figure, handles):
    """One row above the panels, in room of its own."""
    figure.set_figheight(figure.get_figheight() + 0.3)
    room = 0.3 / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room))
    legend = figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1),
                           ncol=len(handles), columnspacing=1.5, handletextpad=0.5,
                           handlelength=1.4, borderaxespad=0.3)  # fmt: skip
    legend.set_in_layout(False)


def strategy_legend(figure, cases):
    handles = [
        Line2D([], [], linestyle="none", label=name, **style.mark(name, edge=0))
        for name in sorted({case.strategy for case in cases}, key=strategy_order)
    ]
    legend_above(figure, handles)
