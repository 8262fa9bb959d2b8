# SPDX-License-Identifier: Apache-2.0
"""The tables of cases, and those behind the figures: a column is a title and what stands in it."""

from functools import partial

from . import numbers
from .answer import best_case, best_of, named, statuses
from .document import Bold, Bullets, Code, Column, Status, Strategy, Table
from .explanation import largest_difference
from .fields import get, number, table, text, texts
from .fits import alpha_beta_fits, amdahl_fits
from .series import facets, shown_factor
from .style import PHASES


def _shown(title, show, *path):
    """A column of a number in the result of a case, or in a row of its traffic."""
    return Column(title, lambda item: show(number(getattr(item, "result", item), *path)))


CASE = Column("case", lambda case: Code(case.id), "")
STRATEGY = Column("strategy", lambda case: Strategy(case.strategy), "")
SPEED = Column("samples/s", lambda case: numbers.significant(case.samples_per_second, 4))
STEP = Column("step", lambda case: numbers.seconds(case.step("median"), 4))
RATIOS = [
    Column("speed-up", lambda case: numbers.times(case.derived("speedup"))),
    Column("efficiency", lambda case: numbers.percent(case.derived("efficiency"))),
]
SHARE = Column("comm. + idle", lambda case: numbers.percent(case.communication_share))
MFU = _shown("MFU", numbers.percent, "compute", "mfu")


def tiles(study):
    """What matters most of the best case."""
    best = best_case(study)
    columns = [SPEED, STEP, *(RATIOS if study.ratios else []), SHARE, MFU]
    known = [column for column in columns if column.cell(best) != numbers.UNKNOWN]
    return Bullets([[f"{one.title}: ", Bold(one.cell(best))] for one in known], "tiles")


def fastest(study):
    """The best case of every amount of work, where there are several."""
    found = [(facet, best_of(facet.measured)) for facet in facets(study.cases, study.scaling)]

    def best(pair):
        return named(pair[1]) if pair[1] else f"none ({statuses(pair[0].cases)})"

    columns = [Column("work", lambda pair: pair[0].title, ""), Column("fastest", best, "")]
    for column in (STEP, SPEED, *(RATIOS if study.ratios else [])):
        cell = lambda pair, show=column.cell: show(pair[1]) if pair[1] else None  # noqa: E731
        columns.append(Column(column.title, cell))
    caption = "The fastest case of every amount of work."
    return Table(found if len(found) > 1 else [], columns, caption)


def _bandwidth(beta):
    return numbers.rate(1 / beta if beta else None)


def other_factors(study):
    """A column of factors other than the usual ones, if any differ between cases."""
    keys = sorted({key for case in study.cases for key in case.other_factors()})
    keys = [k for k in keys if len({repr(case.factors.get(k)) for case in study.cases}) > 1]

    def cell(case):
        own = [key for key in keys if key in case.factors]
        return ", ".join(shown_factor(key, case.factors[key]) for key in own) or None

    return [Column("other factors", cell, "")] if keys else []


def nodes(study):
    """How many each case ran on and which axes cross them, if any has several."""
    if not any((case.number("case", "nodes", "count") or 1) > 1 for case in study.cases):
        return []
    return [
        _shown("nodes", numbers.count, "case", "nodes", "count"),
        Column("across nodes", lambda case: ", ".join(texts(case.result, "case", "nodes", "across")) or None, ""),
    ]


def step_between(case):
    """The median, and its confidence interval if it is known."""
    ends = (case.step("ci95_low"), case.step("ci95_high"))
    return numbers.seconds_between(case.step("median"), *ends)


