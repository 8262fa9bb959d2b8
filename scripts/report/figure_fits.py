# SPDX-License-Identifier: Apache-2.0
"""What the fits say and how far off they are: Amdahl's law, and latency and bandwidth of each axis."""

from . import document as doc
from . import layout, style
from .fits import alpha_beta_fits, amdahl_fits
from .numbers import tick_seconds, tick_signed_percent
from .series import facets


def _by_facet(study, fits):
    """A fit belongs to the facet that holds all of its cases."""
    found = []
    for facet in facets(study.cases, study.scaling):
        ids = {case.id for case in facet.cases}
        own = [fit for fit in fits if ids.issuperset(case.id for case in fit.cases)]
        if own:
            found.append((facet.title, own))
    return found or [("", fits)]


def amdahl(study):
    layout.needs_ratios(study)
    fits = amdahl_fits(study)
    if not fits:
        raise layout.NothingToShow("no series is long enough for Amdahl's law")
    groups = _by_facet(study, fits)
    figure, axes = layout.panels(2 * len(groups), 3.1, columns=2)
    for (title, own), left, right in zip(groups, axes[::2], axes[1::2]):
        _times(left, own)
        left.set_title(f"{title}: measured and fitted" if title else "Measured and fitted")
        _residuals(right, own)
        right.set_title("Residuals")
    layout.strategy_legend(figure, fits)
    caption = (
        "Lines: T(p) = T(1)·(s + (1 − s)/p), least squares over the cases in which only the size of one "
        "axis varies. Right: measured − fitted, of what was measured; a trend there says that the law "
        "does not hold."
    )
    return doc.Figure("amdahl", "Amdahl's law", caption, figure)


def _times(axis, fits):
    for fit in fits:
        first, last = fit.points[0][0], fit.points[-1][0]
        curve = [first * (last / first) ** (step / 40) for step in range(41)]
        axis.plot(curve, [fit.at(p) for p in curve], color=style.colour(fit.strategy), linewidth=1.1)
        axis.plot([p for p, *_ in fit.points], [t for _, t, _ in fit.points], linestyle="none",
                  **style.mark(fit.strategy))  # fmt: skip
    layout.rank_axis(axis, [p for fit in fits for p, *_ in fit.points])
    layout.plain_log_axis(axis, tick_seconds, "y", most=5)
    axis.set_ylabel("step time")


def _residuals(axis, fits):
    axis.axhline(0, color=style.REFERENCE[0], linewidth=1.2)
    for fit in fits:
        axis.plot([p for p, *_ in fit.points], [(t - f) / t for _, t, f in fit.points],
                  linewidth=0.9, **style.mark(fit.strategy))  # fmt: skip
    layout.rank_axis(axis, [p for fit in fits for p, *_ in fit.points])
    axis.yaxis.set_major_formatter(lambda value, _: tick_signed_percent(value))
    axis.set_ylabel("residual")


def alpha_beta(study):
    layout.needs_ratios(study)
    fits = alpha_beta_fits(study)
    if not fits:
        raise layout.NothingToShow("no axis has collectives enough to fit latency and bandwidth")
    figure, axes = layout.panels(len(fits), 3.0, columns=3)
    for axis, fit in zip(axes, fits):
        axis.axhline(0, color=style.REFERENCE[0], linewidth=1.2)
        for case, measured, fitted in fit.points:
            axis.plot([measured], [(measured - fitted) / measured], linestyle="none",
                      **style.mark(case.strategy, 0.85, 0.5))  # fmt: skip
        layout.plain_log_axis(axis, tick_seconds, "x", most=3)
        axis.yaxis.set_major_formatter(lambda value, _: tick_signed_percent(value))
        axis.set_xlabel("time a step, measured")
        axis.set_ylabel("residual")
        axis.set_title(f"axis {fit.axis}: {len(fit.points)} points")
    layout.strategy_legend(figure, [case for fit in fits for case, *_ in fit.points])
    caption = (
        "Residuals of seconds = α · rounds + β · bytes on the wire, least squares over all collectives "
        "of an axis: (measured − fitted) ÷ measured. Bytes on the wire are a model, not a measurement."
    )
    return doc.Figure("alpha_beta", "Latency and bandwidth of each axis", caption, figure)
