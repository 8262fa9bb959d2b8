# SPDX-License-Identifier: Apache-2.0
"""The table of results, and that of every case with what became of it."""

from . import document as doc
from .answer import best_case
from .fields import get, number
from .numbers import (
    FLOP_UNITS,
    UNKNOWN,
    axis_unit,
    bytes_,
    count,
    percent,
    seconds,
    seconds_between,
    significant,
    times,
)
from .series import case_order, facets, factor_name, factor_value


def sorted_cases(study, cases):
    """By amount of work, strategy and mesh."""
    work = {}
    for index, facet in enumerate(facets(study.cases, study.scaling)):
        for case in facet.cases:
            work.setdefault(case.id, index)
    return sorted(cases, key=lambda case: (work[case.id], case_order(case)))


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


def _in_units_of(factor, value):
    return significant(value / factor) if value is not None else UNKNOWN


def _columns_of_results(study):
    """Pairs of a column and what stands in it for a case."""
    varied = _varied(study)
    rates = [case.compute("flops_per_second") for case in study.measured]
    factor, unit = axis_unit(rates, FLOP_UNITS)
    columns = [
        (doc.Column("strategy"), lambda case: [doc.Strategy(case.strategy)]),
        (doc.Column("mesh"), lambda case: [doc.Code(case.mesh)]),
        (doc.Column("ranks", True), lambda case: count(case.ranks)),
        (doc.Column("batch", True), lambda case: count(case.global_batch)),
    ]
    if varied:
        columns.append((doc.Column("other factors"), lambda case: _factors(case, varied)))
    columns += [
        (doc.Column("step: median [95 % CI]", True), _step),
        (doc.Column("samples/s", True), lambda case: significant(case.samples_per_second, 4)),
    ]
    if study.ratios:
        columns += [
            (doc.Column("speed-up", True), lambda case: times(case.derived("speedup"))),
            (doc.Column("efficiency", True), lambda case: percent(case.derived("efficiency"))),
        ]
    columns += [
        (doc.Column("comm. + idle", True), lambda case: percent(case.communication_share)),
        (doc.Column("GEMM share", True), lambda case: percent(case.product_share)),
        (doc.Column(unit, True),
         lambda case: _in_units_of(factor, case.compute("flops_per_second"))),
        (doc.Column(f"{unit} per rank", True),
         lambda case: _in_units_of(factor, case.compute("flops_per_second_per_rank"))),
        (doc.Column("MFU", True), lambda case: percent(case.compute("mfu"))),
    ]  # fmt: skip
    if any(case.compute("vendor_mfu") is not None for case in study.measured):
        columns.append(
            (doc.Column("of vendor peak", True), lambda case: percent(case.compute("vendor_mfu")))
        )
    return columns + [
        (doc.Column("memory", True), lambda case: bytes_(case.memory("measured_bytes"))),
        (doc.Column("loss"), lambda case: case.verdict or UNKNOWN),
    ]


def results(study):
    best, columns = best_case(study), _columns_of_results(study)
    cases = sorted_cases(study, study.measured)
    rows = [[cell(case) for _, cell in columns] for case in cases]
    caption = (
        "Measured cases; the fastest is marked. GEMM share: time in matrix products over the "
        "instrumented step. FLOPs are the model's; memory is that of the fullest rank."
    )
    marked = {index for index, case in enumerate(cases) if case is best}
    return doc.Table([column for column, _ in columns], rows, caption, marked)


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
