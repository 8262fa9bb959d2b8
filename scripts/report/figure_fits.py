# SPDX-License-Identifier: Apache-2.0
"""What the fits say and how far off they are: Amdahl's law, and latency and bandwidth of each axis."""

from itertools import groupby

import numpy

from . import document as doc
from . import layout, style
from .fits import alpha_beta_fits, amdahl_fits
from .numbers import TIME_UNITS, signed_percent, tick


def amdahl(study):
    layout.needs_ratios(study)
    fits = amdahl_fits(study)
    if not fits:
        raise layout.NothingToShow("no series is long enough for Amdahl's law")
    groups = [(facet.title, list(own)) for facet, own in groupby(fits, lambda fit: fit.facet)]
    figure, axes = layout.panels(2 * len(groups), 3.1)
    for (title, own), left, right in zip(groups, axes[::2], axes[1::2]):
        for fit in own:
            mark = style.mark(fit.strategy)
            curve = numpy.geomspace(fit.ranks[0], fit.ranks[-1], 41)
            left.plot(curve, fit.line.a + fit.line.b / curve, color=mark["color"], linewidth=1.1)
            left.plot(fit.ranks, fit.line.values, linestyle="none", **mark)
            right.plot(fit.ranks, fit.line.relative, linewidth=0.9, **mark)
        for axis in (left, right):
            layout.rank_axis(axis, [ranks for fit in own for ranks in fit.ranks])
        layout.log_axis(left, "y", tick(TIME_UNITS), most=5)
        left.set_ylabel("step time")
        left.set_title(f"{title}: measured and fitted" if title else "Measured and fitted")
        _residuals(right)
        right.set_title("Residuals")
    layout.strategy_legend(figure, fits)
    caption = (
        "Lines: T(p) = T(1)·(s + (1 − s)/p), least squares over the cases in which only the size of one "
        "axis varies. Right: measured − fitted, of what was measured; a trend there says that the law "
        "does not hold."
    )
    return doc.Figure("amdahl", "Amdahl's law", caption, figure)


def _residuals(axis):
    axis.axhline(0, color=style.REFERENCE[0], linewidth=1.2)
    axis.yaxis.set_major_formatter(lambda value, _: signed_percent(value, ".3g"))
    axis.set_ylabel("residual")


def alpha_beta(study):
    layout.needs_ratios(study)
    fits = alpha_beta_fits(study)
    if not fits:
        raise layout.NothingToShow("no axis has collectives enough to fit latency and bandwidth")
    figure, axes = layout.panels(len(fits), 3.0, columns=3)
    for axis, fit in zip(axes, fits):
        for case, measured, residual in zip(fit.cases, fit.line.values, fit.line.relative):
            axis.plot([measured], [residual], linestyle="none",
                      **style.mark(case.strategy, 0.85, 0.5))  # fmt: skip
        layout.log_axis(axis, "x", tick(TIME_UNITS), most=3)
        _residuals(axis)
        axis.set_xlabel("time a step, measured")
        axis.set_title(f"axis {fit.axis}: {len(fit.cases)} points")
    layout.strategy_legend(figure, [case for fit in fits for case in fit.cases])
    caption = (
        "Residuals of seconds = α · rounds + β · bytes on the wire, least squares over all collectives "
        "of an axis: (measured − fitted) ÷ measured. Bytes on the wire are a model, not a measurement."
    )
    return doc.Figure("alpha_beta", "Latency and bandwidth of each axis", caption, figure)