def results(study):
    # In one unit, so that they can be compared down the column.
    rates = [case.number("compute", "flops_per_second") for case in study.measured]
    factor, unit = numbers.unit_of(rates, numbers.FLOP_UNITS)

    def flop_rate(value):
        return numbers.UNKNOWN if value is None else numbers.significant(value / factor)

    columns = [
        STRATEGY,
        Column("mesh", lambda case: Code(case.mesh), ""),
        Column("ranks", lambda case: numbers.count(case.ranks)),
        *nodes(study),
        Column("batch", lambda case: numbers.count(case.global_batch)),
        *other_factors(study),
        Column("step: median [95 % CI]", step_between),
        SPEED,
        *(RATIOS if study.ratios else []),
        SHARE,
        Column("GEMM share", lambda case: numbers.percent(case.product_share)),
        _shown(unit, flop_rate, "compute", "flops_per_second"),
        _shown(f"{unit} per rank", flop_rate, "compute", "flops_per_second_per_rank"),
        MFU,
    ]
    if any(case.number("compute", "vendor_mfu") is not None for case in study.measured):
        columns.append(_shown("of vendor peak", numbers.percent, "compute", "vendor_mfu"))
    columns += [
        _shown("memory", numbers.bytes_, "memory", f"{'planned' if study.machine else 'measured'}_bytes"),
        Column("loss", lambda case: case.verdict, ""),
    ]
    caption = (
        f"{study.made.capitalize()} cases; the fastest is marked. GEMM share: time in matrix products over the "
        "instrumented step. FLOPs are the model's; memory is that of the rank that uses most."
    )
    return Table(study.measured, columns, caption, best_case(study))


def all_cases(study):
    columns = [
        CASE,
        STRATEGY,
        Column("status", lambda case: Status(case.status), ""),
        Column("samples/s", lambda case: SPEED.cell(case) if case.ok else case.status),
        Column("what became of it", lambda case: case.reason or _as_planned(case), "text"),
        _shown("attempt", numbers.count, "attempt"),
        _shown("wall time", numbers.seconds, "wall_seconds"),
    ]
    caption = "Every case of the study, in whatever way it ended."
    return Table(study.cases, columns, caption)


def _as_planned(case):
    """What was checked of a case that gives no reason."""
    parts = [f"loss {case.verdict.replace('_', ' ')}"] if case.verdict else []
    for wanted, words in ((True, "as planned"), (False, "not as planned")):
        names = [k for k in ("traffic", "memory") if get(case.result, k, "as_planned") is wanted]
        parts += [f"{' and '.join(names)} {words}"] if names else []
    return ", ".join(parts) or "no reason given"


def predictions(study):
    def off(case):
        return numbers.signed_percent(case.prediction_error, ".0f")

    columns = [
        CASE,
        _shown("step, predicted", numbers.seconds, "prediction", "step_seconds"),
        _shown("measured", numbers.seconds, "step_seconds", "median"),
        Column("off by", off),
        Column("largest difference", lambda case: largest_difference(case) or numbers.UNKNOWN, ""),
        Column("payload, planned", lambda case: numbers.bytes_(case.bytes_of("planned"))),
        Column("measured", lambda case: numbers.bytes_(case.bytes_of("measured"))),
        _shown("memory, planned", numbers.bytes_, "memory", "planned_bytes"),
        _shown("measured", numbers.bytes_, "memory", "measured_bytes"),
    ]
    cases = [
        case
        for case in study.cases
        if any(column.cell(case) != numbers.UNKNOWN for column in columns[1:])
    ]
    caption = (
        "Off by: prediction over measurement, less one. Largest difference: of the parts of the "
        "instrumented step. Payload: of the whole verification. A dash: not reached, or not known."
    )
    return Table(cases, columns, caption, folded="Predicted and measured, case by case")


def _how_written(case):
    return "in the background" if get(case.result, "checkpoint", "async") else "while training waits"


def checkpoints(study):
    """What they cost, if the study wrote any."""
    columns = [
        CASE,
        STRATEGY,
        Column("written", _how_written, ""),
        _shown("size", numbers.bytes_, "checkpoint", "bytes"),
        _shown("writing takes", numbers.seconds, "checkpoint", "write_seconds"),
        _shown("written at", numbers.rate, "checkpoint", "write_bytes_per_second"),
        _shown("training stands still", numbers.seconds, "checkpoint", "exposed_seconds"),
        STEP,
        _shown("while writing", numbers.seconds, "checkpoint", "step_seconds_while_writing"),
        _shown("reading takes", numbers.seconds, "checkpoint", "read_seconds"),
        _shown("read at", numbers.rate, "checkpoint", "read_bytes_per_second"),
    ]
    cases = [case for case in study.measured if number(case.result, "checkpoint", "bytes")]
    caption = (
        "A checkpoint of each case: medians, of the slowest rank. It was read right after it had been "
        "written, perhaps from memory."
    )
    return Table(cases, columns, caption)


