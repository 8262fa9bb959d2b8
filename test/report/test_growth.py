# SPDX-License-Identifier: Apache-2.0
"""Figures of growth show how steps of cases grow with a number of the work."""

import unittest
from types import SimpleNamespace

import support  # noqa: F401, finds the scripts

# isort: split
from report.case import Case
from report.drawing import NothingToShow
from report.growth import growth

POSITIONS, WAY = "model.transformer.context", "distributed.context_attention"


def case(positions, ranks, step, way=None, **others):
    factors = {"strategy": "data", "mesh": f"context={ranks}", "ranks": ranks, "global_batch": 1, POSITIONS: positions,
               **({WAY: way} if way else {}), **others}  # fmt: skip
    result = {"status": "ok", "samples_per_second": 1 / step,
              "step_seconds": {"median": step, "ci95_low": 0.9 * step, "ci95_high": 1.2 * step}}  # fmt: skip
    return Case({"id": f"{factors}", "factors": factors}, result, {})


def cases(numbers=(512, 1024, 2048)):
    """One rank, and two ranks with two ways, of which the ring is slower on short sequences and faster on long ones."""
    return [one for n in numbers for one in (case(n, 1, 2e-3 * n), case(n, 2, 1.5e-3 * n, "gather"),
                                             case(n, 2, 1e-3 * n + 0.5, "ring"))]  # fmt: skip


def study(measured, ratios=True):
    return SimpleNamespace(measured=measured, ratios=ratios)


def drawn(figure):
    """Returns the values of the lines of a plate."""
    (panel,) = figure.figure.axes
    return [[round(float(y), 6) for y in bars[0].get_ydata()] for bars in panel.containers]


class Growth(unittest.TestCase):
    def test_lines_hold_the_steps_of_cases_that_differ_in_the_number(self):
        (figure,) = growth(study(cases()))
        self.assertEqual((figure.name, figure.title), ("growth-1", "Step and context, 2 ranks"))
        self.assertEqual(drawn(figure), [[1.024, 2.048, 4.096], [0.768, 1.536, 3.072], [1.012, 1.524, 2.548]])
        labels = [text.get_text() for text in figure.figure.legends[0].get_texts()]
        self.assertEqual(labels, ["context attention gather", "context attention ring", "1 rank"])

    def test_intervals_are_drawn_around_steps(self):
        (figure,) = growth(study(cases()))
        low, high = figure.figure.axes[0].containers[-1][2][0].get_segments()[0][:, 1]
        self.assertAlmostEqual(low, 0.9 * 1.012)
        self.assertAlmostEqual(high, 1.2 * 1.012)

    def test_cases_that_differ_in_another_factor_are_on_other_lines(self):
        mixed = [case(n, 2, 1.0, way, microbatches=m) for n in (512, 1024, 2048) for way in ("gather", "ring") for m in (1, 2)]
        self.assertEqual(len(drawn(growth(study(mixed))[0])), 4)

    def test_each_number_of_ranks_has_a_plate(self):
        more = [*cases(), *(case(n, 4, 1e-3 * n, way) for n in (512, 1024, 2048) for way in ("gather", "ring"))]
        self.assertEqual([len(drawn(one)) for one in growth(study(more))], [3, 3])

    def test_nothing_is_drawn_without_three_numbers_or_without_ratios(self):
        for nothing in (study(cases((512, 1024))), study(cases(), ratios=False), study([])):
            with self.assertRaises(NothingToShow):
                growth(nothing)


if __name__ == "__main__":
    unittest.main()
