# SPDX-License-Identifier: Apache-2.0
"""Models of two parameters fitted to the measured cases by least squares: Amdahl's law, and latency and
bandwidth of each axis."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

import numpy

from .fields import number, positive, text
from .series import Facet, facets, series


class Line:
    """values ≈ a·first + b·second."""

    def __init__(self, a, b, fitted, values):
        self.a, self.b, self.fitted, self.values = a, b, fitted, values
        self.sum = a + b  # where both are one: Amdahl's T(1)
        self.residuals = values - fitted
        spread = numpy.sum((values - values.mean()) ** 2)
        self.r_squared = 1 - numpy.sum(self.residuals**2) / spread if spread > 0 else None

    @property
    def relative(self):
        """The residuals as shares of what was measured."""
        return self.residuals / self.values


def fit_line(first, second, values, weights):
    """The line whose weighted residuals have the least squares; None for fewer than three points, or
    points that do not determine both parameters."""
    if len(values) < 3:
        return None
    columns = numpy.array([first, second], float).T
    values, weights = numpy.array(values, float), numpy.array(weights, float)
    weighted = columns * weights[:, None]
    # Columns of one length: rounds are a few, bytes may be billions.
    lengths = numpy.linalg.norm(weighted, axis=0)
    if not lengths.all():
        return None
    scaled, _, rank, _ = numpy.linalg.lstsq(weighted / lengths, weights * values, rcond=1e-5)
    if rank < 2:
        return None
    a, b = scaled / lengths
    return Line(a, b, columns @ (a, b), values)


def fit_amdahl(ranks, seconds):
    """The line T(p) = a + b/p."""
    ones = [1.0] * len(ranks)
    line = fit_line(ones, [1 / p for p in ranks], seconds, ones)
    return line if line and line.sum > 0 else None


def fit_alpha_beta(rounds, wire_bytes, seconds):
    """The line seconds = alpha·rounds + beta·bytes. Relative errors count, as times lie decades apart."""
    return fit_line(rounds, wire_bytes, seconds, [1 / second for second in seconds])


@dataclass
class Fit:
    """A line through the cases of a series, or through collectives of an axis, each with its case."""

    axis: str
    cases: list
    line: Line
    facet: Optional[Facet] = None

    @property
    def strategy(self):
        return self.cases[-1].strategy

    @property
    def ranks(self):
        return [case.ranks for case in self.cases]


def amdahl_fits(study):
    """T(p) = a + b/p = T(1)·(s + (1 − s)/p): of strong scaling alone, where the work of a series is the
    same, and of cases in which no other axis splits it. A series of several facets counts once."""
    fits = {}
    for facet in facets(study.cases, study.scaling) if study.scaling == "strong" else []:
        for run in series([case for case in facet.measured if case.ranks]):
            key = tuple(case.id for case in run.cases)
            if key in fits or any(sum(n > 1 for _, n in case.axes) > 1 for case in run.cases):
                continue
            ranks = [case.ranks for case in run.cases]
            line = fit_amdahl(ranks, [case.step("median") for case in run.cases])
            if line:
                fits[key] = Fit(run.axis, run.cases, line, facet)
    return list(fits.values())


def alpha_beta_fits(study):
    """seconds = alpha·rounds + beta·wire bytes, of all collectives of an axis, apart where it crosses nodes."""
    axes = defaultdict(list)
    for case in study.measured:
        for row in case.traffic:
            point = (number(row, "rounds_per_step"), number(row, "wire_bytes_per_step"),
                     positive(row, "seconds_per_step"))  # fmt: skip
            if text(row, "axis") and None not in point:
                across = case.crosses_nodes(row["axis"])
                axes[row["axis"] + (", across nodes" if across else "")].append((case, *point))
    fits = []
    for axis in sorted(axes):
        cases, *columns = zip(*axes[axis])
        line = fit_alpha_beta(*columns)
        if line:
            fits.append(Fit(axis, cases, line))
    return fits
