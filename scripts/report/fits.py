# SPDX-License-Identifier: Apache-2.0
"""Models of two parameters fitted to the measured cases by least squares: Amdahl's law, and latency and
bandwidth of each axis."""

from collections import defaultdict

import numpy

from .fields import number, positive, text


class Line:
    """values ≈ a·first + b·second, the weighted squares of what is left being least."""

    def __init__(self, a, b, fitted, values):
        self.a, self.b, self.fitted = a, b, fitted
        self.residuals = values - fitted
        spread = numpy.sum((values - values.mean()) ** 2)
        self.r_squared = 1 - numpy.sum(self.residuals**2) / spread if spread > 0 else None


def fit_line(first, second, values, weights=None):
    """None if the points do not determine both parameters."""
    first, second, values = (numpy.asarray(column, float) for column in (first, second, values))
    weights = numpy.ones_like(values) if weights is None else numpy.asarray(weights, float)
    if len(values) < 2 or not first.any() or not second.any():
        return None
    # Columns of one magnitude: rounds are a few, bytes may be billions.
    scales = numpy.array([abs(first).max(), abs(second).max()])
    columns = numpy.stack([first, second]) / scales[:, None]
    products = (weights * columns) @ columns.T
    if numpy.linalg.det(products) <= 1e-9 * products[0, 0] * products[1, 1]:
        return None
    a, b = numpy.linalg.solve(products, (weights * columns) @ values) / scales
    return Line(a, b, a * first + b * second, values)


def fit_amdahl(ranks, seconds):
    """The line T(p) = a + b/p; None for fewer than three points."""
    if len(ranks) < 3:
        return None
    line = fit_line([1.0] * len(ranks), [1 / p for p in ranks], seconds)
    return line if line and line.a + line.b > 0 else None


def fit_alpha_beta(rounds, wire_bytes, seconds):
    """The line seconds = alpha·rounds + beta·bytes; None for fewer than three points. Relative errors
    count, as times lie decades apart."""
    if len(seconds) < 3:
        return None
    return fit_line(rounds, wire_bytes, seconds, [1 / second**2 for second in seconds])


class Amdahl:
    """T(p) = T(1)·(s + (1 − s)/p) of the cases of one series."""

    def __init__(self, axis, cases, line):
        self.axis, self.cases, self.r_squared = axis, cases, line.r_squared
        self.strategy, self.batch = cases[-1].strategy, cases[-1].global_batch
        self.one_rank = line.a + line.b
        self.serial = line.a / self.one_rank
        self.points = [(c.ranks, c.step("median"), t) for c, t in zip(cases, line.fitted)]

    def at(self, ranks):
        return self.one_rank * (self.serial + (1 - self.serial) / ranks)


def _only_axis(case):
    """The one axis with several ranks; "" for a single rank, None for more axes."""
    names = [name for name, size in case.axes if size > 1]
    return None if len(names) > 1 or not case.axes else "".join(names)


def _shared_factors(case, with_distributed):
    """What is the same along a series. What applies to several ranks only is no reason to leave the
    one-rank case out."""
    return {
        key: value
        for key, value in case.factors.items()
        if key not in ("mesh", "ranks") and (with_distributed or not key.startswith("distributed."))
    }


def _series(cases):
    """(axis, cases by ranks) where only the size of one axis varies, each with its one-rank case."""
    found = []
    for case in cases:
        axis = _only_axis(case)
        if not axis:
            continue
        key = (axis, _shared_factors(case, True))
        known = next((members for other, members in found if other == key), None)
        if known is None:
            found.append((key, known := {}))
        known.setdefault(case.ranks, case)
    for _, members in found:
        key = _shared_factors(next(iter(members.values())), False)
        for case in cases:
            if _only_axis(case) == "" and _shared_factors(case, False) == key:
                members.setdefault(1, case)
    return [(axis, [members[n] for n in sorted(members)]) for (axis, _), members in found]


def amdahl_fits(study):
    """Of strong scaling alone: the work of all cases of a series is the same."""
    fits = []
    measured = [case for case in study.measured if case.ranks]
    for axis, cases in _series(measured) if study.scaling == "strong" else []:
        line = fit_amdahl([case.ranks for case in cases], [case.step("median") for case in cases])
        if line:
            fits.append(Amdahl(axis, cases, line))
    return fits


class AlphaBeta:
    """seconds = alpha·rounds + beta·wire bytes, of all collectives of an axis."""

    def __init__(self, axis, cases, seconds, line):
        self.axis, self.r_squared = axis, line.r_squared
        self.alpha, self.beta = line.a, line.b
        self.points = list(zip(cases, seconds, line.fitted))


def alpha_beta_fits(study):
    axes = defaultdict(list)
    for case in study.measured:
        for row in case.traffic:
            point = (number(row, "rounds_per_step"), number(row, "wire_bytes_per_step"),
                     positive(row, "seconds_per_step"))  # fmt: skip
            if text(row, "axis") and None not in point:
                axes[row["axis"]].append((case, *point))
    fits = []
    for axis in sorted(axes):
        cases, rounds, wire_bytes, seconds = zip(*axes[axis])
        line = fit_alpha_beta(rounds, wire_bytes, seconds)
        if line:
            fits.append(AlphaBeta(axis, cases, seconds, line))
    return fits