def pipelines(study):
    """Stages of a pipeline wait: as their schedule has it, as predicted, and as measured."""

    def idle(of, *path):
        def cell(case):
            step, seconds = number(case.result, of, "step_seconds"), number(case.result, of, *path)
            return numbers.percent(seconds / step if step and seconds is not None else None)

        return cell

    def live(case):
        found = get(case.result, "pipeline", "live_microbatches")
        known = isinstance(found, list) and all(isinstance(one, int) for one in found)
        return ", ".join(map(str, found)) if known and found else numbers.UNKNOWN

    tenths = partial(numbers.percent, digits=1)
    columns = [
        CASE,
        Column("schedule", lambda case: text(case.result, "pipeline", "schedule"), ""),
        _shown("stages", numbers.count, "pipeline", "stages"),
        _shown("microbatches", numbers.count, "pipeline", "microbatches"),
        STEP,
        _shown("bubble of the schedule", numbers.percent, "pipeline", "bubble"),
        Column("idle, predicted", idle("prediction", "idle_seconds")),
        Column("idle, measured", idle("breakdown", "idle", "mean_rank_seconds")),
        _shown("one step: idle", tenths, "pipeline", "timeline", "measured_bubble"),
        _shown("its passes replayed", tenths, "pipeline", "timeline", "replayed_bubble"),
        Column("microbatches kept by stage", live),
        _shown("activations", numbers.bytes_, "memory", "parts", "activations"),
    ]
    cases = [case for case in study.measured if number(case.result, "pipeline", "stages")]
    caption = (
        "Part of a step in which a stage waits. Of the schedule: if backward passes take twice as long "
        "as forward passes, and messages no time. Predicted: with calibrated costs. Measured: in the "
        "instrumented run, the mean over ranks. One step: the first one of it, on the first rank of each stage; "
        "replayed: simulated with each pass as long as it took, and messages that take no time. Activations: "
        "on the rank that needs most memory."
    )
    return Table(cases, columns, caption)


def phases(study):
    columns = [
        _shown(f"{words}: {of}", numbers.seconds, "breakdown", name, f"{of}_rank_seconds")
        for of in ("mean", "max")
        for name, (words, _) in PHASES.items()
    ]
    cases = [case for case in study.measured if case.phases]
    caption = "Of a step of the instrumented run: mean over the ranks, and of the slowest rank."
    return Table(cases, [CASE, *columns], caption, folded="Breakdown, case by case")


def steps(study):
    keys = {"median": "median", "MAD": "mad", "min": "min", "p95": "p95", "max": "max",
            "CI low": "ci95_low", "CI high": "ci95_high"}  # fmt: skip
    precise = partial(numbers.seconds, digits=4)
    columns = [
        CASE,
        *(_shown(title, precise, "step_seconds", key) for title, key in keys.items()),
        _shown("steps", numbers.count, "step_seconds", "n"),
        _shown("outliers", numbers.count, "step_seconds", "outliers"),
        Column("rounds", lambda case: numbers.count(len(case.rounds))),
    ]
    caption = "Median and confidence interval: of and between the rounds. The rest: of all steps."
    cases = study.measured
    return Table(cases, columns, caption, folded="Step times, case by case")


def traffic(study):
    columns = [
        Column("case", lambda row: Code(row["case"]), ""),
        Column("axis", lambda row: text(row, "axis"), ""),
        Column("operation", lambda row: text(row, "operation"), ""),
        _shown("group", numbers.count, "group_size"),
        _shown("calls: planned", numbers.count, "planned_calls"),
        _shown("measured", numbers.count, "measured_calls"),
        _shown("payload: planned", numbers.bytes_, "planned_payload_bytes"),
        _shown("measured", numbers.bytes_, "measured_payload_bytes"),
        _shown("time a step", numbers.seconds, "seconds_per_step"),
        _shown("waiting a step", numbers.seconds, "wait_seconds_per_step"),
        _shown("bus bandwidth", numbers.rate, "bus_bytes_per_second"),
    ]
    cases = study.cases
    rows = [{**row, "case": case.id} for case in cases for row in case.traffic]
    caption = (
        "Calls and payload bytes of the verification; times of a step of the instrumented run."
    )
    return Table(rows, columns, caption, folded="Traffic by axis and operation")


