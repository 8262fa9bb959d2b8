# SPDX-License-Identifier: Apache-2.0
"""The tables of cases."""

from . import numbers
from .contents import Column, Table, shown
from .fields import get, number, numbers as numbers_, positive, table, text, texts
from .fits import alpha_beta_fits, amdahl_fits
from .works import factor_name, factor_value

NAME = Column("case", lambda case: case.name, "text")
SPEED = Column("samples/s", lambda case: numbers.significant(case.samples_per_second, 4))
LIVE = ("pipeline", "live_microbatches")
INTERVAL = ("ci95_low", "ci95_high")
WORK = Column("work", lambda case: case.work or None, "text")
STEP = Column("step", lambda case: numbers.seconds(case.step(), 4))


def _products(case):
    """Returns the part of the instrumented step in matrix products."""
    step, products = case.number("breakdown", "step_seconds"), case.number("breakdown", "products", "mean_rank_seconds")
    return products / step if step and products is not None else None


def results(study):
    columns = [
        Column("strategy", lambda case: case.strategy, "strategy"),
        Column("mesh", lambda case: case.mesh, "code"),
        Column("ranks", lambda case: numbers.count(case.ranks)),
        Column("nodes", lambda case: numbers.count(case.number("case", "nodes", "count")), "word"),
        Column("across nodes", lambda case: ", ".join(texts(case.result, "case", "nodes", "across")) or None, "word"),
        WORK,
        Column("global batch", lambda case: None if "batch" in case.work else numbers.count(case.global_batch), "word"),
        *(Column(factor_name(key), lambda case, key=key: factor_value(case.factors.get(key)), "word")
          for key in study.choices),
        Column("step" if study.machine else "step: median [95 % CI]",
               lambda case: numbers.between(case.step(), *map(case.step, INTERVAL))),  # fmt: skip
        SPEED,
        Column("baseline", lambda case: case.baseline and case.baseline.name, "text"),
        Column("speed-up", lambda case: numbers.times(case.speedup)),
        Column("efficiency", lambda case: numbers.percent(case.efficiency)),
        Column("standing", lambda case: case.standing, "word"),
        Column("corrected speed-up [95 % CI]", lambda case: numbers.between(*case.corrected, numbers.RATIO, 3)),
        Column("comm. + idle", lambda case: numbers.percent(case.share("communication", "idle"))),
        Column("MFU", lambda case: numbers.percent(case.derived("mfu"))),
        shown("memory", numbers.bytes_, f"memory.{'planned' if study.machine else 'measured'}_bytes"),
        Column("loss", lambda case: case.verdict, "word"),
    ]
    caption = (
        f"All {study.made} cases; the fastest of each amount of work is marked. Communication and idle time are those "
        f"of the {study.parted} steps. Memory is that of the rank that uses most."
    )
    if study.ratios and not study.machine:
        caption += (
            " The speed-up is samples/s over those of the baseline. The corrected one is the median over the rounds of "
            "both cases, each corrected for the speed of the machine."
        )
    return Table(study.measured, columns, caption, [work.best for work in study.works])


def rates(study):
    # A column has one unit, so that its numbers can be compared.
    factor, unit = numbers.unit_of([case.number("compute", "flops_per_second") for case in study.measured],
                                   numbers.FLOP_UNITS)  # fmt: skip

    def flops(value):
        return numbers.UNKNOWN if value is None else numbers.significant(value / factor)

    columns = [
        NAME,
        WORK,
        Column("ranks", lambda case: numbers.count(case.ranks)),
        shown(unit, flops, "compute.flops_per_second"),
        Column(f"GEMM peak, {unit}", lambda case: flops(case.derived("gemm_peak_flops_per_second"))),
        Column("MFU", lambda case: numbers.percent(case.derived("mfu"))),
        shown("of vendor peak", numbers.percent, "compute.vendor_mfu"),
        Column("GEMM share", lambda case: numbers.percent(_products(case))),
    ]
    caption = (
        "FLOPs of the model's matrix products, of all ranks together. The GEMM peak is the best that was measured on "
        "as many ranks for the type, and MFU the rate over it. The GEMM share is the part of the "
        f"{study.parted} step in matrix products."
    )
    return Table(study.measured, columns, caption, folded="FLOP rates")


def all_cases(study):
    columns = [
        Column("case", lambda case: case.id, "code"),
        Column("status", lambda case: case.status, "status"),
        SPEED,
        Column("reason", lambda case: case.reason, "text"),
        shown("attempt", numbers.count, "attempt"),
        shown("wall time", numbers.seconds, "wall_seconds"),
    ]
    return Table(study.cases, columns, "Every case of the study.")


def checkpoints(study):
    columns = [
        NAME,
        WORK,
        Column("async", lambda case: str(get(case.result, "checkpoint", "async") is True).lower(), "word"),
        shown("size", numbers.bytes_, "checkpoint.bytes"),
        shown("write", numbers.seconds, "checkpoint.write_seconds"),
        shown("write rate", numbers.rate, "checkpoint.write_bytes_per_second"),
        shown("training stops for", numbers.seconds, "checkpoint.exposed_seconds"),
        STEP,
        shown("step while writing", numbers.seconds, "checkpoint.step_seconds_while_writing"),
        shown("read", numbers.seconds, "checkpoint.read_seconds"),
        shown("read rate", numbers.rate, "checkpoint.read_bytes_per_second"),
    ]
    cases = [case for case in study.measured if number(case.result, "checkpoint", "bytes")]
    caption = "Medians on the slowest rank, for one checkpoint of each case. It was read right after it was written."
    return Table(cases, columns, caption)


