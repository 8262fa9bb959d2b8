# SPDX-License-Identifier: Apache-2.0
"""How the numbers were made, with the settings of this study."""

from . import document as doc
from .fields import get, number, table, text
from .numbers import UNKNOWN, bytes_, count, flops, percent, power_of_ten, rate, seconds

SCALING = {
    "strong": "Strong scaling: the global batch is fixed; speed-up S = T(p₀)/T(p), efficiency "
              "E = p₀·T(p₀)/(p·T(p)).",
    "weak": "Weak scaling: the batch per rank is fixed; efficiency E = T(p₀)/T(p); the speed-up is that of "
            "samples per second.",
}  # fmt: skip


def _setting(study, *path):
    return number(study.study, *path)


def blocks(study):
    warm_up, steps = _setting(study, "measure", "warm_up"), _setting(study, "measure", "steps")
    most, ci = _setting(study, "measure", "max_steps"), _setting(study, "measure", "ci")
    fenced = _setting(study, "measure", "instrumented_steps")
    tolerance, gemm = _setting(study, "tolerance"), _setting(study, "measure", "gemm_size")
    items = [
        "Figure of merit: samples/s = global batch ÷ median step time. The time of a step is that of its "
        "slowest rank; no fence but the one at its end, and no tool loaded.",
        f"Steps: {count(warm_up)} to warm up, then {count(steps)}, and on until the 95 % confidence "
        f"interval of the median is within {percent(ci, 1)} of it, at most {count(most)}. The interval is "
        "by order statistics. Outliers are counted, never dropped.",
        "Correctness: each mesh trains from the same parameters on the same data as one rank and must "
        f"give its losses within a relative difference of {power_of_ten(tolerance)}; calls, bytes and "
        "memory must be the plan's. Otherwise the case is invalid, and its times are not reported as "
        "speed.",
        f"Breakdown and times of collectives: a second run of {count(fenced)} instrumented steps. Its "
        "fences cost time, so its step is no figure of merit.",
        "FLOPs: of the matrix products of the model alone (2·B·Σhₗ₋₁hₗ forward, twice that minus 2·B·h₀·h₁ "
        "backward). MFU: their rate over the GEMM peak measured in the same launch, on as many ranks at once"
        + (f" (the best of products of {count(gemm)}³)." if gemm else "."),
        "Ratios are made from medians and never averaged. Cases ran in an order shuffled with the seed "
        "given below.",
    ]
    if study.scaling in SCALING:
        items.insert(1, SCALING[study.scaling])
    limits = []
    if _setting(study, "limits", "case_seconds"):
        limits.append(f"{seconds(_setting(study, 'limits', 'case_seconds'))} for a case")
    if _setting(study, "limits", "memory_bytes"):
        limits.append(f"{bytes_(_setting(study, 'limits', 'memory_bytes'))} of memory for a rank")
    if limits:
        items.append("Limits: " + ", ".join(limits) + ".")
    if get(study.study, "small") is True:
        items.append("This is the small variant of the study, which tests that it runs.")
    source = text(study.study, "file")
    if source:
        items.append(["Study file: ", doc.Code(source), "."])
    return [doc.Bullets(items), *_calibration(study)]


def _calibration(study):
    rows = []
    for name, launch in sorted(study.launches.items()):
        for one in table(launch, "calibration"):
            beta = number(one, "beta_seconds_per_byte")
            rows.append([[doc.Code(name)], count(number(one, "ranks")),
                         text(one, "dtype") or UNKNOWN,
                         flops(number(one, "gemm_flops_per_second")),
                         seconds(number(one, "alpha_seconds")),
                         rate(1 / beta) if beta else UNKNOWN])  # fmt: skip
    if not rows:
        return []
    columns = [doc.Column("launch"), doc.Column("ranks", True), doc.Column("type"),
               doc.Column("GEMM peak of a rank", True), doc.Column("all-reduce: latency α", True),
               doc.Column("bandwidth 1/β", True)]  # fmt: skip
    caption = "What each launch measured before its cases; predictions are made from it."
    return [doc.Table(columns, rows, caption)]
