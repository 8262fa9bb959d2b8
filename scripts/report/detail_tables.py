# SPDX-License-Identifier: Apache-2.0
"""The tables behind the figures: phases, step times, predictions, traffic and fits."""

from . import document as doc
from .case import PHASES
from .fields import get, number, text
from .fits import alpha_beta_fits, amdahl_fits
from .numbers import UNKNOWN, bytes_, count, percent, rate, seconds, signed_percent, significant
from .style import PHASE_NAMES
from .tables import sorted_cases


def predictions(study):
    columns = [doc.Column("case"), doc.Column("step, predicted", True),
               doc.Column("measured", True), doc.Column("off by", True),
               doc.Column("payload, planned", True), doc.Column("measured", True),
               doc.Column("memory, planned", True), doc.Column("measured", True)]  # fmt: skip
    rows = []
    for case in sorted_cases(study, study.cases):
        cells = [case.prediction(), case.step("median"), case.bytes_of("planned"),
                 case.bytes_of("measured"), case.memory("planned_bytes"),
                 case.memory("measured_bytes")]  # fmt: skip
        if all(cell is None for cell in cells):
            continue
        off = cells[1] / cells[0] - 1 if cells[0] and cells[1] else None
        rows.append([[doc.Code(case.id)], seconds(cells[0]), seconds(cells[1]),
                     signed_percent(off, 0), *(bytes_(cell) for cell in cells[2:])])  # fmt: skip
    caption = "Payload: of the whole verification. A dash: not reached, or not known."
    return doc.Details("Predicted and measured, case by case", [doc.Table(columns, rows, caption)])


def phases(study):
    columns = [doc.Column("case")]
    columns += [doc.Column(f"{PHASE_NAMES[name]}: mean", True) for name in PHASES]
    columns += [doc.Column(f"{PHASE_NAMES[name]}: max", True) for name in PHASES]
    rows = []
    for case in sorted_cases(study, study.measured):
        if case.has_breakdown:
            cells = [case.phase(name, of) for of in ("mean", "max") for name in PHASES]
            rows.append([[doc.Code(case.id)], *(seconds(cell) for cell in cells)])
    caption = "Of a step of the instrumented run: mean over the ranks, and of the slowest rank."
    return doc.Details("Breakdown, case by case", [doc.Table(columns, rows, caption)])


def steps(study):
    titles = ("median", "MAD", "min", "p95", "max", "CI low", "CI high")
    keys = ("median", "mad", "min", "p95", "max", "ci95_low", "ci95_high")
    columns = [doc.Column("case")] + [doc.Column(title, True) for title in titles]
    columns += [doc.Column("steps", True), doc.Column("outliers", True), doc.Column("within")]
    rows = []
    for case in sorted_cases(study, study.measured):
        own = get(case.result, "step_seconds")
        narrow = get(own, "ci_within")
        within = "yes" if narrow is True else "no" if narrow is False else UNKNOWN
        rows.append([[doc.Code(case.id)], *(seconds(number(own, key), 4) for key in keys),
                     count(number(own, "n")), count(number(own, "outliers")), within])  # fmt: skip
    caption = "Within: whether the confidence interval of the median is as narrow as asked for."
    return doc.Details("Step times, case by case", [doc.Table(columns, rows, caption)])


def traffic(study):
    columns = [doc.Column("case"), doc.Column("axis"), doc.Column("operation"),
               doc.Column("group", True), doc.Column("calls: planned", True),
               doc.Column("measured", True), doc.Column("payload: planned", True),
               doc.Column("measured", True), doc.Column("time a step", True),
               doc.Column("waiting a step", True), doc.Column("bus bandwidth", True)]  # fmt: skip
    rows = []
    for case in sorted_cases(study, study.cases):
        for row in case.traffic:
            rows.append([[doc.Code(case.id)], text(row, "axis") or UNKNOWN,
                         text(row, "operation") or UNKNOWN, count(number(row, "group_size")),
                         count(number(row, "planned_calls")), count(number(row, "measured_calls")),
                         bytes_(number(row, "planned_payload_bytes")),
                         bytes_(number(row, "measured_payload_bytes")),
                         seconds(number(row, "seconds_per_step")),
                         seconds(number(row, "wait_seconds_per_step")),
                         rate(number(row, "bus_bytes_per_second"))])  # fmt: skip
    caption = (
        "Calls and payload bytes of the verification; times of a step of the instrumented run."
    )
    return doc.Details("Traffic by axis and operation", [doc.Table(columns, rows, caption)])


def amdahl(study):
    columns = [doc.Column("strategy"), doc.Column("axis"), doc.Column("global batch", True),
               doc.Column("ranks"), doc.Column("serial fraction s", True),
               doc.Column("T(1), fitted", True), doc.Column("R²", True),
               doc.Column("largest residual", True)]  # fmt: skip
    rows = []
    for fit in amdahl_fits(study) if study.ratios else []:
        off = max(((t - f) / t for _, t, f in fit.points), key=abs)
        rows.append([[doc.Strategy(fit.strategy)], [doc.Code(fit.axis)], count(fit.batch),
                     ", ".join(f"{p:g}" for p, *_ in fit.points), percent(fit.serial, 1),
                     seconds(fit.one_rank), significant(fit.r_squared, 4),
                     signed_percent(off)])  # fmt: skip
    caption = (
        "A serial fraction below 0 % means super-linear scaling, one above 100 % that ranks slow each "
        "other down: Amdahl's law then does not describe the series."
    )
    return doc.Table(columns, rows, caption)


def alpha_beta(study):
    columns = [doc.Column("axis"), doc.Column("latency α", True), doc.Column("bandwidth 1/β", True),
               doc.Column("R²", True), doc.Column("points", True),
               doc.Column("largest residual", True)]  # fmt: skip
    rows = []
    for fit in alpha_beta_fits(study) if study.ratios else []:
        off = max(((t - f) / t for _, t, f in fit.points), key=abs)
        rows.append([[doc.Code(fit.axis)], seconds(fit.alpha),
                     rate(1 / fit.beta) if fit.beta else UNKNOWN, significant(fit.r_squared, 4),
                     count(len(fit.points)), signed_percent(off)])  # fmt: skip
    return doc.Table(columns, rows, "A negative α or β means that the points do not determine it.")
