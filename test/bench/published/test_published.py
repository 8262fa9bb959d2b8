# SPDX-License-Identifier: Apache-2.0
"""Whether predictions stay as near to published times as bench/PUBLISHED.md says.
usage: test_published.py SOURCE TESSERA_BENCH"""

import importlib.util
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, PROGRAM = map(Path, sys.argv[1:3])
INPUTS = SOURCE / "inputs/published"
spec = importlib.util.spec_from_file_location("published", SOURCE / "scripts/published.py")
published = importlib.util.module_from_spec(spec)
spec.loader.exec_module(published)

# Most mean errors in percent, and fewest rows of which they are the mean.
BOUNDS = {"Megatron": (4.7, 17), "all": (7.4, 52)}


class Published(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = published.compare(PROGRAM, INPUTS)

    def test_errors_are_as_small_as_stated(self):
        for name, (most, fewest) in BOUNDS.items():
            rows = [row for row in self.rows[1:] if name == "all" or row["study"] in published.MEGATRON]
            error, number = published.mean_error(rows)
            self.assertGreaterEqual(number, fewest, name)
            self.assertLess(100 * error, most, name)
            self.assertGreater(100 * error, most - 1, f"{name}: the bound can be lowered")

    def test_every_case_of_a_study_is_a_row(self):
        for study in published.COLOURS:
            grids = (INPUTS / f"{study}.toml").read_text().count("\n[[grid]]")
            self.assertEqual({int(row["grid"]) for row in self.rows if row["study"] == study}, set(range(1, grids + 1)))

    def test_only_the_first_row_calibrates(self):
        self.assertAlmostEqual(self.rows[0]["ratio"], 1, delta=5e-4)
        with tempfile.TemporaryDirectory() as place:
            copy = Path(shutil.copytree(INPUTS, Path(place, "published")))
            rates = {}
            for machine in "selene", "h100":
                path = copy / f"{machine}.toml"
                rates[machine] = float(published.RATE.search(path.read_text())[2])
                path.write_text(published.RATE.sub(lambda rate: f"{rate[1]}{1.3 * float(rate[2])}", path.read_text()))
            published.calibrate(PROGRAM, copy)
            for machine, rate in rates.items():
                found = float(published.RATE.search((copy / f"{machine}.toml").read_text())[2])
                self.assertAlmostEqual(found / rate, 1, delta=1e-3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
