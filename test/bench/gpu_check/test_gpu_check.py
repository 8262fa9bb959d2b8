# SPDX-License-Identifier: Apache-2.0
"""Runs the whole of scripts/gpu_check.sh with tiny sizes and one planted failure, and reads its document and log.
usage: test_gpu_check.py SOURCE_DIR BIN_DIR"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT, BIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "scripts/gpu_check"))
import parts as check_parts  # noqa: E402
NEEDS_GPU = ["memcheck", "nccl", "memcheck_2", "racecheck", "cublas"]
OTHERS = ["golden", "once", "models", "tests", "tests_1", "tests_2", "launches", "large", "llama", "steps", "one_of_many"]


def check(folder, *options):
    """Runs the script; returns its exit code, its document, and its log with what it printed."""
    command = [ROOT / "scripts/gpu_check.sh", "--bin", BIN, "-o", folder, "--small", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    document = pathlib.Path(folder) / "gpu_check.json"
    if not document.exists():
        return done.returncode, None, done.stdout + done.stderr
    return done.returncode, json.loads(document.read_text()), (pathlib.Path(folder) / "gpu_check.log").read_text() + done.stdout


class GpuCheck(unittest.TestCase):
    def test_every_part_is_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            code, document, log = check(folder, "--inject", "micro", "--only", "micro", *OTHERS, *NEEDS_GPU)
        parts = {part["name"]: part for part in document["parts"]}
        on_gpu = any(line.split() == ["kokkos.backend:", "Cuda"] for line in parts["machine"]["result"]["info"])
        wanted = dict.fromkeys(["machine", *OTHERS], "ok")
        for name in NEEDS_GPU:
            wanted[name] = parts[name]["status"] if on_gpu else "skipped"
        wanted["micro"] = "failed"
        self.assertEqual({name: part["status"] for name, part in parts.items()}, wanted, log)
        self.assertEqual((code, document["passed"]), (1, False))
        self.assertIn("planted by --inject", parts["micro"]["reason"])
        if not on_gpu:
            self.assertIn("not on a GPU", parts["nccl"]["reason"])
        self.assertAlmostEqual(parts["golden"]["result"]["tf32"][0], 20.304531, delta=2e-6)
        self.assertAlmostEqual(parts["golden"]["result"]["strict"][1], 3.199371, delta=2e-6)
        self.assertGreater(parts["tests"]["result"]["passed"], 5)
        self.assertEqual(parts["tests_2"]["result"]["failed"], [])
        self.assertTrue(any("mesh=fsdp=2" in case["label"] for case in parts["models"]["result"]))
        # Two layers: each bias forwards and backwards, the loss and the update; five products, as the input has no gradient.
        wanted = {"kernels": 6, "products": 5, "copies": 0, "fences": 0}
        self.assertEqual(parts["launches"]["result"]["tutorial"], wanted)
        self.assertGreater(parts["launches"]["result"]["tutorial_step_seconds"], 0)
        self.assertEqual({row["library"] for row in parts["large"]["result"]}, {"tessera"})
        self.assertEqual(len(parts["steps"]["result"]), 6)
        self.assertTrue(all(case["step_seconds_median"] > 0 for case in parts["steps"]["result"]))
        self.assertIn("--set model.matmul_precision=tf32", log)
        self.assertTrue(parts["one_of_many"]["result"]["as_planned"])
        self.assertTrue(log.endswith("next: gpu_check.sh --only transformer_1024 transformer_4096 fno micro calibrate\n"), log[-300:])

    def test_a_later_run_goes_on_from_the_parts_that_passed(self):
        with tempfile.TemporaryDirectory() as folder:
            code, document, said = check(folder, "--first", "--inject", "golden")
            self.assertEqual((code, [part["name"] for part in document["parts"]]), (1, ["machine", "golden", "once", "memcheck"]))
            self.assertRegex(said, r"\n  next: read \S+gpu_check.log, mend it, then gpu_check.sh --only golden\n")
            self.assertRegex(said, r"\nnext: gpu_check.sh --only golden (memcheck )?nccl models ")
            code, document, said = check(folder, "--only", "golden")
        self.assertEqual((code, [part["name"] for part in document["parts"]]), (0, ["machine", "golden", "once", "memcheck"]))
        self.assertNotRegex(said.splitlines()[-1], "golden|once")

    def test_without_time_parts_end_or_are_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            code, document, _ = check(folder, "--seconds", "0", "--only", "golden")
            self.assertEqual([part["status"] for part in document["parts"]], ["skipped"] * 2)
            self.assertEqual(code, 0)
            program = pathlib.Path(folder) / "tessera"
            program.write_text('#!/bin/sh\n[ "$1" = info ] || exec sleep 99\necho "kokkos.backend: Serial"\n')
            program.chmod(0o755)
            code, document, log = check(folder, "--bin", folder, "--seconds", "12", "--only", "golden", "micro")
        self.assertEqual([part["status"] for part in document["parts"]], ["ok", "timeout", "skipped"])
        self.assertIn("no time is left", document["parts"][2]["reason"])
        self.assertEqual((code, document["passed"]), (1, False))
        self.assertIn("[out of time]", log)

    def test_sanitizers_pass_only_without_findings(self):
        hazards = "RACECHECK SUMMARY: {} hazards displayed (0 errors, {} warnings)"
        for tool, said, passes in (("racecheck", hazards.format(0, 0), True), ("racecheck", hazards.format(5, 5), False),
                                   ("memcheck", "ERROR SUMMARY: 0 errors", True), ("memcheck", "ERROR SUMMARY: 10 errors", False),
                                   ("memcheck", "", False)):  # fmt: skip
            with self.subTest(said), unittest.mock.patch.object(check_parts, "train", return_value=(said, None)):
                run = check_parts.sanitizer(tool, "tutorial")
                if passes:
                    self.assertEqual(len(run(unittest.mock.Mock())["tutorial"]), 1)
                else:
                    self.assertRaises(check_parts.Ended, run, unittest.mock.Mock())

    def test_a_wrong_folder_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            code, document, said = check(folder, "--bin", folder)
        self.assertEqual((code, document), (1, None))
        self.assertIn("has no program tessera", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
