# SPDX-License-Identifier: Apache-2.0
"""The tables of cases."""

from . import numbers
from .contents import Column, Table, shown
from .drawing import NothingToShow
from .fields import number, numbers as numbers_, positive, table, text, texts
from .works import Work, factor_name, factor_value

NAME = Column("case", lambda case: case.name, "text")
WORK = Column("work", lambda case: case.work or None, "text")


def step(case):
    """Returns the step with its interval, if the case was measured."""
    return numbers.between(case.step(), *(case.interval or (None, None))) if case.ok else None


def fastest(study):
    """A row for each number of ranks of each work."""
    if study.doubt:
        raise NothingToShow(f"times are not reliable, so no case is called the fastest: {study.doubt}")
    rows = [cases for work in study.works if study.ratios for cases in work.by_ranks().values()]

    def names(cases):
        own = [case.name for case in cases if case is cases[0] or Work.tied(case)]
        return own[0] if len(own) == 1 else f"no significant difference: {'; '.join(own)}"

    columns = [
        Column("ranks", lambda cases: numbers.count(cases[0].ranks)),
        Column("nodes", lambda cases: numbers.count(cases[0].number("case", "nodes", "count")), "word"),
        Column("work", lambda cases: cases[0].work or None, "text"),
        Column("fastest", names, "text"),
        Column("samples/s", lambda cases: numbers.significant(cases[0].samples_per_second, 4)),
        Column("node-hours for a million samples", lambda cases: numbers.significant(cases[0].node_hours)),
    ]
    caption = "The fastest case on each number of ranks, among all meshes. Rates are those of the case with the most samples/s."
    return Table(rows, columns, caption)


def measured(study):
    interval, corrected = ("", "") if study.machine else (" [95 % CI]", "corrected ")
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
        Column("status", lambda case: case.status, "word"),
        Column("step" if study.machine else "step: median [95 % CI]", step),
        Column("samples/s", lambda case: numbers.significant(case.samples_per_second, 4)),
        Column(f"{corrected}speed-up{interval}", lambda case: case.speedup and numbers.ratio(case.speedup)),
        Column(f"{corrected}efficiency", lambda case: numbers.percent(case.efficiency and case.efficiency.value)),
        Column(f"time over fastest{interval}", _behind),
        shown("bubble of the schedule", numbers.percent, "pipeline.bubble"),
        Column("idle", lambda case: numbers.percent(case.share("idle")) if case.number("pipeline", "bubble") is not None else None),
        Column("comm. + idle", lambda case: numbers.percent(case.share("communication", "idle"))),
        Column("MFU", lambda case: numbers.percent(case.derived("mfu"))),
        shown("of vendor peak", numbers.percent, "compute.vendor_mfu"),
        shown("memory", numbers.bytes_, f"memory.{'planned' if study.machine else 'measured'}_bytes"),
        shown("checkpoint", numbers.bytes_, "checkpoint.bytes"),
        shown("write", numbers.seconds, "checkpoint.write_seconds"),
        shown("write rate", numbers.rate, "checkpoint.write_bytes_per_second"),
        shown("training stops for", numbers.seconds, "checkpoint.exposed_seconds"),
        shown("read rate", numbers.rate, "checkpoint.read_bytes_per_second"),
        Column("loss", lambda case: text(case.result, "loss", "verdict"), "word"),
    ]
    how = "" if study.machine else " Both are corrected for the speed of the machine where the two cases have rounds in one launch."
    caption = (
        f"The speed-up, and with it the efficiency, is over {_baselines(study)}.{how} Time over fastest: for a sample, among the cases of the same work on as "
        f"many ranks. Communication and idle time are those of the {study.parted} steps. MFU is over the GEMM peak that was "
        "measured on as many ranks. Memory is that of the rank that uses most."
    )
    if any(case.number("pipeline", "bubble") is not None for case in study.measured):
        caption += " The bubble of the schedule is for backward passes that take twice as long as forward passes."
    best = [cases[0] for work in study.works for cases in work.by_ranks().values()
            if study.ratios and not study.doubt and len(cases) > 1 and not any(map(Work.tied, cases))]  # fmt: skip
    return Table(study.measured, columns, caption, best)


def unmeasured(study):
    """Failed, skipped and pending cases have reasons."""
    columns = [
        NAME,
        WORK,
        Column("status", lambda case: case.status, "status"),
        Column("reason", lambda case: case.reason, "text"),
        shown("crashes", lambda number: numbers.count(number or None), "crashes"),
        shown("wall time", numbers.seconds, "wall_seconds"),
    ]
    return Table([case for case in study.cases if not case.ok], columns, f"Cases that were not {study.made}.")


def _behind(case):
    return f"one program with {case.same_as.strategy}" if case.same_as else case.behind and numbers.ratio(case.behind)


def _baselines(study):
    found = {(case.baseline, case.work) for case in study.measured if case.baseline}
    said = [f"{base.name}{f' ({work})' if work else ''}, {numbers.seconds(base.step())} a step" for base, work in found]
    return "; ".join(sorted(said)) or "no case"


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
