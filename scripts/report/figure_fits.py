# SPDX-License-Identifier: Apache-2.0
"""What the fits say and how far off they are: Amdahl's law, and latency and bandwidth of each axis."""

from . import document as doc
from . import layout, style
from .fields import number, numbers, positive, table, text
from .numbers import tick_seconds, tick_signed_percent
from .series import facets


class Amdahl:
    """T(p) = T(1)·(s + (1 − s)/p) of one series."""

    def __init__(self, fit):
        self.strategy, self.axis = text(fit, "strategy") or "unknown", text(fit, "axis") or "?"
        self.batch = number(fit, "global_batch")
        self.ids = [name for name in fit.get("cases") or [] if isinstance(name, str)]
        self.serial = number(fit, "serial_fraction")
        self.one_rank = number(fit, "one_rank_seconds")
        self.r_squared = number(fit, "r_squared")
        columns = (numbers(fit, key) for key in ("ranks", "step_seconds", "fitted_seconds"))
        self.points = [row for row in zip(*columns) if all(value and value > 0 for value in row)]

    @property
    def usable(self):
        return bool(self.points) and self.serial is not None and (self.one_rank or 0) > 0

    def at(self, ranks):
        return self.one_rank * (self.serial + (1 - self.serial) / ranks)


def amdahl_fits(study):
    return [fit for fit in map(Amdahl, study.fits("amdahl")) if fit.usable]


def _by_facet(study, fits):
    """A fit belongs to the facet that holds all of its cases."""
    found = []
    for facet in facets(study.cases, study.scaling):
        ids = {case.id for case in facet.cases}
        own = [fit for fit in fits if fit.ids and ids.issuperset(fit.ids)]
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
    layout.legend_above(figure, layout.strategy_handles(fit.strategy for fit in fits))
    caption = (
        "Lines: T(p) = T(1)·(s + (1 − s)/p), least squares over the cases in which only the size of one "
        "axis varies. Right: measured − fitted, of what was measured; a trend there says that the law "
        "does not hold."
    )
    return doc.Figure("amdahl", "Amdahl's law", caption, figure)


def _times(axis, fits):
    for fit in fits:
        colour = style.colour(fit.strategy)
        first, last = fit.points[0][0], fit.points[-1][0]
        curve = [first * (last / first) ** (step / 40) for step in range(41)]
        axis.plot(curve, [fit.at(p) for p in curve], color=colour, linewidth=1.1)
        axis.plot([p for p, *_ in fit.points], [t for _, t, _ in fit.points], linestyle="none",
                  color=colour, marker=style.marker(fit.strategy), markeredgewidth=0.6,
                  markersize=style.marker_size(fit.strategy),
                  markeredgecolor=style.SURFACE[0])  # fmt: skip
    layout.rank_axis(axis, [p for fit in fits for p, *_ in fit.points])
    layout.plain_log_axis(axis, tick_seconds, "y", most=5)
    axis.set_ylabel("step time")


def _residuals(axis, fits):
    axis.axhline(0, color=style.REFERENCE[0], linewidth=1.2)
    for fit in fits:
        axis.plot([p for p, *_ in fit.points], [(t - f) / t for _, t, f in fit.points],
                  color=style.colour(fit.strategy), marker=style.marker(fit.strategy),
                  linewidth=0.9, markeredgewidth=0.6, markeredgecolor=style.SURFACE[0],
                  markersize=style.marker_size(fit.strategy))  # fmt: skip
    layout.rank_axis(axis, [p for fit in fits for p, *_ in fit.points])
    axis.yaxis.set_major_formatter(lambda value, _: tick_signed_percent(value))
    axis.set_ylabel("residual")


class AlphaBeta:
    """seconds = alpha · rounds + beta · wire bytes, on one axis."""

    def __init__(self, fit, study):
        self.axis = text(fit, "axis") or "?"
        self.alpha, self.beta = number(fit, "alpha_seconds"), number(fit, "beta_seconds_per_byte")
        self.r_squared = number(fit, "r_squared")
        self.points = [
            (study.by_id(text(point, "case")), point)
            for point in table(fit, "points")
            if positive(point, "seconds_per_step") and number(point, "fitted_seconds") is not None
        ]

    @property
    def usable(self):
        return bool(self.points) and self.alpha is not None and self.beta is not None


def alpha_beta_fits(study):
    fits = [AlphaBeta(fit, study) for fit in study.fits("alpha_beta")]
    return [fit for fit in fits if fit.usable]


def alpha_beta(study):
    layout.needs_ratios(study)
    fits = alpha_beta_fits(study)
    if not fits:
        raise layout.NothingToShow("no axis has collectives enough to fit latency and bandwidth")
    figure, axes = layout.panels(len(fits), 3.0, columns=3)
    for axis, fit in zip(axes, fits):
        axis.axhline(0, color=style.REFERENCE[0], linewidth=1.2)
        for case, point in fit.points:
            strategy = case.strategy if case else "unknown"
            measured, fitted = point["seconds_per_step"], point["fitted_seconds"]
            axis.plot([measured], [(measured - fitted) / measured], linestyle="none",
                      color=style.colour(strategy), marker=style.marker(strategy),
                      markersize=0.85 * style.marker_size(strategy), markeredgewidth=0.5,
                      markeredgecolor=style.SURFACE[0])  # fmt: skip
        layout.plain_log_axis(axis, tick_seconds, "x", most=3)
        axis.yaxis.set_major_formatter(lambda value, _: tick_signed_percent(value))
        axis.set_xlabel("time a step, measured")
        axis.set_ylabel("residual")
        axis.set_title(f"axis {fit.axis}: {len(fit.points)} points")
    layout.legend_above(
        figure,
        layout.strategy_handles(case.strategy for fit in fits for case, _ in fit.points if case),
    )
    caption = (
        "Residuals of seconds = α · rounds + β · bytes on the wire, least squares over all collectives "
        "of an axis: (measured − fitted) ÷ measured. Bytes on the wire are a model, not a measurement."
    )
    return doc.Figure("alpha_beta", "Latency and bandwidth of each axis", caption, figure)
