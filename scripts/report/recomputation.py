# SPDX-License-Identifier: Apache-2.0
"""What it saves in memory and costs in time to compute activations again for the backward pass."""

import statistics

from . import numbers
from .document import Column, Table
from .tables import CASE, STEP, other_factors

FACTOR = "training.activation_checkpointing"
ACTIVATIONS, ALL = ("memory", "parts", "activations"), ("memory", "planned_bytes")
PREDICTED = ("prediction", "step_seconds")


def _without(case):
    """Its factors but for the one in question."""
    return {key: value for key, value in case.factors.items() if key != FACTOR}


def pairs(study):
    """(case, the same case that computes nothing again); the latter, first, is its own partner.
    It need not have run: a plan that exceeds the memory is one to compare with."""
    found = []
    for keeps in study.cases:
        if keeps.factors.get(FACTOR) != "none" or keeps.number(*ALL) is None:
            continue
        others = [case for case in study.measured if case is not keeps and FACTOR in case.factors
                  and _without(case) == _without(keeps)]  # fmt: skip
        found += [(case, keeps) for case in [keeps, *others] if others]
    return found


def _relative(pair, path):
    """The number of the case over that of its partner; None for the partner itself."""
    own, other = (case.number(*path) for case in pair)
    return own / other if pair[0] is not pair[1] and own is not None and other else None


def _of_case(column):
    return Column(column.title, lambda pair: column.cell(pair[0]), column.kind)


def _bytes(path):
    return lambda pair: numbers.bytes_(pair[0].number(*path))


def _saved(path):
    def cell(pair):
        part = _relative(pair, path)
        if part is None:
            return None
        saved = pair[1].number(*path) - pair[0].number(*path)
        return f"{numbers.bytes_(saved)} ({numbers.percent(1 - part)})".replace("-", "−")

    return cell


def _measured(pair):
    """Round by round, as the machine's speed changes between rounds."""
    rounds = zip(pair[0].rounds, pair[1].rounds)
    ratios = [own.seconds / other.seconds for own, other in rounds if own.launch == other.launch]
    return statistics.median(ratios) if ratios else None


def _added(ratio):
    def cell(pair):
        # A step that was not measured to the end, or is wrong, is not compared with.
        found = ratio(pair) if pair[0] is not pair[1] and pair[1].ok else None
        return None if found is None else numbers.signed_percent(found - 1, ".0f")

    return cell


def recomputed(study):
    columns = [
        _of_case(CASE),
        *map(_of_case, other_factors(study)),
        Column("activations", _bytes(ACTIVATIONS)),
        Column("activations saved", _saved(ACTIVATIONS)),
        Column("all memory", _bytes(ALL)),
        Column("memory saved", _saved(ALL)),
        _of_case(STEP),
    ]
    if study.ratios:
        columns += [
            Column("added to the step", _added(_measured)),
            Column("added, predicted", _added(lambda pair: _relative(pair, PREDICTED))),
        ]
    caption = (
        "Cases that compute activations again, against the same case with none of it. Memory: of the "
        "rank that needs most, as planned, which is also what was measured. Added to the step: median "
        "over the rounds."
    )
    return Table(pairs(study), columns, caption)
