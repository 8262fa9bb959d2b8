# SPDX-License-Identifier: Apache-2.0
"""Whether the definitions of scripts/benchpark fit our programs: their commands run, and their figures of merit find in
the output what the result files say. Ramble and Benchpark are stood in for: a directive is recorded with its arguments.
usage: test_benchpark.py SOURCE TESSERA TESSERA_BENCH LAUNCHER...   (of 2 ranks)"""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

SOURCE, TESSERA, TESSERA_BENCH = map(Path, sys.argv[1:4])
LAUNCHER = sys.argv[4:]


class Recorder:
    """Stands in for a directive."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def __call__(self, *arguments, **options):
        self.calls.append((self.name, arguments, options))


def load(path, modules):
    """A Python file, for which `modules` are {name: {attribute: value}}."""
    for name, attributes in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(attributes)
        sys.modules[name] = module
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Application:
    """application.py as Ramble reads it."""

    DIRECTIVES = (
        "tags software_spec required_package executable workload workload_variable figure_of_merit "
        "figure_of_merit_context success_criteria"
    ).split()

    def __init__(self):
        self.calls = []
        kit = {name: Recorder(name, self.calls) for name in self.DIRECTIVES}
        load(
            SOURCE / "scripts/benchpark/repo/applications/tessera/application.py",
            {"ramble": {}, "ramble.appkit": {**kit, "ExecutableApplication": object}},
        )

    def all(self, directive):
        """{name: other arguments}"""
        return {a[0]: {"given": a[1:], **o} for name, a, o in self.calls if name == directive and a}

    def command(self, workload, run_dir, **values):
        (executable,) = self.all("workload")[workload]["executables"]
        variables = {
            name: variable["default"]
            for name, variable in self.all("workload_variable").items()
            if workload in variable["workloads"]
        }
        assert set(values) <= set(variables), f"no such variable of {workload}: {values}"
        text = self.all("executable")[executable]["given"][0]
        known = {**variables, **values, "experiment_run_dir": str(run_dir)}
        return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], text).split()

    def figures(self, run_dir, log):
        """{(context or None, name): value}, line by line as Ramble does, which strips expressions of white space."""
        contexts = {
            name: (re.compile(context["regex"].strip()), context["output_format"])
            for name, context in self.all("figure_of_merit_context").items()
        }
        found = {}
        for name, figure in self.all("figure_of_merit").items():
            path = Path(figure.get("log_file", str(log)).replace("{experiment_run_dir}", str(run_dir)))
            active = {}
            for line in path.read_text().splitlines() if path.exists() else []:
                for context, (regex, text) in contexts.items():
                    if match := regex.match(line):
                        active[context] = text.format(**match.groupdict())
                if match := re.match(figure["fom_regex"].strip(), line):
                    for context in figure.get("contexts") or [None]:
                        found[active[context] if context else None, name] = float(match[figure["group_name"]])
        return found

    def succeeded(self, log):
        (criteria,) = self.all("success_criteria").values()
        return any(re.match(criteria["match"].strip(), line) for line in log.read_text().splitlines())


class Figures(unittest.TestCase):
    def setUp(self):
        self.application = Application()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.run_dir = Path(self.place.name)
        self.log = self.run_dir / "experiment.out"

    def launch(self, workload, **values):
        name, *arguments = self.application.command(workload, self.run_dir, **values)
        program = {"tessera": TESSERA, "tessera-bench": TESSERA_BENCH}[name]
        with open(self.log, "w") as log:
            done = subprocess.run([*LAUNCHER, str(program), *arguments], stdout=log, stderr=subprocess.STDOUT)
        if done.returncode:
            print(self.log.read_text())
        return done.returncode

    def test_a_training(self):
        inputs = SOURCE / "inputs"
        self.assertEqual(self.launch("train", input=str(inputs / "tutorial.toml"), global_batch="32"), 0)
        document = json.loads((self.run_dir / "result.json").read_text())
        figures = self.application.figures(self.run_dir, self.log)
        keys = ["initial_loss", "final_loss", "seconds_per_step", "samples_per_second", "wall_seconds"]
        self.assertEqual(figures, {(None, key): document[key] for key in keys})
        self.assertTrue(self.application.succeeded(self.log))

    def test_a_study(self):
        study = SOURCE / "test/bench/run/small_study.toml"
        self.assertEqual(self.launch("study", study=str(study)), 0)
        summary = json.loads((self.run_dir / "results/summary.json").read_text())
        # The cases do different work, so there are no best samples per second.
        wanted = {(None, "cases_ok"): summary["counts"]["ok"]}
        wanted[None, "timing_reliable"] = int(summary["machine"]["timing_reliable"])
        for case in summary["cases"]:
            for key in ["samples_per_second", "efficiency", "mfu"]:
                wanted[case["id"], f"case_{key}"] = case[key]
            wanted[case["id"], "case_step_seconds"] = case["step_seconds_median"]
        figures = self.application.figures(self.run_dir, self.log)
        self.assertEqual(figures.keys(), wanted.keys())
        for key, value in wanted.items():
            self.assertAlmostEqual(figures[key], value, delta=1e-7 * value, msg=key)
        # No line is left that nobody looks for.
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("FOM: ")]
        self.assertEqual(len(lines), len(wanted))
        units = {name: figure["units"] for name, figure in self.application.all("figure_of_merit").items()}
        for line in lines:
            key, _, unit = line.split()[1:]
            self.assertEqual(units[f"case_{key.rsplit('.', 1)[1]}" if "." in key else key], unit, line)
        self.assertTrue(self.application.succeeded(self.log))

    def test_a_failure_is_none_of_our_successes(self):
        study = SOURCE / "test/bench/run/small_study.toml"
        self.launch("study", study=str(study), options="--set verify.tolerance=1e-30")
        self.assertFalse(self.application.succeeded(self.log))


class FakeExperiment:
    """benchpark.experiment.Experiment, as far as ours uses it."""

    def __init__(self, *options, **variants):
        self.name = "tessera"
        self.spec = types.SimpleNamespace(
            satisfies=lambda text: text in options or text in [f"{k}={v}" for k, v in variants.items()],
            variants={name: [value] for name, value in variants.items()},
        )
        self.variables, self.required, self.scaled, self.packages = {}, {}, {}, {}

    def add_experiment_variable(self, name, value, named=False):
        self.variables[name] = value

    def set_required_variables(self, **values):
        self.required = values

    def register_scaling_config(self, config):
        self.scaled = config

    def add_package_spec(self, name, spec):
        self.packages[name] = spec


class Experiments(unittest.TestCase):
    def setUp(self):
        self.application, self.calls = Application(), []
        kinds = types.SimpleNamespace(Mpionly="mpi", Openmp="openmp", Cuda="cuda")
        self.modes = types.SimpleNamespace(Strong="strong", Weak="weak")
        mixin = lambda *given: type("Mixin", (), {})  # noqa: E731
        self.Tessera = load(
            SOURCE / "scripts/benchpark/experiments/tessera/experiment.py",
            {
                "benchpark": {},
                "benchpark.directives": {"variant": Recorder("variant", self.calls)},
                "benchpark.experiment": {"Experiment": FakeExperiment},
                "benchpark.programming_model": {"ProgrammingModel": mixin, "ProgrammingModelType": kinds},
                "benchpark.scaling": {"Scaling": mixin, "ScalingMode": self.modes},
            },
        ).Tessera
        self.variants = {arguments[0]: options for _, arguments, options in self.calls}

    def experiment(self, *options, **given):
        defaults = {name: options["default"] for name, options in self.variants.items()}
        experiment = self.Tessera(*options, **{**defaults, **given})
        experiment.compute_applications_section()
        experiment.compute_package_section()
        return experiment

    def test_workloads_and_variables_are_those_of_the_application(self):
        self.assertEqual(set(self.variants["workload"]["values"]), set(self.application.all("workload")))
        ours = {"resource_count", "n_ranks", "n_gpus"}
        known = set(self.application.all("workload_variable"))
        for workload in self.variants["workload"]["values"]:
            for options in [(), ("+cuda",)]:
                experiment = self.experiment(*options, workload=workload)
                self.assertLessEqual(set(experiment.variables) - ours, known)
                self.assertEqual(set(experiment.required), {"n_resources", "process_problem_size", "total_problem_size"})
                self.assertIn("n_gpus" if options else "n_ranks", experiment.variables)
                self.assertEqual(experiment.packages, {"tessera": ["tessera@main +benchmarks"]})

    def test_weak_scaling_keeps_the_batch_of_a_rank(self):
        experiment = self.experiment()
        variable = types.SimpleNamespace(val=lambda dimension: 8)
        scaled = {
            mode: {name: function(variable, 0, 0, 2) for name, function in rules.items()}
            for mode, rules in experiment.scaled.items()
        }
        self.assertEqual(scaled["strong"], {"resource_count": 16, "global_batch": 8})
        self.assertEqual(scaled["weak"], {"resource_count": 16, "global_batch": 16})

    def test_strategies_exist(self):
        for strategy in self.variants["strategy"]["values"]:
            plan = [str(TESSERA), "plan", str(SOURCE / "inputs/large.toml"), "--ranks", "4", "--strategy", strategy]
            self.assertEqual(subprocess.run(plan, stdout=subprocess.DEVNULL).returncode, 0, strategy)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
