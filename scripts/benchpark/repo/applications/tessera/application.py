# SPDX-License-Identifier: Apache-2.0
"""Tessera for Ramble, and so for Benchpark: a training or a study on the ranks of an experiment."""

from ramble.appkit import *


class Tessera(ExecutableApplication):
    """Mini-app for sharded neural-network training on named meshes of MPI ranks."""

    name = "tessera"

    tags("mini-app", "benchmark-app", "machine-learning", "mpi", "kokkos")

    software_spec("tessera", pkg_spec="tessera +benchmarks", package_manager="spack*")
    required_package("tessera", package_manager="spack*")

    executable(
        "train",
        "tessera run {input} --strategy {strategy} --set training.batch_size={global_batch} {options}"
        " --json {experiment_run_dir}/result.json",
        use_mpi=True,
    )
    executable(
        "study", "tessera-bench run {study} -o {experiment_run_dir}/results --resume --fom {options}", use_mpi=True
    )
    workload("train", executables=["train"])
    workload("study", executables=["study"])

    workload_variable(
        "input",
        default="{tessera_path}/share/tessera/inputs/large.toml",
        description="Configuration of the training",
        workloads=["train"],
    )
    workload_variable("strategy", default="data", description="What the ranks shard", workloads=["train"])
    workload_variable("global_batch", default="1024", description="Rows of a step, on all ranks", workloads=["train"])
    workload_variable(
        "study",
        default="{tessera_path}/share/tessera/inputs/quick_study.toml",
        description="Study file; cases that need more ranks than the experiment has stay pending",
        workloads=["study"],
    )
    workload_variable("options", default="", description="Further options", workloads=["train", "study"])

    # The document of `tessera run`.
    for key, units in {
        "initial_loss": "",
        "final_loss": "",
        "seconds_per_step": "s",
        "samples_per_second": "samples/s",
        "wall_seconds": "s",
    }.items():
        figure_of_merit(
            key,
            log_file="{experiment_run_dir}/result.json",
            fom_regex=rf'\s*"{key}": (?P<value>[-+.e0-9]+)',
            group_name="value",
            units=units,
        )

    # The lines "FOM: <case>.<key> <value> <units>" of `tessera-bench run --fom`.
    figure_of_merit_context("case", regex=r"FOM: (?P<case>\S+)\.samples_per_second ", output_format="{case}")
    for key, units in {"samples_per_second": "samples/s", "step_seconds": "s", "efficiency": "1", "mfu": "1"}.items():
        figure_of_merit(
            f"case_{key}",
            fom_regex=rf"FOM: \S+\.{key} (?P<value>\S+) ",
            group_name="value",
            units=units,
            contexts=["case"],
        )
    for key, units in {"cases_ok": "1", "best_samples_per_second": "samples/s", "timing_reliable": "1"}.items():
        figure_of_merit(key, fom_regex=rf"FOM: {key} (?P<value>\S+) ", group_name="value", units=units)

    # Every loss right, every call, byte and allocation as planned.
    success_criteria("right", mode="string", match=r"RESULT: PASS |\s+As planned:\s+yes")
