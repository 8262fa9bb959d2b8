# SPDX-License-Identifier: Apache-2.0
"""How the numbers were made, with the settings of this study."""

from . import tables
from .document import Bullets, Code, Column, Table
from .fields import get, number, text
from .numbers import bytes_, count, percent, power_of_ten, seconds

SCALING = {
    "strong": ["Strong scaling: the global batch is fixed; speed-up S = T(p₀)/T(p), efficiency "
               "E = p₀·T(p₀)/(p·T(p))."],
    "weak": ["Weak scaling: the batch per rank is fixed; efficiency E = T(p₀)/T(p); the speed-up is that "
             "of samples per second."],
}  # fmt: skip


def _calibration_seconds(study):
    taken = [found for launch in study.launches.values()
             if (found := number(launch, "calibration_seconds")) is not None]  # fmt: skip
    return f"; the calibration took {seconds(sum(taken))}." if taken else "."


def _simulated(study):
    """What predicts the times, and the file that describes the machine."""
    items = [
        "Figure of merit: samples/s = global batch ÷ step time.",
        *SCALING.get(study.scaling, []),
        "Step time: a simulator carries the plan's schedule out, with one clock for each kind of ranks: gathers and "
        "reductions that overlap, messages between stages, waiting for the slowest rank.",
        "A kernel takes the longer of its FLOPs at the machine's rate of products and its bytes at that of memory, and "
        "a fixed time beside it. A collective takes the messages of recursive doubling at the latency of the outermost "
        "level that it reaches, and its bytes over the slowest link of a ring, which groups that leave a node share.",
        "Memory, calls and bytes are the plan's, which runs are held against.",
    ]
    files = {text(launch, "simulated", "file") for launch in study.launches.values()} - {None}
    lines = [line for file in sorted(files) for line in file.splitlines() if line]
    return [Bullets(items), Table(lines, [Column("machine file", Code, "text")], folded="The machine")]


def _correctness(study):
    if get(study, "verify", "enabled") is False:
        losses = "Losses were not held against anything: every case is unverified. Calls"
    else:
        ranks, steps = number(study, "verify", "ranks"), number(study, "verify", "steps")
        reference = "one rank" if ranks == 1 else (
            f"up to {count(ranks)} ranks, which were held against one rank in short trials first,")
        losses = (
            f"Each mesh trains from the same parameters on the same data as {reference} and must give its losses"
            f"{f' of {count(steps)} steps' if steps else ''} within a relative difference of "
            f"{power_of_ten(number(study, 'verify', 'tolerance'))}; calls")
    return (f"Correctness: {losses}, bytes and memory must be the plan's. Otherwise the case is invalid, and its times "
            "are not reported as speed.")


def blocks(study):
    if study.machine:
        return _simulated(study)

    def measure(key):
        return number(study.study, "measure", key)

    gemm = measure("gemm_size")
    items = [
        "Figure of merit: samples/s = global batch ÷ median step time. The time of a step is that of its "
        "slowest rank; no fence but the one at its end, and no tool loaded.",
        *SCALING.get(study.scaling, []),
        f"Steps: after {count(measure('warm_up'))} to warm up, {count(measure('rounds'))} rounds, spread over "
        "the launch, in each of which all cases run a block of steps, in a new order. The step time of a "
        "round is the median of its block, that of a case the median of its rounds; the 95 % confidence "
        "interval is by order statistics between the rounds. Outliers are counted, never dropped.",
        "Machine: a small matrix product and a sweep through memory, before and behind each block, show how "
        "fast the machine was. Speed-up, efficiency and what is called equally fast are found round by "
        "round, corrected by them; a difference below 3 % is never called one.",
        _correctness(study.study),
        f"Breakdown and times of collectives: a second run of {count(measure('instrumented_steps'))} "
        "instrumented steps. Its fences cost time, so its step is no figure of merit.",
        "Predictions: in the first rounds, the products, kernels and calls of all plans are timed by "
        "themselves with all ranks busy. A simulator carries the plan's schedule out with these times: "
        "gathers and reductions that overlap, waiting for the slowest rank. No step is measured for it. "
        "Predictions are stated at the machine's speed during the rounds"
        + _calibration_seconds(study),
        "FLOPs: of the matrix products of the model alone (2·B·Σhₗ₋₁hₗ forward, twice that minus 2·B·h₀·h₁ "
        "backward). MFU: their rate over the GEMM peak measured in the same launch, on as many ranks at once"
        + (f" (the best of products of {count(gemm)}³)." if gemm else "."),
        "Ratios are never averaged. Cases ran in orders shuffled with the seed given below.",
    ]
    case_seconds = number(study.study, "limits", "case_seconds")
    memory = number(study.study, "limits", "memory_bytes")
    limits = [f"{seconds(case_seconds)} for a case"] if case_seconds else []
    limits += [f"{bytes_(memory)} of memory for a rank"] if memory else []
    if limits:
        items.append("Limits: " + ", ".join(limits) + ".")
    if get(study.study, "small") is True:
        items.append("This is the small variant of the study, which tests that it runs.")
    if text(study.study, "file"):
        items.append(["Study file: ", Code(text(study.study, "file")), "."])
    return [Bullets(items), tables.gemm_peaks(study), tables.calibration(study)]
