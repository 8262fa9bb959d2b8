# SPDX-License-Identifier: Apache-2.0
"""The tables of cases, and those behind the figures: a column is a title and what stands in it."""

from .answer import best_case
from .document import Code, Column, Details, Status, Strategy, Table
from .fields import get, number, text
from .fits import alpha_beta_fits, amdahl_fits
from .numbers import (
    FLOP_UNITS,
    UNKNOWN,
    bytes_,
    count,
    percent,
    rate,
    seconds,
    seconds_between,
    signed_percent,
    significant,
    times,
    unit_of,
)
from .series import case_order, facets, factor_name, factor_value
from .style import PHASES


def _shown(title, show, *path):
    """A column of a number in the result of a case, or in a row of its traffic."""
    return Column(title, lambda item: show(number(getattr(item, "result", item), *path)))


CASE = Column("case", lambda case: Code(case.id), "")
STRATEGY = Column("strategy", lambda case: Strategy(case.strategy), "")
SPEED = Column("samples/s", lambda case: significant(case.samples_per_second, 4))


def _sorted(study, cases):
    """By amount of work, strategy and mesh."""
    work = {}
    for index, facet in enumerate(facets(study.cases, study.scaling)):
        for case in facet.cases:
            work.setdefault(case.id, index)
    return sorted(cases, key=lambda case: (work[case.id], case_order(case)))


def _other_factors(study):
    """A column of factors other than the usual ones, if any differ between cases."""
    keys = sorted({key for case in study.cases for key in case.other_factors()})
    keys = [k for k in keys if len({repr(case.factors.get(k)) for case in study.cases}) > 1]

    def cell(case):
        own = [key for key in keys if key in case.factors]
        return ", ".join(f"{factor_name(key)} {factor_value(case.factors[key])}" for key in own) or None

    return [Column("other factors", cell, "")] if keys else []


def _step(case):
    ends = (case.step("ci95_low"), case.step("ci95_high"))
    return " ".join(seconds_between(case.step("median"), *ends)).rstrip()


def results(study):
    # In one unit, so that they can be compared down the column.
    factor, unit = unit_of([case.compute("flops_per_second") for case in study.measured], FLOP_UNITS)

    def flop_rate(value):
        return UNKNOWN if value is None else significant(value / factor)

    columns = [
        STRATEGY,
        Column("mesh", lambda case: Code(case.mesh), ""),
        Column("ranks", lambda case: count(case.ranks)),
        Column("batch", lambda case: count(case.global_batch)),
        *_other_factors(study),
        Column("step: median [95 % CI]", _step),
        SPEED,
    ]
    if study.ratios:
        columns += [
            Column("speed-up", lambda case: times(case.derived("speedup"))),
            Column("efficiency", lambda case: percent(case.derived("efficiency"))),
        ]
    columns += [
        Column("comm. + idle", lambda case: percent(case.communication_share)),
        Column("GEMM share", lambda case: percent(case.product_share)),
        _shown(unit, flop_rate, "compute", "flops_per_second"),
        _shown(f"{unit} per rank", flop_rate, "compute", "flops_per_second_per_rank"),
        _shown("MFU", percent, "compute", "mfu"),
    ]
    if any(case.compute("vendor_mfu") is not None for case in study.measured):
        columns.append(_shown("of vendor peak", percent, "compute", "vendor_mfu"))
    columns += [
        _shown("memory", bytes_, "memory", "measured_bytes"),
        Column("loss", lambda case: case.verdict, ""),
    ]
    caption = (
        "Measured cases; the fastest is marked. GEMM share: time in matrix products over the "
        "instrumented step. FLOPs are the model's; memory is that of the fullest rank."
    )
    return Table(_sorted(study, study.measured), columns, caption, best_case(study))


def all_cases(study):
    columns = [
        CASE,
        STRATEGY,
        Column("status", lambda case: Status(case.status), ""),
        Column("samples/s", lambda case: SPEED.cell(case) if case.ok else case.status),
        Column("what became of it", lambda case: case.reason or _as_planned(case), "text"),
        _shown("attempt", count, "attempt"),
        _shown("wall time", seconds, "wall_seconds"),
    ]
    caption = "Every case of the study, in whatever way it ended."
    return Table(_sorted(study, study.cases), columns, caption)


def _as_planned(case):
    """What was checked of a case that gives no reason."""
    parts = [f"loss {case.verdict.replace('_', ' ')}"] if case.verdict else []
    for wanted, words in ((True, "as planned"), (False, "not as planned")):
        names = [key for key in ("traffic", "memory") if get(case.result, key, "as_planned") is wanted]
        parts += [f"{' and '.join(names)} {words}"] if names else []
    return ", ".join(parts) or "no reason given"


def _details(title, items, columns, caption):
    """None if there is nothing to show."""
    items = list(items)
    return Details(title, [Table(items, columns, caption)]) if items else None


