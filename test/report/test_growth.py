# SPDX-License-Identifier: Apache-2.0
"""Figures of growth show how steps and costs of cases grow with a number of the work."""

import io
import shutil
import unittest
from pathlib import Path
from types import SimpleNamespace

import make_fixture
from support import WithDirectory, read_json, run_report

# isort: split
from report.case import Case
from report.drawing import NothingToShow
from report.growth import conditions, growth

POSITIONS, WAY = "model.transformer.context", "distributed.context_attention"


def case(positions, ranks, step, way=None, **others):
    factors = {"strategy": "data", "mesh": f"context={ranks}", "ranks": ranks, "global_batch": 1, POSITIONS: positions,
               **({WAY: way} if way else {}), **others}  # fmt: skip
    row = {"operation": "send", "wire_bytes_per_step": 2**20 * 100 / 1024 * positions}
    result = {"status": "ok", "samples_per_second": 1 / step, "memory": {"planned_bytes": 2**20 * 1000 / 1024 * positions},
              "step_seconds": {"median": step, "ci95_low": 0.9 * step, "ci95_high": 1.2 * step},
              "traffic": {"rows": [row, {**row, "operation": "receive"}] if way else []}}  # fmt: skip
    return Case({"id": f"{factors}", "factors": factors}, result, {})


def cases(numbers=(512, 1024, 2048)):
    """One rank, and two ranks with two ways, of which the ring is slower on short sequences and faster on long ones."""
    return [one for n in numbers for one in (case(n, 1, 2e-3 * n), case(n, 2, 1.5e-3 * n, "gather"),
                                             case(n, 2, 1e-3 * n + 0.5, "ring"))]  # fmt: skip


def study(measured, name="results", ratios=True):
    return SimpleNamespace(measured=measured, ratios=ratios, directory=Path(name))


def drawn(panel):
    """Returns label or colour -> values of the lines of a panel."""
    return [[round(float(y), 6) for y in bars[0].get_ydata()] for bars in panel.containers]


class Growth(unittest.TestCase):
    def test_lines_hold_the_steps_and_costs_of_cases_that_differ_in_the_number(self):
        time, costs = growth(study(cases()))
        self.assertEqual([one.name for one in (time, costs)], ["growth-1", "growth-2"])
        steps, over = time.figure.axes
        self.assertEqual(steps.get_title(), "2 ranks")
        one_rank, gather, ring = drawn(steps)
        self.assertEqual(one_rank, [1.024, 2.048, 4.096])
        self.assertEqual(gather, [0.768, 1.536, 3.072])
        self.assertEqual(ring, [1.012, 1.524, 2.548])
        self.assertEqual(drawn(over), [[1, round(1.536 / 1.524, 6), round(3.072 / 2.548, 6)], [round(1.012 / 0.768, 6), 1, 1]])
        memory, sent = costs.figure.axes
        self.assertEqual(drawn(memory)[1:], [[500, 1000, 2000]] * 2)
        self.assertEqual(drawn(sent), [[50, 100, 200]] * 2)
        labels = [text.get_text() for text in time.figure.legends[0].get_texts()]
        self.assertEqual(labels, ["context attention gather", "context attention ring", "1 rank"])

    def test_intervals_are_drawn_around_steps(self):
        steps, over = growth(study(cases()))[0].figure.axes
        for panel, bottom, top in ((steps, 0.9 * 1.012, 1.2 * 1.012), (over, 0.9 * 1.012 / 0.768, 1.2 * 1.012 / 0.768)):
            low, high = panel.containers[-1][2][0].get_segments()[0][:, 1]
            self.assertAlmostEqual(low, bottom)
            self.assertAlmostEqual(high, top)

    def test_cases_that_differ_in_another_factor_are_on_other_lines(self):
        mixed = [case(n, 2, 1.0, way, microbatches=m) for n in (512, 1024, 2048) for way in ("gather", "ring") for m in (1, 2)]
        steps, _ = growth(study(mixed))[0].figure.axes
        self.assertEqual(len(drawn(steps)), 4)

    def test_each_number_of_ranks_has_a_column(self):
        more = [*cases(), *(case(n, 4, 1e-3 * n, way) for n in (512, 1024, 2048) for way in ("gather", "ring"))]
        panels = growth(study(more))[0].figure.axes
        self.assertEqual([panel.get_title() for panel in panels], ["2 ranks", "4 ranks", "", ""])
        self.assertEqual([len(drawn(panel)) for panel in panels], [3, 3, 2, 2])

    def test_nothing_is_drawn_without_three_numbers_or_without_ratios(self):
        for nothing in (study(cases((512, 1024))), study(cases(), ratios=False), study([])):
            with self.assertRaises(NothingToShow):
                growth(nothing)

    def test_conditions_stand_side_by_side(self):
        (figure,) = conditions([study(cases(), "slow"), study(cases(), "fast")])
        self.assertEqual([panel.get_title() for panel in figure.figure.axes], ["slow", "fast", "", ""])
        figure.figure.savefig(io.BytesIO())
        with self.assertRaises(NothingToShow):
            conditions([study(cases()), study([])])


class Command(WithDirectory):
    def test_several_directories_make_one_page(self):
        numbers = {"data": 256, "fsdp": 256}
        results = self.copy(lambda result: result["factors"]["strategy"] in numbers and result["status"] == "ok")
        for file in sorted(results.glob("cases/*/result.json")):
            result = read_json(file)
            for positions in (512, 1024, 2048):
                own = f"{result['id']}-{positions}"
                factors = {**result["factors"], POSITIONS: positions}
                make_fixture.write(results / "cases" / own / "result.json", {**result, "id": own, "factors": factors})
            shutil.rmtree(file.parent)
        other = shutil.copytree(results, results.parent / "other")
        done = run_report(results, other, "-o", results.parent / "page")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 directories compared", done.stdout)
        page = (results.parent / "page" / "report.html").read_text(encoding="utf-8")
        for title in ("results", "other", "Time and context"):
            self.assertIn(title, page)
        self.assertIn("-o DIR", self.fails(results, other))
        self.assertIn("no number", self.fails(self.fixture, self.fixture, "-o", results.parent / "none"))


if __name__ == "__main__":
    unittest.main()
