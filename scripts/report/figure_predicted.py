# SPDX-License-Identifier: Apache-2.0
"""What the plan predicted against what was measured: time, bytes and memory."""

from . import document as doc
from . import layout, style
from .numbers import plural, tick_bytes, tick_seconds


def _pairs(study):
    """(title, what the axes show, format, [(case, predicted, measured)]) of the three panels."""
    time, traffic, memory = [], [], []
    for case in study.cases:
        if case.ok:
            time.append((case, case.prediction(), case.step("median")))
        traffic.append((case, case.bytes_of("planned"), case.bytes_of("measured")))
        memory.append((case, case.memory("planned_bytes"), case.memory("measured_bytes")))
    panels = [
        ("Step time", "median step", tick_seconds, time),
        ("Traffic", "payload", tick_bytes, traffic),
        ("Memory", "fullest rank", tick_bytes, memory),
    ]
    return [
        (title, what, show, [(case, p, m) for case, p, m in points if p and m and p > 0 < m])
        for title, what, show, points in panels
    ]


def _verdict(title, points):
    if not points:
        return "nothing measured"
    if title == "Step time":
        near = sum(abs(measured / predicted - 1) <= 0.1 for _, predicted, measured in points)
        return f"{near} of {plural(len(points), 'case')} within 10 %"
    exact = sum(predicted == measured for _, predicted, measured in points)
    return f"{exact} of {plural(len(points), 'case')} exact"


def predicted(study):
    panels = _pairs(study)
    if not any(points for *_, points in panels):
        raise layout.NothingToShow("no case has both a prediction and a measurement")
    figure, axes = layout.panels(3, 3.35, columns=3)
    for axis, (title, what, show, points) in zip(axes, panels):
        _panel(axis, what, show, points)
        axis.set_title(f"{title}: {_verdict(title, points)}", fontsize=9)
    layout.strategy_legend(figure, [case for *_, points in panels for case, *_ in points])
    caption = (
        "Measured against predicted; on the dashed line they are equal. The prediction of the time "
        "comes from the plan and the launch's calibration alone. Payload bytes, of the whole "
        "verification, and memory, of the fullest rank, are the plan's and have to agree exactly. Cases "
        "that are not ok are shown as far as they came, with an open mark."
    )
    return doc.Figure("predicted", "Predicted and measured", caption, figure)


def _panel(axis, what, show, points):
    axis.set_xlabel(f"{what}, predicted")
    axis.set_ylabel(f"{what}, measured")
    if not points:
        axis.set_xticks([])
        axis.set_yticks([])
        axis.text(0.5, 0.5, "nothing measured", transform=axis.transAxes, ha="center",
                  color=style.MUTED[0])  # fmt: skip
        return
    values = [value for _, *pair in points for value in pair]
    low, high = min(values) / 1.35, max(values) * 1.35
    axis.plot([low, high], [low, high], color=style.REFERENCE[0], linewidth=1.2,
              linestyle=(0, (4, 3)), zorder=1)  # fmt: skip
    for case, predicted_value, measured in points:
        colour = style.colour(case.strategy)
        axis.plot([predicted_value], [measured], linestyle="none", marker=style.marker(case.strategy),
                  markersize=style.marker_size(case.strategy), markeredgewidth=0.7, alpha=0.85,
                  color=colour if case.ok else "none",
                  markeredgecolor=style.SURFACE[0] if case.ok else colour, zorder=3)  # fmt: skip
    axis.set_xlim(low, high)
    axis.set_ylim(low, high)
    ticks = layout.plain_log_axis if show is tick_seconds else layout.byte_log_axis
    ticks(axis, show, "x", most=3)
    ticks(axis, show, "y", most=4)
    axis.set_box_aspect(1)