def predictions(study):
    def off(case):
        known = case.prediction and case.step("median")
        return signed_percent(case.step("median") / case.prediction - 1 if known else None, ".0f")

    columns = [
        CASE,
        _shown("step, predicted", seconds, "prediction", "step_seconds"),
        _shown("measured", seconds, "step_seconds", "median"),
        Column("off by", off),
        Column("payload, planned", lambda case: bytes_(case.bytes_of("planned"))),
        Column("measured", lambda case: bytes_(case.bytes_of("measured"))),
        _shown("memory, planned", bytes_, "memory", "planned_bytes"),
        _shown("measured", bytes_, "memory", "measured_bytes"),
    ]
    cases = [
        case
        for case in _sorted(study, study.cases)
        if any(column.cell(case) != UNKNOWN for column in columns[1:])
    ]
    caption = "Payload: of the whole verification. A dash: not reached, or not known."
    return _details("Predicted and measured, case by case", cases, columns, caption)


def phases(study):
    columns = [
        _shown(f"{words}: {of}", seconds, "breakdown", name, f"{of}_rank_seconds")
        for of in ("mean", "max")
        for name, (words, _) in PHASES.items()
    ]
    cases = [case for case in _sorted(study, study.measured) if case.has_breakdown]
    caption = "Of a step of the instrumented run: mean over the ranks, and of the slowest rank."
    return _details("Breakdown, case by case", cases, [CASE, *columns], caption)


def steps(study):
    keys = {"median": "median", "MAD": "mad", "min": "min", "p95": "p95", "max": "max",
            "CI low": "ci95_low", "CI high": "ci95_high"}  # fmt: skip
    within = {True: "yes", False: "no"}
    columns = [
        CASE,
        *(_shown(title, lambda value: seconds(value, 4), "step_seconds", keys[title]) for title in keys),
        _shown("steps", count, "step_seconds", "n"),
        _shown("outliers", count, "step_seconds", "outliers"),
        Column("within", lambda case: within.get(case.narrow_enough), ""),
    ]
    caption = "Within: whether the confidence interval of the median is as narrow as asked for."
    return _details("Step times, case by case", _sorted(study, study.measured), columns, caption)


def traffic(study):
    columns = [
        Column("case", lambda row: Code(row["case"]), ""),
        Column("axis", lambda row: text(row, "axis"), ""),
        Column("operation", lambda row: text(row, "operation"), ""),
        _shown("group", count, "group_size"),
        _shown("calls: planned", count, "planned_calls"),
        _shown("measured", count, "measured_calls"),
        _shown("payload: planned", bytes_, "planned_payload_bytes"),
        _shown("measured", bytes_, "measured_payload_bytes"),
        _shown("time a step", seconds, "seconds_per_step"),
        _shown("waiting a step", seconds, "wait_seconds_per_step"),
        _shown("bus bandwidth", rate, "bus_bytes_per_second"),
    ]
    cases = _sorted(study, study.cases)
    rows = [{**row, "case": case.id} for case in cases for row in case.traffic]
    caption = (
        "Calls and payload bytes of the verification; times of a step of the instrumented run."
    )
    return _details("Traffic by axis and operation", rows, columns, caption)


R_SQUARED = Column("R²", lambda fit: significant(fit.line.r_squared, 4))
RESIDUAL = Column("largest residual", lambda fit: signed_percent(max(fit.line.relative, key=abs)))


def amdahl(study):
    columns = [
        STRATEGY,
        Column("axis", lambda fit: Code(fit.axis), ""),
        Column("global batch", lambda fit: count(fit.cases[0].global_batch)),
        Column("ranks", lambda fit: ", ".join(f"{ranks:g}" for ranks in fit.ranks), ""),
        Column("serial fraction s", lambda fit: percent(fit.serial, 1)),
        Column("T(1), fitted", lambda fit: seconds(fit.one_rank)),
        R_SQUARED,
        RESIDUAL,
    ]
    caption = (
        "A serial fraction below 0 % means super-linear scaling, one above 100 % that ranks slow each "
        "other down: Amdahl's law then does not describe the series."
    )
    fits = amdahl_fits(study) if study.ratios else []
    return Table(fits, columns, caption) if fits else None


def alpha_beta(study):
    columns = [
        Column("axis", lambda fit: Code(fit.axis), ""),
        Column("latency α", lambda fit: seconds(fit.alpha)),
        Column("bandwidth 1/β", lambda fit: rate(1 / fit.beta) if fit.beta else None),
        R_SQUARED,
        Column("points", lambda fit: count(len(fit.cases))),
        RESIDUAL,
    ]
    caption = "A negative α or β means that the points do not determine it."
    fits = alpha_beta_fits(study) if study.ratios else []
    return Table(fits, columns, caption) if fits else None
