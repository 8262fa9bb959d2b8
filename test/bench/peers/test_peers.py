# SPDX-License-Identifier: Apache-2.0
"""Tests the ratios and messages of bench/peers, and one small step of each library in build/peers.
usage: test_peers.py SOURCE_DIR TESSERA_BENCH"""

import compileall
import contextlib
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT, TESSERA_BENCH = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PEERS = ROOT / "bench/peers"
PYTHON = pathlib.Path(os.environ.get("TESSERA_PEERS", ROOT / "build/peers")) / "bin/python"
sys.path.insert(0, str(PEERS))
sys.dont_write_bytecode = True
import peers  # noqa: E402


def has(module):
    """Returns true if the environment of scripts/peers.sh exists and has this library."""
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


def parse(arguments):
    return peers.parse(["--tessera-bench", "x", "--only", "tessera", *arguments])


def figure(name, library, ranks, precision, *seconds, model="mlp"):
    return {"model": model, "name": name, "library": library, "ranks": ranks, "precision": precision,
            "rounds": list(seconds), "step_seconds": statistics.median(seconds), "version": name}  # fmt: skip


class Peers(unittest.TestCase):
    def test_every_file_is_python(self):
        with tempfile.TemporaryDirectory() as copies, contextlib.redirect_stdout(io.StringIO()):
            for file in PEERS.glob("*.py"):
                (pathlib.Path(copies) / file.name).write_bytes(file.read_bytes())
            self.assertTrue(compileall.compile_dir(copies, quiet=1))

    def test_ratios_are_to_our_first_row_of_the_same_work_in_the_same_round(self):
        figures = [
            figure("ours", "tessera", 2, "bf16", 0.5, 1.0, 2.0),
            figure("ours sharded", "tessera", 2, "bf16", 0.75, 1.5, 3.0),
            figure("theirs", "torch", 2, "bf16", 2.0, 3.0, 4.0),
            figure("theirs", "torch", 1, "bf16", 1.5),
            figure("theirs", "torch", 2, "float32", 1.5),
            figure("theirs", "torch", 2, "bf16", 1.5, model="vae"),
        ]
        peers.add_ratios(figures)
        self.assertEqual([one["ratio_to_tessera"] for one in figures], [1, 1.5, 3, None, None, None])
        self.assertEqual([one["ratio_in_rounds"] for one in figures[1:4]], [[1.5, 1.5], [2, 4], None])
        lines = peers.table_text(figures).splitlines()
        self.assertEqual(lines[3].split()[:10], ["mlp", "theirs", "2", "bf16", "3000.00", "ms", "3.00", "2.00", "-", "4.00"])
        self.assertIn(" - ", lines[4])

    def test_another_model_is_refused(self):
        row, ours = peers.Row("vae", "theirs", "torch", 1, "float32"), {"losses": [2.0, 1.0]}
        peers.check_losses(row, {"losses": [2.0, 1.000001]}, ours)
        for wrong in ([2.0, 1.001], [float("nan"), 1.0]):
            with self.assertRaises(SystemExit) as error:
                peers.check_losses(row, {"losses": wrong}, ours)
            self.assertEqual(str(error.exception),
                             f"error: vae, theirs, float32: has losses {wrong}, ours [2.0, 1.0] (tolerance 1e-05)")  # fmt: skip

    def test_a_library_that_is_missing_is_named(self):
        with unittest.mock.patch("importlib.util.find_spec", return_value=None), self.assertRaises(SystemExit) as error:
            parse(["--only", "tessera", "torch"])
        self.assertEqual(str(error.exception), f"error: {sys.executable} has no torch: scripts/peers.sh installs it; "
                                               "--only measures without it")  # fmt: skip

    def test_a_program_that_fails_is_quoted(self):
        with self.assertRaises(SystemExit) as error:
            peers.run(["sh", "-c", "echo out of luck >&2; exit 3"])
        self.assertIn("ended with 3:\nout of luck", str(error.exception))

    def test_a_library_that_fails_is_left_out(self):
        seen = {"library": "any", "step_seconds": [1.0], "losses": [2.0, 1.0]}

        def their_step(row, options, file):
            if "--compiled" in row.options:
                peers.run(["sh", "-c", "echo cannot compile >&2; exit 1"], 1, peers.LibraryFailed)
            return seen

        with unittest.mock.patch("importlib.util.find_spec", return_value=True):
            options = peers.parse(["--tessera-bench", "x", "--ranks", "1", "--precision", "float32", "--rounds", "2"])
        warnings = io.StringIO()
        with (
            unittest.mock.patch.multiple(peers, make_case=unittest.mock.DEFAULT, our_step=lambda *_: seen, their_step=their_step),
            contextlib.redirect_stderr(warnings),
        ):
            found = peers.measure(options, pathlib.Path("none"))
        self.assertEqual([one["name"] for one in found["peers"]], ["Tessera", "PyTorch eager", "JAX jit"])
        self.assertEqual([len(one["rounds"]) for one in found["peers"]], [2, 2, 2])
        self.assertEqual(found["left_out"], ["mlp, PyTorch compiled, 1 ranks, float32"])
        self.assertEqual(warnings.getvalue().count("cannot compile\nwarning: mlp, PyTorch compiled, 1 ranks, float32: is left out"), 1)

    def test_nothing_to_measure_is_refused_in_one_line(self):
        for option, value in (("--ranks", "0"), ("--ranks", "-1"), ("--threads", "0"), ("--rounds", "0"), ("--steps", "0")):
            with self.subTest(option=option, value=value), self.assertRaises(SystemExit) as error:
                parse([option, value])
            self.assertEqual(str(error.exception), f"error: {option} {value}: must be a positive number")
        with self.assertRaises(SystemExit) as error:
            parse(["--ranks", "2", "0"])
        self.assertIn("--ranks 0", str(error.exception))
        self.assertEqual(parse(["--ranks", "1"]).ranks, [1])

    def test_tf32_is_measured_on_gpus_only(self):
        self.assertEqual(parse([]).precision, ["float32", "bf16"])
        self.assertEqual(parse(["--device", "cuda"]).precision, ["float32", "tf32", "bf16"])
        for arguments, said in ((["--precision", "tf32"], "error: --precision tf32: needs --device cuda"),
                                (["--device", "cuda", "--only", "jax"], "error: --only jax: is measured on CPUs only")):  # fmt: skip
            with self.assertRaises(SystemExit) as error:
                parse(arguments)
            self.assertEqual(str(error.exception), said)

    def test_our_program_is_one_for_the_device(self):
        def measure(device):
            return subprocess.run(
                [sys.executable, PEERS / "peers.py", "--tessera-bench", TESSERA_BENCH, "--device", device, "--small",
                 "--mpirun", os.environ.get("TESSERA_MPIRUN", "mpirun"), "--only", "tessera", "--rounds", "1",
                 "--ranks", "1", "--precision", "float32", "--models", "mlp"],
                capture_output=True, text=True)  # fmt: skip

        done = {device: measure(device) for device in ("cpu", "cuda")}
        (wrong,) = [device for device, one in done.items() if one.returncode != 0]
        self.assertIn(f"\nerror: --device {wrong}: {TESSERA_BENCH} computes with ", done[wrong].stderr)

    def test_processes_have_the_threads_that_are_asked_for(self):
        self.assertEqual(peers.run(["sh", "-c", "echo $OMP_NUM_THREADS"]), "1\n")
        self.assertEqual(peers.run(["sh", "-c", "echo $OMP_NUM_THREADS"], 2), "2\n")
        self.assertEqual(parse(["--threads", "2"]).mpirun, "mpirun --map-by slot:PE=2 --bind-to core")
        with unittest.mock.patch("importlib.util.find_spec", return_value=True), self.assertRaises(SystemExit) as error:
            peers.parse(["--tessera-bench", "x", "--threads", "2"])
        self.assertIn("several devices of JAX have one thread each", str(error.exception))

    def measure(self, *libraries, models=("mlp",), ranks=(1, 2), precisions=("float32", "bf16")):
        python = PYTHON if libraries != ("tessera",) else sys.executable
        mpirun = os.environ.get("TESSERA_MPIRUN", "mpirun")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "peers.json"
            done = subprocess.run(
                [python, PEERS / "peers.py", "--tessera-bench", TESSERA_BENCH, "--mpirun", mpirun, "--small",
                 "--rounds", "1", "--steps", "1", "--ranks", *map(str, ranks), "--precision", *precisions,
                 "--models", *models, "--only", *libraries, "--json", file],
                capture_output=True, text=True)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = json.loads(file.read_text(encoding="utf-8"))["peers"]
        wanted = [row for m in models for n in ranks for p in precisions for row in peers.rows_of(m, n, p)]
        self.assertEqual([one["name"] for one in figures], [row.name for row in wanted if row.library in libraries])
        for one in figures:
            self.assertGreater(one["step_seconds"], 0)
        return figures

    def test_a_small_step_of_ours(self):
        for one in self.measure("tessera"):
            self.assertTrue(one["version"].startswith("Tessera"), one)
            self.assertEqual("products" in one["version"], one["precision"] == "bf16", one)

    # Each run ends with an error if parameters or losses differ from ours.
    @unittest.skipUnless(has("torch"), "no PyTorch in build/peers")
    def test_a_small_step_of_pytorch(self):
        self.measure("tessera", "torch", precisions=["float32"])

    @unittest.skipUnless(has("torch"), "no PyTorch in build/peers")
    def test_every_model_is_ours(self):
        models = [model for model in peers.SMALL if model != "mlp"]
        self.measure("tessera", "torch", *(["jax"] if has("jax") else []), models=models, ranks=[1], precisions=["float32"])

    @unittest.skipUnless(has("torch"), "no PyTorch in build/peers")
    def test_a_gpu_that_is_not_there(self):
        done = subprocess.run(
            [PYTHON, PEERS / "torch_step.py", "--case", "none", "--steps", "1", "--device", "cuda"],
            capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.endswith("error: --device cuda: this process is number 0 of its node, and PyTorch sees 0 GPUs\n"))

    @unittest.skipUnless(has("torch"), "no PyTorch in build/peers")
    def test_sums_in_16_bits_are_those_of_the_fixture(self):
        fixture = ROOT / "test/engine"
        done = subprocess.run(
            [PYTHON, fixture / "make_torch_sums.py", "--check", fixture / "torch_sums"], capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(has("jax"), "no JAX in build/peers")
    def test_a_small_step_of_jax(self):
        self.measure("tessera", "jax")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