def pipelines(study):
    columns = [
        NAME,
        WORK,
        shown("stages", numbers.count, "pipeline.stages"),
        shown("microbatches", numbers.count, "pipeline.microbatches"),
        STEP,
        shown("bubble of the schedule", numbers.percent, "pipeline.bubble"),
        Column("idle", lambda case: numbers.percent(case.share("idle"))),
        Column("live microbatches", lambda case: ", ".join(map(str, numbers_(case.result, *LIVE))), "word"),
        shown("activations", numbers.bytes_, "memory.parts.activations"),
    ]
    cases = [case for case in study.measured if number(case.result, "pipeline", "stages")]
    caption = (
        "The bubble is the part of a step in which a stage waits if backward passes take twice as long as forward "
        f"passes and messages take no time. Idle is that part in the {study.parted} steps, the mean over ranks. Live "
        "microbatches are listed by stage. Activations are those of the rank that needs most memory."
    )
    return Table(cases, columns, caption)


def traffic(study):
    columns = [
        Column("case", lambda row: row["case"], "code"),
        Column("axis", lambda row: text(row, "axis"), "word"),
        Column("operation", lambda row: text(row, "operation"), "word"),
        shown("group", numbers.count, "group_size"),
        shown("calls: planned", numbers.count, "planned_calls"),
        shown("measured", numbers.count, "measured_calls"),
        shown("payload: planned", numbers.bytes_, "planned_payload_bytes"),
        shown("measured", numbers.bytes_, "measured_payload_bytes"),
        shown("time a step", numbers.seconds, "seconds_per_step"),
        shown("wait a step", numbers.seconds, "wait_seconds_per_step"),
        shown("bus bandwidth", numbers.rate, "bus_bytes_per_second"),
    ]
    rows = [{**row, "case": case.id} for case in study.cases for row in case.traffic]
    caption = (
        f"Calls and payload are those of {'a step' if study.machine else 'the verification'}. Times are those of the "
        f"{study.parted} steps, without the wait for late ranks."
    )
    return Table(rows, columns, caption, folded="Traffic by axis and operation")


def _fits(fits, known, columns, caption):
    """Shows the numbers of each fit, or why it makes no sense."""
    columns = [*columns, Column("largest residual", lambda fit: numbers.percent(max(abs(fit.residuals)), 1))]
    columns = [Column(one.title, lambda fit, one=one: None if fit.problem else one.cell(fit)) for one in columns]
    known = [Column("axis", lambda fit: fit.axis, "code"), *known]
    columns.append(Column("why there is no fit", lambda fit: fit.problem, "text"))
    return Table(fits, known + columns, caption)


def amdahl(study):
    known = [
        Column("strategy", lambda fit: fit.cases[-1].strategy, "strategy"),
        Column("work", lambda fit: fit.cases[-1].work or None, "word"),
        Column("ranks", lambda fit: ", ".join(f"{case.ranks:g}" for case in fit.cases), "word"),
    ]
    columns = [
        Column("serial fraction s", lambda fit: numbers.percent(fit.a / (fit.a + fit.b), 1)),
        Column("T(1)", lambda fit: numbers.seconds(fit.a + fit.b)),
    ]
    caption = (
        "Amdahl's law T(p) = T(1)·(s + (1 − s)/p), fitted to the steps of cases in which only the size of one axis "
        "varies. A residual is the difference of a measured and a fitted step, over the measured one."
    )
    return _fits(amdahl_fits(study) if study.ratios else [], known, columns, caption)


def alpha_beta(study):
    columns = [
        Column("latency α", lambda fit: numbers.seconds(fit.a)),
        Column("bandwidth 1/β", lambda fit: numbers.rate(1 / fit.b if fit.b else None)),
    ]
    points = Column("points", lambda fit: numbers.count(len(fit.cases)))
    caption = "Seconds of a step = α · rounds + β · bytes on the wire, fitted to all collectives of an axis."
    return _fits(alpha_beta_fits(study) if study.ratios else [], [points], columns, caption)


def peers(study):
    """The same steps in other libraries, as scripts/peers.sh measures them: a row for each model, a column for each library."""
    rows = [row for row in table(study.peers, "peers") if positive(row, "ratio_to_tessera")]
    works, names = {}, dict.fromkeys(text(row, "name") or "" for row in rows)
    for row in rows:
        own = works.setdefault(str([row.get(key) for key in ("model", "ranks", "precision")]), {"": row})
        own[text(row, "name") or ""] = row

    def ratio(name):
        return lambda own: name in own and numbers.between(
            number(own[name], "ratio_to_tessera"), *[*numbers_(own[name], "ratio_in_rounds"), None, None][:2], numbers.RATIO, 3) or None  # fmt: skip

    # The first row of a work is the one that its ratios are to.
    columns = [Column(key, lambda own, key=key: text(own[""], key), "word") for key in ("model", "precision")]
    columns.insert(1, Column("ranks", lambda own: numbers.count(number(own[""], "ranks")), "word"))
    columns.append(Column("our step", lambda own: numbers.seconds(number(own[""], "step_seconds"))))
    columns += [Column(name, ratio(name)) for name in names if name not in {text(own[""], "name") for own in works.values()}]
    caption = (
        f"Steps of other libraries over our data-parallel step: above 1 × Tessera is faster. A ratio is the median of "
        f"{numbers.plural(min((len(numbers_(row, 'rounds')) for row in rows), default=0), 'round')}, in each of which all programs ran in "
        f"turn, with the smallest and the largest. Model, batch, initial weights and the losses of the first two steps are the "
        f"same. {', '.join(sorted({text(row, 'version') or '' for row in rows}))}, on "
        f"{text(study.peers, 'device_name') or 'an unknown device'} with "
        f"{numbers.plural(number(study.peers, 'threads_per_rank') or 1, 'thread')} per rank."
    )
    return Table(list(works.values()), columns, caption)
