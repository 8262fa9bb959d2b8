# SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth of every collective, by mesh axis."""

from . import document as doc
from . import layout, style
from .fields import number, positive, text
from .numbers import plural


def _rows(study):
    """axis -> (operation, group size) -> [(case, bytes per second)]."""
    axes = {}
    for case in study.measured:
        for row in case.traffic:
            rate = positive(row, "bus_bytes_per_second")
            name, operation = text(row, "axis"), text(row, "operation")
            if rate and name and operation:
                key = (operation, number(row, "group_size") or 0)
                axes.setdefault(name, {}).setdefault(key, []).append((case, rate))
    if not axes:
        raise layout.NothingToShow("no measured case has timed collectives")
    return axes


def bandwidth(study):
    axes = _rows(study)
    lines = [(name, key) for name in sorted(axes) for key in sorted(axes[name])]
    height = 0.9 + 0.24 * (len(lines) + 0.9 * len(axes))
    figure, (axis,) = layout.panels(1, height)
    rates = [rate for keys in axes.values() for points in keys.values() for _, rate in points]
    axis.set_xlim(min(rates) / 1e9 / 1.25, max(rates) / 1e9 * 1.25)
    y, ticks, names = 0.0, [], []
    for name in sorted(axes):
        axis.text(0.0, y, f"axis {name}", transform=axis.get_yaxis_transform(), va="center",
                  fontweight="bold", size=9)  # fmt: skip
        y += 0.9
        for key in sorted(axes[name]):
            _points(axis, y, axes[name][key])
            ticks.append(y)
            names.append(f"{key[0]} · {plural(int(key[1]), 'rank')}" if key[1] else key[0])
            y += 1.0
    axis.set_yticks(ticks, names)
    axis.set_ylim(y - 0.3, -0.6)
    layout.plain_log_axis(axis, lambda value: f"{value:g}", "x", most=9)
    axis.set_xlabel("bus bandwidth (GB/s)")
    axis.spines["left"].set_visible(False)
    shown = [case for keys in axes.values() for points in keys.values() for case, _ in points]
    layout.strategy_legend(figure, shown)
    caption = (
        "Payload ÷ time × the share of it that crosses a link (2(n−1)/n for all_reduce, (n−1)/n for "
        "all_gather, reduce_scatter and all_to_all, 1 otherwise); the time is of the instrumented run, "
        "without waiting for late ranks. Logarithmic; one mark for each case."
    )
    return doc.Figure("bandwidth", "Bus bandwidth by axis", caption, figure)


def _points(axis, y, points):
    strategies = sorted({case.strategy for case, _ in points}, key=style.strategy_order)
    for case, rate in points:
        # Strategies a little above each other, as otherwise one hides the other.
        place = strategies.index(case.strategy) - (len(strategies) - 1) / 2
        axis.plot([rate / 1e9], [y + 0.13 * place], linestyle="none",
                  **style.mark(case.strategy, 0.8, 0.5), zorder=3)  # fmt: skip