R_SQUARED = Column("R²", lambda fit: numbers.significant(fit.line.r_squared, 4))
RESIDUAL = Column(
    "largest residual", lambda fit: numbers.signed_percent(max(fit.line.relative, key=abs))
)


def amdahl(study):
    columns = [
        STRATEGY,
        Column("axis", lambda fit: Code(fit.axis), ""),
        Column("global batch", lambda fit: numbers.count(fit.cases[0].global_batch)),
        Column("ranks", lambda fit: ", ".join(f"{ranks:g}" for ranks in fit.ranks), ""),
        Column("serial fraction s", lambda fit: numbers.percent(fit.line.a / fit.line.sum, 1)),
        Column("T(1), fitted", lambda fit: numbers.seconds(fit.line.sum)),
        R_SQUARED,
        RESIDUAL,
    ]
    caption = (
        "A serial fraction below 0 % means super-linear scaling, one above 100 % that ranks slow each "
        "other down: Amdahl's law then does not describe the series."
    )
    return Table(amdahl_fits(study) if study.ratios else [], columns, caption)


def alpha_beta(study):
    columns = [
        Column("axis", lambda fit: Code(fit.axis), ""),
        Column("latency α", lambda fit: numbers.seconds(fit.line.a)),
        Column("bandwidth 1/β", lambda fit: _bandwidth(fit.line.b)),
        R_SQUARED,
        Column("points", lambda fit: numbers.count(len(fit.cases))),
        RESIDUAL,
    ]
    caption = "A negative α or β means that the points do not determine it."
    return Table(alpha_beta_fits(study) if study.ratios else [], columns, caption)


def gemm_peaks(study):
    columns = [
        Column("launch", lambda row: Code(row["launch"]), ""),
        _shown("ranks", numbers.count, "ranks"),
        Column("type", lambda row: text(row, "dtype"), ""),
        _shown("GEMM peak of a rank", numbers.flops, "gemm_flops_per_second"),
    ]
    rows = [
        {**one, "launch": name}
        for name, launch in sorted(study.launches.items())
        for one in table(launch, "calibration")
    ]
    return Table(rows, columns, "The rate of a large product, on as many ranks at once.")


def peers(study):
    """What scripts/peers.sh has measured, if its figures lie beside the results."""
    columns = [
        Column("", lambda row: text(row, "name"), ""),
        _shown("ranks", numbers.count, "ranks"),
        Column("type", lambda row: text(row, "precision"), ""),
        _shown("step", numbers.seconds, "step_seconds"),
        _shown("over ours", numbers.times, "ratio_to_tessera"),
        Column("version", lambda row: text(row, "version"), ""),
    ]
    caption = "The same training step, measured in turn on the same cores; see bench/peers."
    return Table(study.peers, columns, caption)


def calibration(study):
    """Latency and bandwidth of the calls that predictions are made from: both ends of each curve."""
    rows = []
    for one in table(study.calibration, "calibrations"):
        for name, curve in sorted((get(one, "curves") or {}).items()):
            points = table({"": curve}, "")
            if " ranks " in name and points:
                rows.append({"ranks": get(one, "ranks"), "name": name,
                             "first": points[0], "last": points[-1]})  # fmt: skip

    def rate(row):
        size, seconds = number(row, "last", "size"), number(row, "last", "seconds")
        return numbers.rate(size / seconds if size and seconds else None)

    def size(end):
        # Of a redistribution the rows are known, not the bytes.
        return lambda row: ("" if row["name"].startswith("redistribute")
                            else numbers.bytes_(number(row, end, "size")))  # fmt: skip

    columns = [
        _shown("busy ranks", numbers.count, "ranks"),
        Column("call", lambda row: Code(row["name"]), ""),
        Column("smallest", size("first")),
        _shown("takes", numbers.seconds, "first", "seconds"),
        Column("largest", size("last")),
        _shown("takes", numbers.seconds, "last", "seconds"),
        Column("payload per second", lambda row: rate(row) if size("last")(row) else ""),
    ]
    caption = (
        "What calls took by themselves, with all these ranks busy. Products, kernels and calls at all "
        "calibrated sizes are in calibration.json."
    )
    return Table(rows, columns, caption, folded="Calibrated calls")
