# SPDX-License-Identifier: Apache-2.0
"""Tessera for Benchpark: trainings that scale strongly or weakly, or a study on one launch."""

from benchpark.directives import variant
from benchpark.experiment import Experiment
from benchpark.programming_model import ProgrammingModel, ProgrammingModelType
from benchpark.scaling import Scaling, ScalingMode


class Tessera(
    Experiment,
    ProgrammingModel(ProgrammingModelType.Mpionly, ProgrammingModelType.Openmp, ProgrammingModelType.Cuda),
    Scaling(ScalingMode.Strong, ScalingMode.Weak),
):
    variant("workload", default="train", values=("train", "study"), description="One training, or a study's cases")
    variant("version", default="main", description="Version of the package tessera")
    variant(
        "strategy",
        default="data",
        values=("data", "zero1", "zero2", "fsdp"),
        description="What the ranks of a training shard",
    )

    def compute_applications_section(self):
        # A rank drives one processor or one GPU.
        self.add_experiment_variable("resource_count", 4, False)
        if self.spec.satisfies("+cuda"):
            self.add_experiment_variable("n_gpus", "{n_resources}", True)
        else:
            self.add_experiment_variable("n_ranks", "{n_resources}", True)
        if self.spec.satisfies("workload=train"):
            self.add_experiment_variable("strategy", self.spec.variants["strategy"][0], True)
        self.add_experiment_variable("global_batch", 1024, True)
        self.set_required_variables(
            n_resources="{resource_count}",
            process_problem_size="{global_batch} / {n_resources}",
            total_problem_size="{global_batch}",
        )

        def multiply(variable, iteration, dimension, factor):
            return variable.val(dimension) * factor

        def keep(variable, iteration, dimension, factor):
            return variable.val(dimension)

        self.register_scaling_config(
            {
                ScalingMode.Strong: {"resource_count": multiply, "global_batch": keep},
                ScalingMode.Weak: {"resource_count": multiply, "global_batch": multiply},
            }
        )

    def compute_package_section(self):
        self.add_package_spec(self.name, [f"tessera@{self.spec.variants['version'][0]} +benchmarks"])
