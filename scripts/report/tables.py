# SPDX-License-Identifier: Apache-2.0
"""The tables of the report: results, predictions, traffic, fits, and every case with what became of it."""

from . import document as doc
from .answer import best_case
from .fields import get, number, text
from .figure_fits import alpha_beta_fits, amdahl_fits
from .numbers import (
    FLOP_UNITS,
    UNKNOWN,
    axis_unit,
    bytes_,
    count,
    percent,
    rate,
    seconds,
    seconds_between,
    signed_percent,
    significant,
    times,
)
from .series import case_order, facets, factor_name, factor_value


def sorted_cases(study, cases):
    """By amount of work, strategy and mesh."""
    order = {}
    for facet in facets(study.cases, study.scaling):
        for case in facet.cases:
            order.setdefault(case.id, len(order))
    groups = {case.id: (case.global_batch or 0) for case in cases}
    return sorted(cases, key=lambda case: (groups[case.id], case_order(case), order[case.id]))


def _step(case):
    ends = (case.step("ci95_low"), case.step("ci95_high"))
    return seconds_between(case.step("median"), *ends)


def _varied(study):
    """Factors other than the usual ones that differ between cases."""
    keys = sorted({key for case in study.cases for key in case.other_factors()})
    return [k for k in keys if len({repr(case.factors.get(k)) for case in study.cases}) > 1]


def _factors(case, keys):
    shown = [
        f"{factor_name(key)} {factor_value(case.factors[key])}"
        for key in keys
        if key in case.factors
    ]
    return ", ".join(shown) or UNKNOWN


def _rate_in(factor, case):
    rate_ = case.compute("flops_per_second")
    return rate_ / factor if rate_ is not None else None


def results(study):
    best, varied = best_case(study), _varied(study)
    columns = [doc.Column("strategy"), doc.Column("mesh"), doc.Column("ranks", True),
               doc.Column("batch", True)]  # fmt: skip
    columns += [doc.Column("other factors")] if varied else []
    columns += [doc.Column("step: median [95 % CI]", True), doc.Column("samples/s", True)]
    if study.ratios:
        columns += [doc.Column("speed-up", True), doc.Column("efficiency", True)]
    rates = [case.compute("flops_per_second") for case in study.measured]
    factor, unit = axis_unit(rates, FLOP_UNITS)
    columns += [doc.Column("comm. + idle", True), doc.Column(unit, True),
                doc.Column("MFU", True), doc.Column("memory", True), doc.Column("loss")]  # fmt: skip
    rows, highlighted = [], set()
    for case in sorted_cases(study, study.measured):
        if case is best:
            highlighted.add(len(rows))
        row = [[doc.Strategy(case.strategy)], [doc.Code(case.mesh)], count(case.ranks),
               count(case.global_batch)]  # fmt: skip
        row += [_factors(case, varied)] if varied else []
        row += [_step(case), significant(case.samples_per_second, 4)]
        if study.ratios:
            row += [times(case.derived("speedup")), percent(case.derived("efficiency"))]
        row += [percent(case.communication_share), significant(_rate_in(factor, case)),
                percent(case.compute("mfu")), bytes_(case.memory("measured_bytes")),
                case.verdict or UNKNOWN]  # fmt: skip
        rows.append(row)
    caption = (
        "Measured cases; the fastest is marked. FLOPs are the model's; memory is that of the fullest "
        "rank."
    )
    return doc.Table(columns, rows, caption, highlighted)


def all_cases(study):
    columns = [doc.Column("case"), doc.Column("strategy"), doc.Column("status"),
               doc.Column("samples/s", True), doc.Column("what became of it", wide=True),
               doc.Column("attempt", True), doc.Column("wall time", True)]  # fmt: skip
    rows = []
    for case in sorted_cases(study, study.cases):
        speed = significant(case.samples_per_second, 4) if case.ok else case.status
        rows.append([[doc.Code(case.id)], [doc.Strategy(case.strategy)], [doc.Status(case.status)],
                     speed, case.reason or _as_planned(case), count(case.attempt),
                     seconds(number(case.result, "wall_seconds"))])  # fmt: skip
    return doc.Table(columns, rows, "Every case of the study, in whatever way it ended.")


def _as_planned(case):
    """What was checked of a case that gives no reason."""
    parts = [f"loss {case.verdict.replace('_', ' ')}"] if case.verdict else []
    checks = {"traffic": get(case.result, "traffic", "as_planned"),
              "memory": get(case.result, "memory", "as_planned")}  # fmt: skip
    for value, words in ((True, "as planned"), (False, "not as planned")):
        names = [name for name, checked in checks.items() if checked is value]
        parts += [f"{' and '.join(names)} {words}"] if names else []
    return ", ".join(parts) or "no reason given"


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
        pairs = [(p["seconds_per_step"], p["fitted_seconds"]) for _, p in fit.points]
        off = max(((t - f) / t for t, f in pairs), key=abs)
        rows.append([[doc.Code(fit.axis)], seconds(fit.alpha),
                     rate(1 / fit.beta) if fit.beta else UNKNOWN, significant(fit.r_squared, 4),
                     count(len(fit.points)), signed_percent(off)])  # fmt: skip
    return doc.Table(columns, rows, "A negative α or β means that the points do not determine it.")
