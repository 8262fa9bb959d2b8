# SPDX-License-Identifier: Apache-2.0
"""Whether the tests of scripts/reframe fit our programs: their commands run, and their patterns find in the output what
the result files say. ReFrame is stood in for, and runs them itself where it is installed.
usage: test_reframe.py SOURCE TESSERA TESSERA_BENCH LAUNCHER...   (of 2 ranks)"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

SOURCE, TESSERA, TESSERA_BENCH = map(Path, sys.argv[1:4])
LAUNCHER = sys.argv[4:]
HAS_REFRAME = importlib.util.find_spec("reframe") is not None
TESTS, README = SOURCE / "scripts/reframe/tessera.py", SOURCE / "scripts/reframe/README.md"
INPUT = SOURCE / "test/bench/run/small_study.toml"


def load():
    """Returns the module of tests for a stand-in of ReFrame, which evaluates at once."""
    sanity = {
        "assert_found": lambda regex, path: re.search(regex, path.read_text()) is not None,
        "defer": lambda value: value,
        "make_performance_function": lambda value, unit: (value, unit),
    }
    names = ("parameter", "run_after", "run_before", "sanity_function", "variable")
    mark = lambda *given, **options: lambda method: method  # noqa: E731
    builtins = {name: mark for name in names}
    builtins |= {"parameter": tuple, "sanity_function": lambda method: method,
                 "variable": lambda kind, value: value}  # fmt: skip
    modules = {"reframe": {"RunOnlyRegressionTest": object, "simple_test": lambda kind: kind}, "reframe.utility": {},
               "reframe.utility.sanity": sanity, "reframe.core": {}, "reframe.core.builtins": builtins}  # fmt: skip
    saved = {name: sys.modules.get(name) for name in modules}
    for name, attributes in modules.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(attributes)
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], sys.modules[name])
    spec = importlib.util.spec_from_file_location("tessera_tests", TESTS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, old in saved.items():
        sys.modules.pop(name) if old is None else sys.modules.update({name: old})
    return module


class Tests(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.stage = Path(place.name)

    def launch(self, name, ranks, **variables):
        """Runs a test as ReFrame does, in its stage directory."""
        test, stage = getattr(load(), name)(), self.stage / f"on{ranks}"
        stage.mkdir()
        test.__dict__.update(ranks=ranks, perf_variables={}, stagedir=stage, stdout=stage / "stdout", **variables)
        test.launch()
        program = {"tessera": TESSERA, "tessera-bench": TESSERA_BENCH}[test.executable]
        command = [str(program), *" ".join(test.executable_opts).split()]
        with open(test.stdout, "w") as out:
            subprocess.run((LAUNCHER if test.num_tasks > 1 else []) + command, cwd=stage, stdout=out)
        return test

    def test_a_training(self):
        for ranks in (1, 2):
            test = self.launch("TesseraTraining", ranks, input="tutorial.toml")
            self.assertTrue(test.is_right())
            test.take_figures()
            document = json.loads((test.stagedir / "result.json").read_text())
            units = {"seconds_per_step": "s", "samples_per_second": "samples/s", "wall_seconds": "s"}
            self.assertEqual(test.perf_variables, {key: (document[key], unit) for key, unit in units.items()})

    def test_a_study(self):
        for ranks, cases in ((1, 2), (2, 4)):
            test = self.launch("TesseraStudy", ranks, input=str(INPUT))
            self.assertTrue(test.is_right(), test.stdout.read_text())
            test.take_figures()
            summary = json.loads((test.stagedir / "results/summary.json").read_text())
            found = {key: value for key, (value, unit) in test.perf_variables.items() if unit == "samples/s"}
            for case in [case for case in summary["cases"] if case["status"] == "ok"]:
                self.assertAlmostEqual(found[f"{case['id']}.samples_per_second"] / case["samples_per_second"], 1, 7)
            self.assertEqual(test.perf_variables["cases_ok"], (cases, "1"))

    def test_a_failure_is_not_right(self):
        test = self.launch("TesseraStudy", 2, input=str(INPUT), options="--set verify.tolerance=1e-30")
        self.assertFalse(test.is_right())

    @unittest.skipUnless(HAS_REFRAME, "ReFrame is not installed")
    def test_reframe_runs_them(self):
        programs = os.pathsep.join([str(TESSERA.parent), str(TESSERA_BENCH.parent), os.environ["PATH"]])
        machine = self.stage / "one_machine.py"
        machine.write_text(re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[1])
        command = [sys.executable, "-c", "from reframe.frontend.cli import main; main()", "-C", machine, "-c", TESTS,
                   "--prefix", self.stage, "-r", "-S", f"TesseraStudy.input={INPUT}",
                   "-S", "TesseraTraining.input=tutorial.toml", "--performance-report"]  # fmt: skip
        done = subprocess.run(list(map(str, command)), env={**os.environ, "PATH": programs}, capture_output=True,
                              text=True)  # fmt: skip
        self.assertIn("Ran 4/4 test case(s) from 4 check(s) (0 failure(s)", done.stdout, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
