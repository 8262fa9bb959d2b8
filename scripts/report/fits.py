# SPDX-License-Identifier: Apache-2.0
"""Fits straight lines by least squares: Amdahl's law, and latency and bandwidth of an axis."""

from collections import defaultdict, namedtuple

import numpy

from .fields import number, positive, text, texts
from .numbers import percent
from .works import lines_of


# A straight line a + b·x through points of some cases. Residuals are those of fitted values, over the measured ones.
# `problem` is why the fit makes no sense, or None.
Fit = namedtuple("Fit", "a b residuals problem axis cases", defaults=("", ()))


def fit_line(x, y, weights, negative_a, negative_b):
    """Returns None for fewer than three points, or if x does not vary. The texts say what a negative a or b means."""
    x, y = numpy.array(x, float), numpy.array(y, float)
    if len(x) < 3 or numpy.ptp(x) <= 1e-5 * max(abs(x)):
        return None
    b, a = numpy.polyfit(x, y, 1, w=weights)
    residuals = 1 - (a + b * x) / y
    far = max(abs(residuals))
    problem = negative_a if a < 0 else negative_b if b < 0 else None
    return Fit(a, b, residuals, problem or (f"residuals reach {percent(far)}" if far > 0.5 else None))


def fit_amdahl(ranks, seconds):
    """T(p) = a + b/p = T(1)·(s + (1 − s)/p), so that T(1) = a + b and s = a/(a + b)."""
    return fit_line([1 / p for p in ranks], seconds, [1.0] * len(ranks),
                    "the step shrinks faster than the ranks grow", "more ranks make the step longer")  # fmt: skip


def fit_alpha_beta(rounds, wire_bytes, seconds):
    """seconds/rounds = α + β·bytes/rounds. Times lie decades apart, so relative errors count."""
    points = [(b / r, s / r, r / s) for r, b, s in zip(rounds, wire_bytes, seconds)]
    return fit_line(*zip(*points), "the latency would be negative", "the bandwidth would be negative")


def amdahl_fits(study):
    """Only strong scaling keeps the work of a line. No axis but the one that varies may have several ranks."""
    fits = []
    for work in study.works if study.scaling == "strong" else []:
        for axis, line in lines_of([case for case in work.measured if case.ranks]):
            fit = fit_amdahl([case.ranks for case in line], [case.step() for case in line])
            if fit and all(sum(n > 1 for _, n in case.axes) <= 1 for case in line):
                fits.append(fit._replace(axis=axis, cases=line))
    return fits


def alpha_beta_fits(study):
    """Over all collectives of an axis. Cases in which the axis crosses nodes are fitted apart."""
    axes, fits = defaultdict(list), []
    for case in study.measured:
        for row in case.traffic:
            point = (positive(row, "rounds_per_step"), number(row, "wire_bytes_per_step"),
                     positive(row, "seconds_per_step"))  # fmt: skip
            if text(row, "axis") and None not in point:
                crossing = set(row["axis"].split("+")) & set(texts(case.result, "case", "nodes", "across"))
                axes[row["axis"] + (", across nodes" if crossing else "")].append((case, *point))
    for axis, points in sorted(axes.items()):
        cases, *columns = zip(*points)
        if fit := fit_alpha_beta(*columns):
            fits.append(fit._replace(axis=axis, cases=cases))
    return fits
