# SPDX-License-Identifier: Apache-2.0
"""What checkpoints cost stands in a table, if a study wrote any."""

import unittest

from support import WithDirectory, change_json, read_json, small

CHECKPOINT = {
    "directory": "saves",
    "async": True,
    "checkpoints": 5,
    "bytes": 3 * 2**20,
    "write_seconds": 0.5,
    "write_bytes_per_second": 6e6,
    "exposed_seconds": 0.0125,
    "steps_while_writing": 0,
    "step_seconds_while_writing": None,
    "read_seconds": 0.25,
    "read_bytes_per_second": 12e6,
}
TITLES = ("case", "training stands still", "while writing")


class Checkpoints(WithDirectory):
    def test_one_row_for_each_case_that_wrote_some(self):
        results = self.copy(small)
        files = [f for f in results.glob("cases/*/result.json") if read_json(f)["status"] == "ok"]
        self.assertGreater(len(files), 1)
        change_json(files[0], lambda result: result.update(checkpoint=CHECKPOINT))
        (row,) = self.report(results).table(*TITLES)
        self.assertEqual(row["case"], files[0].parent.name)
        self.assertEqual(row["written"], "in the background")
        self.assertEqual(row["size"], "3.00 MiB")
        self.assertEqual(row["writing takes"], "500 ms")
        self.assertEqual(row["training stands still"], "12.5 ms")
        self.assertEqual(row["while writing"], "–")
        self.assertEqual(row["reading takes"], "250 ms")

    def test_no_table_without_checkpoints(self):
        with self.assertRaises(AssertionError):
            self.report(self.copy(small)).table(*TITLES)


if __name__ == "__main__":
    unittest.main()
