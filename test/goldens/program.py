# SPDX-License-Identifier: Apache-2.0
"""Starts the program on a case and returns what the goldens record of it: {section: value}."""

import json
import os
import pathlib
import shutil
import subprocess

import sections

TIMEOUT = 300  # seconds, of one command

# Open MPI starts as root and more ranks than cores; a rank has one thread, which sleeps while it waits.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "TESSERA_PROGRESS": "none", "TESSERA_ALLOW_SHARED_CORES": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none",
}  # fmt: skip


class OtherDevice(Exception):
    """The program plans for another device than the goldens."""


class Program:
    """A program, which is started in the folder of the inputs and writes to a scratch folder."""

    def __init__(self, path, launcher, inputs, scratch):
        found = shutil.which(path)
        if found is None:
            raise SystemExit(f"{path}: no such program")
        self.path, self.launcher, self.inputs = os.path.abspath(found), launcher.split(), inputs
        self.scratch = pathlib.Path(scratch)

    def start(self, command):
        """Returns the exit code and the line of the error."""
        done = subprocess.run(command, cwd=self.inputs, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True,
                              timeout=TIMEOUT)  # fmt: skip
        errors = [line for line in done.stderr.splitlines() if line.startswith("tessera: error:")]
        return f"exit code {done.returncode}, {errors[0] if errors else done.stderr.strip()[:200]}"

    def document(self, name, command):
        """Returns the JSON that the command writes, or None with the error."""
        file = self.scratch / name
        file.unlink(missing_ok=True)
        error = self.start([*command, "--json", str(file)])
        return (json.loads(file.read_text()), "") if file.exists() else (None, error)

    def plan(self, case, texts):
        """Returns digests, and puts the text of all sections into `texts`."""
        command = [self.path, "plan", case.file, *case.arguments, "--tensors", "--calls", "--schedule"]
        plan, error = self.document("plan.json", command)
        if plan is None:
            return {"error": error}
        if plan["device"] != "cpu":
            raise OtherDevice(f"the goldens are those of a build for CPUs, not for {plan['device']}")
        found = sections.sections_of(plan)
        texts[case.id] = "".join(f"[{name}]\n{text}" for name, (text, _) in found.items())
        return {name: sections.digest_of(*section) for name, section in found.items()}

    def train(self, case, *arguments):
        return self.document("result.json", [*self.launcher, str(case.ranks), self.path, "run", case.file, *case.arguments,
                                             "--quiet", *arguments])  # fmt: skip

    def run(self, case):
        """Returns the losses of epochs and of validations, and what rank 0 has measured."""
        result, error = self.train(case)
        if result is None:
            return {"error": error}
        measured = result["measured"]
        calls = sorted(measured["traffic"], key=lambda call: (call["axis"], call["operation"]))

        def traffic(key):
            return ", ".join(f"{call['axis']} {call['operation']} {call[key]}" for call in calls) or "none"

        losses = result["epoch_losses"] + result.get("validation", {}).get("losses", [])
        return {"losses": " ".join(map(repr, losses)), "calls": traffic("calls"), "bytes": traffic("payload_bytes"),
                "memory": str(measured["device_bytes"]), "planned": "yes" if result["as_planned"] else "no"}  # fmt: skip

    def hash(self, case):
        """Returns the hash of loss, gradients and parameters after the last step."""
        records = self.scratch / "hashes.jsonl"
        records.unlink(missing_ok=True)
        result, error = self.train(case, "--set", f"output.hashes={records}")
        if result is None:
            return {"error": error}
        return {"hash": json.loads(records.read_text().splitlines()[-1])["hash"]}

    def values(self, part, case, texts):
        try:
            if part == "plans":
                return self.plan(case, texts)
            return self.run(case) if part == "runs" else self.hash(case)
        except subprocess.TimeoutExpired:
            return {"error": f"does not end in {TIMEOUT} s"}
