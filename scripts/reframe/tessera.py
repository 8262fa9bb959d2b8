# SPDX-License-Identifier: Apache-2.0
"""Tessera for ReFrame: a training and a study, on one rank and on two. The programs are those in PATH."""

import re
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable

INPUTS = Path(__file__).resolve().parents[2] / "inputs"


class TesseraTest(rfm.RunOnlyRegressionTest):
    """`-S input=FILE` chooses another input file, `-S options=...` appends options."""

    ranks = parameter([1, 2])
    options = variable(str, value="")
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    right = ""  # what the output of a good run matches

    @run_after("init")
    def launch(self):
        self.num_tasks = self.ranks
        self.executable_opts = [self.command.format(input=INPUTS / self.input), self.options]

    @sanity_function
    def is_right(self):
        return sn.assert_found(self.right, self.stdout)

    @run_before("performance")
    def take_figures(self):
        """Each figure is a performance variable."""
        for name, value, unit in re.findall(self.figure, (Path(self.stagedir) / self.log).read_text(), re.MULTILINE):
            unit = unit or ("samples/s" if name == "samples_per_second" else "s")
            self.perf_variables[name] = sn.make_performance_function(sn.defer(float(value)), unit)


@rfm.simple_test
class TesseraTraining(TesseraTest):
    """Every call, byte and allocation of a training is as planned."""

    input = variable(str, value="large.toml")
    executable, command, log = "tessera", "run {input} --json result.json", "result.json"
    right = r"(?m)^\s+As planned:\s+yes"
    figure = r'^\s*"(seconds_per_step|samples_per_second|wall_seconds)": ([-+.e0-9]+)()'


@rfm.simple_test
class TesseraStudy(TesseraTest):
    """Every case of a study has the losses of one rank. Cases that need more ranks than the test has stay pending."""

    input = variable(str, value="quick_study.toml")
    executable, command, log = "tessera-bench", "run {input} -o results", "results/figures_of_merit.txt"
    right = r"(?m)^RESULT: (PASS|PARTIAL [1-9]\d* ok)"
    figure = r"^FOM: (\S+) (\S+) (\S+)$"
