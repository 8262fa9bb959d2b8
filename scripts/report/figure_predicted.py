# SPDX-License-Identifier: Apache-2.0
"""What the plan predicted against what was measured: time, bytes and memory."""

from . import document as doc
from . import layout, style
from .numbers import BYTE_UNITS, TIME_UNITS, plural, tick


def predicted(study):
    panels = (
        # A time that was measured in a case that is not ok means nothing.
        ("Step time", "median step", TIME_UNITS,
         lambda case: (case.number("prediction", "step_seconds"),
                       case.step("median") if case.ok else None)),
        ("Traffic", "payload", BYTE_UNITS,
         lambda case: (case.bytes_of("planned"), case.bytes_of("measured"))),
        ("Memory", "largest rank", BYTE_UNITS,
         lambda case: (case.number("memory", "planned_bytes"),
                       case.number("memory", "measured_bytes"))),
    )  # fmt: skip
    figure, axes = layout.panels(len(panels), 3.35, columns=3)
    drawn = []
    for axis, (title, what, units, pair) in zip(axes, panels):
        points = [(case, *pair(case)) for case in study.cases]
        points = [point for point in points if min(point[1] or 0, point[2] or 0) > 0]
        shared = {case.id for case in study.cases if case.oversubscribed and units is TIME_UNITS}
        axis.set_xlabel(f"{what}, predicted")
        axis.set_ylabel(f"{what}, measured")
        own = [point for point in points if point[0].id not in shared]
        axis.set_title(f"{title}: {_verdict(units, own)}", fontsize=9)
        axis.set_box_aspect(1)
        _panel(axis, points, units, shared)
        drawn += [case for case, *_ in points]
    if not drawn:
        raise layout.NothingToShow("no case has both a prediction and a measurement")
    layout.strategy_legend(figure, drawn)
    caption = (
        "Measured against predicted; on the dashed line they are equal. The prediction of the time "
        "comes from the plan and the calibration alone; between the dotted lines it is off by less than "
        "20 %. Open marks: cases whose ranks share processors, which the title does not count. The payload "
        "of the whole verification and the memory of the rank that uses most must equal the plan's "
        "exactly; there, open marks are cases that are not ok, as far as they came."
    )
    return doc.Figure("predicted", "Predicted and measured", caption, figure)


def _verdict(units, points):
    if not points:
        return "nothing measured"
    if units is TIME_UNITS:
        near = sum(abs(plan / measured - 1) <= 0.2 for _, plan, measured in points)
        return f"{near} of {plural(len(points), 'case')} within 20 %"
    exact = sum(plan == measured for _, plan, measured in points)
    return f"{exact} of {plural(len(points), 'case')} exact"


def _panel(axis, points, units, shared):
    if not points:
        axis.set(xticks=[], yticks=[])
        return
    values = [value for _, *pair in points for value in pair]
    limits = (min(values) / 1.35, max(values) * 1.35)
    axis.plot(limits, limits, **style.DASHED)
    for off in (0.8, 1.2) if units is TIME_UNITS else ():
        axis.plot(limits, [end / off for end in limits], **{**style.DASHED, "linestyle": ":"})
    for case, plan, measured in points:
        mark = style.mark(case.strategy, edge=0.7)
        if not case.ok or case.id in shared:
            mark.update(color="none", markeredgecolor=style.colour(case.strategy))
        axis.plot([plan], [measured], linestyle="none", alpha=0.85, zorder=3, **mark)
    axis.set(xlim=limits, ylim=limits)
    for which, most in (("x", 3), ("y", 4)):
        layout.log_axis(axis, which, tick(units), most, base=2 if units is BYTE_UNITS else 10)
