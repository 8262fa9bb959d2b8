# SPDX-License-Identifier: Apache-2.0
"""What the figures share: panels, axes of ranks, legends, and labels that keep clear of each other."""

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from . import style
from .series import case_order, facets, strategy_order

WIDTH = 9.6  # inches; 72 units of the SVG each
LABEL_GAP = 16  # points between the last points and their labels


class NothingToShow(Exception):
    """Why a figure is left out."""


def needs_ratios(study):
    if not study.ratios:
        raise NothingToShow("the cases were measured under different conditions")


def facets_with(study, keep):
    """(facet, its measured cases for which `keep` holds, in order), without empty ones."""
    found = [
        (facet, sorted(filter(keep, facet.measured), key=case_order))
        for facet in facets(study.cases, study.scaling)
    ]
    return [(facet, cases) for facet, cases in found if cases]


def panels(number, height, columns=2, width=WIDTH, **options):
    """A figure with `number` panels in rows of `columns`, and the panels as a list."""
    columns = min(columns, number)
    rows = math.ceil(number / columns)
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for spare in axes[number:]:
        spare.set_visible(False)
    return figure, axes[:number]


def _set_ticks(axis, ticks, formatter="{:g}".format):
    """These ticks alone."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: formatter(value)))


def rank_axis(axis, ranks):
    """Powers of two and what else was run, evenly spaced by factors."""
    ranks = sorted(set(ranks))
    axis.set_xscale("log", base=2)
    _set_ticks(axis.xaxis, ranks)
    axis.set_xlim(ranks[0] / 1.18, ranks[-1] * 1.18)
    axis.set_xlabel("ranks")


def settle(figure):
    """Lays the figure out, once and for all: what comes after may rely on where things are."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _make_room(axis, texts, size):
    """Makes the axis longer, so that texts of this size beside its last points stay inside."""
    renderer = axis.figure._get_renderer()
    widths = []
    for text in texts:
        probe = axis.text(0, 0, text, size=size)
        widths.append(probe.get_window_extent(renderer).width)
        probe.remove()
    width = axis.get_window_extent().width
    share = min(0.6, (max(widths) + LABEL_GAP * axis.figure.dpi / 72) / width)
    low, high = axis.get_xlim()
    if axis.get_xscale() == "log":
        axis.set_xlim(low, low * (high / low) ** (1 / (1 - share)))
    else:
        axis.set_xlim(low, low + (high - low) / (1 - share))


def spread(wanted, gap, low, high):
    """Positions near `wanted`, in their order, at least `gap` apart and within [low, high]."""
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    placed = [wanted[index] for index in order]
    for _ in range(200):
        moved = False
        for i in range(len(placed) - 1):
            overlap = gap - (placed[i + 1] - placed[i])
            if overlap > 1e-6:
                placed[i] -= overlap / 2
                placed[i + 1] += overlap / 2
                moved = True
        if placed and placed[0] < low:
            placed[0], moved = low, True
        if placed and placed[-1] > high:
            placed[-1], moved = high, True
        if not moved:
            break
    result = [0.0] * len(wanted)
    for index, position in zip(order, placed):
        result[index] = position
    return result


def label_ends(axis, ends, size=8.5, right=None):
    """Labels to the right of points: `ends` is (x, y, text, colour). Makes the axis longer for them and
    moves them apart, with a thin line from each point to its label. Comes last, when the limits are final
    and the figure is settled. The labels stand to the right of the last point, or of x = `right`."""
    if not ends:
        return
    _make_room(axis, [text for _, _, text, _ in ends], size)
    to_pixels = axis.transData.transform
    box = axis.get_window_extent()
    gap = size * 1.25 * axis.figure.dpi / 72
    points = [to_pixels((x, y)) for x, y, _, _ in ends]
    heights = spread([point[1] for point in points], gap, box.y0 + gap / 2, box.y1 - gap / 2)
    edge = [to_pixels((right, points[0][1]))[0]] if right is not None else []
    left = max(edge + [point[0] for point in points]) + LABEL_GAP * axis.figure.dpi / 72
    back = axis.transData.inverted().transform
    for (x, y, text, colour), height in zip(ends, heights):
        axis.annotate(
            text,
            xy=(x, y),
            xytext=tuple(back((left, height))),
            va="center",
            ha="left",
            size=size,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0, 0.5),
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 1,
                "shrinkB": 3,
            },
        )


def legend_above(figure, handles):
    """One row above the panels, in room of its own."""
    if not handles:
        return
    figure.set_figheight(figure.get_figheight() + 0.3)
    room = 0.3 / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room))
    legend = figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1),
                           ncol=len(handles), columnspacing=1.5, handletextpad=0.5,
                           handlelength=1.4, borderaxespad=0.3)  # fmt: skip
    legend.set_in_layout(False)


def strategy_legend(figure, shown):
    """Of the strategies of these cases, fits or lines."""
    handles = [
        Line2D([], [], color=style.colour(name), marker=style.marker(name), linestyle="none",
               markersize=style.marker_size(name), label=name)
        for name in sorted({one.strategy for one in shown}, key=strategy_order)
    ]  # fmt: skip
    legend_above(figure, handles)


def case_rows(axis, cases, rows):
    """Names the cases beside their rows, in the colours of their strategies."""
    axis.set_yticks(rows, [f"{case.strategy}  {case.mesh}" for case in cases])
    for tick, case in zip(axis.get_yticklabels(), cases):
        tick.set_color(style.colour(case.strategy))
        tick.set_fontsize(8)
    axis.grid(False, axis="y")
    axis.spines["left"].set_visible(False)


def phase_handles(names):
    return [Patch(facecolor=style.PHASES[name][0], label=style.PHASE_NAMES[name]) for name in names]


def powers_of_two_axis(axis, low, high):
    exponents = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    _set_ticks(axis, [2.0**exponent for exponent in exponents])


def _round_values(low, high, most):
    """Between 2 and `most` round numbers that suit a logarithmic axis from low to high."""
    if high / low < 8:
        return [t for t in MaxNLocator(most - 1).tick_values(low, high) if low <= t <= high]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def plain_log_axis(axis, formatter, which, most=6):
    """A logarithmic axis between its limits, with as many round ticks as are legible."""
    getattr(axis, f"set_{which}scale")("log")
    low, high = sorted(getattr(axis, f"get_{which}lim")())
    _set_ticks(getattr(axis, f"{which}axis"), _round_values(low, high, most), formatter)


def byte_log_axis(axis, formatter, which, most=5):
    """As above, with ticks at powers of two."""
    getattr(axis, f"set_{which}scale")("log", base=2)
    low, high = sorted(getattr(axis, f"get_{which}lim")())
    exponents = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    step = max(1, math.ceil(len(exponents) / most))
    ticks = [2.0**exponent for exponent in exponents if exponent % step == 0]
    _set_ticks(getattr(axis, f"{which}axis"), ticks, formatter)


def title(axis, text):
    if text:
        axis.set_title(text)
