# SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth of every collective, by mesh axis."""

from collections import defaultdict

from . import document as doc
from . import layout, style
from .fields import number, positive, text
from .numbers import plural


def _rows(study):
    """(axis, operation, group size) -> [(case, GB per second)], in order."""
    rows = defaultdict(list)
    for case in study.measured:
        for row in case.traffic:
            rate = positive(row, "bus_bytes_per_second")
            axis, operation = text(row, "axis"), text(row, "operation")
            if rate and axis and operation:
                size = number(row, "group_size") or 0
                rows[axis, operation, size].append((case, rate / 1e9))
    if not rows:
        raise layout.NothingToShow("no measured case has timed collectives")
    return dict(sorted(rows.items()))


def bandwidth(study):
    rows = _rows(study)
    height = len(rows) + 0.9 * len({axis for axis, *_ in rows})
    figure, (panel,) = layout.panels(1, 0.9 + 0.24 * height)
    points = [point for own in rows.values() for point in own]
    y, ticks, before = -0.1, {}, None
    for (axis, operation, size), own in rows.items():
        if axis != before:
            panel.text(0.0, y + 0.1, f"axis {axis}", transform=panel.get_yaxis_transform(),
                       va="center", fontweight="bold", size=9)  # fmt: skip
            y, before = y + 0.9, axis
        ticks[y] = f"{operation} · {plural(int(size), 'rank')}" if size else operation
        strategies = sorted({case.strategy for case, _ in own}, key=style.strategy_order)
        for case, rate in own:
            # Strategies a little above each other, as otherwise one hides the other.
            place = strategies.index(case.strategy) - (len(strategies) - 1) / 2
            panel.plot([rate], [y + 0.13 * place], linestyle="none",
                       **style.mark(case.strategy, 0.8, 0.5), zorder=3)  # fmt: skip
        y += 1.0
    panel.set_yticks(list(ticks), ticks.values())
    panel.set_ylim(y - 0.3, -0.6)
    rates = [rate for _, rate in points]
    panel.set_xlim(min(rates) / 1.25, max(rates) * 1.25)
    layout.log_axis(panel, "x", "{:g}".format, most=9)
    panel.set_xlabel("bus bandwidth (GB/s)")
    panel.spines["left"].set_visible(False)
    layout.strategy_legend(figure, [case for case, _ in points])
    caption = (
        "Payload ÷ time × the share of it that crosses a link (2(n−1)/n for all_reduce, (n−1)/n for "
        "all_gather, reduce_scatter and all_to_all, 1 otherwise); the time is of the instrumented run, "
        "without waiting for late ranks. Logarithmic; one mark for each case."
    )
    return doc.Figure("bandwidth", "Bus bandwidth by axis", caption, figure)
