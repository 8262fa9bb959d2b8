# SPDX-License-Identifier: Apache-2.0
"""Whether scripts/thicket.py writes Caliper's JSON-split format, and Thicket, where it is installed, reads the results.
usage: test_thicket.py SOURCE TESSERA_BENCH LAUNCHER...   (of 2 ranks)"""

import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, TESSERA_BENCH = map(Path, sys.argv[1:3])
LAUNCHER = sys.argv[3:]
SCRIPT = SOURCE / "scripts/thicket.py"


class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.results = Path(place.name) / "results"
        study = [TESSERA_BENCH, "run", SOURCE / "test/bench/run/small_study.toml", "-o", cls.results]
        subprocess.run([*LAUNCHER, *map(str, study)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, SCRIPT, cls.results], check=True)
        cls.files = {path.stem: path for path in (cls.results / "thicket").iterdir()}
        with open(cls.results / "cases.csv", newline="") as rows:
            cls.rows = {row["id"]: row for row in csv.DictReader(rows)}

    def test_files_have_the_format(self):
        self.assertEqual(self.files.keys(), self.rows.keys())
        self.assertEqual(len(self.files), 4)
        for path in self.files.values():
            document = json.loads(path.read_text())
            columns, nodes = document["columns"], document["nodes"]
            self.assertEqual(len(columns), len(document["column_metadata"]))
            self.assertEqual(len(nodes), len(document["data"]))
            self.assertEqual({len(values) for values in document["data"]}, {len(columns)})
            self.assertEqual({node["column"] for node in nodes}, {"path"})
            for place, (node, values) in enumerate(zip(nodes, document["data"])):
                self.assertEqual([*node], ["label", "column"] + ["parent"] * (place > 0))
                self.assertLess(node.get("parent", -1), place)
                row = dict(zip(columns, values))
                self.assertEqual((row["Node order"], row["path"]), (place, place))
                self.assertGreaterEqual(row["time (inc)"], row["time"])

    def test_times_and_calls_are_those_of_the_result(self):
        for name, path in self.files.items():
            document = json.loads(path.read_text())
            result = json.loads((self.results / "cases" / name / "result.json").read_text())
            rows = {node["label"]: dict(zip(document["columns"], values))
                    for node, values in zip(document["nodes"], document["data"])}  # fmt: skip
            parts = result["breakdown"]
            self.assertEqual(rows["step"]["time (inc)"], parts["step_seconds"])
            self.assertEqual(rows["products"]["time"], parts["products"]["mean_rank_seconds"])
            self.assertAlmostEqual(sum(row["time"] for row in rows.values()) / parts["step_seconds"], 1, places=6)
            calls = {label for label in rows if "(" in label}
            self.assertEqual(calls, {"all_reduce(data)"} if result["factors"]["ranks"] == 2 else set())
            for label in calls:
                self.assertEqual(rows[label]["calls"], result["traffic"]["rows"][0]["calls_per_step"])

    def test_metadata_are_the_columns_of_cases_csv(self):
        for name, path in self.files.items():
            document = json.loads(path.read_text())
            self.assertEqual(document["study"], "small_study")
            self.assertIs(document["timing_reliable"], False)  # with two rounds
            for key, text in self.rows[name].items():
                value = document["num_nodes" if key == "nodes" else key]
                if isinstance(value, float):
                    self.assertAlmostEqual(float(text), value, delta=1e-6 * abs(value), msg=key)
                else:
                    self.assertEqual(text, "" if value is None else str(value), key)

    def test_a_directory_without_results_is_one_line(self):
        done = subprocess.run([sys.executable, SCRIPT, SOURCE], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))

    @unittest.skipUnless(importlib.util.find_spec("thicket"), "Thicket is not installed")
    def test_thicket_reads_them(self):
        import thicket

        profiles = thicket.Thicket.from_caliper(sorted(map(str, self.files.values())), disable_tqdm=True)
        self.assertEqual(set(profiles.metadata["id"]), set(self.rows))
        self.assertEqual(profiles.inc_metrics, ["time (inc)"])
        self.assertIn("time", profiles.exc_metrics)
        steps = profiles.dataframe[profiles.dataframe["name"] == "step"]["time (inc)"]
        for profile, row in profiles.metadata.iterrows():
            (step,) = steps[steps.index.get_level_values("profile") == profile]
            self.assertEqual(step, row["instrumented_step_seconds"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
