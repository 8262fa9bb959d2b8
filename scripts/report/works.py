# SPDX-License-Identifier: Apache-2.0
"""Groups cases that do the same work, because only these may compete."""

from collections import defaultdict

from .case import Case
from .fields import text

SMALLEST = 1.03  # smaller ratios are never significant


def is_choice(key):
    """True for a factor that leaves the work as it is, as in bench/results/scaling.cpp."""
    is_distributed = key.startswith("distributed.") and key != "distributed.mixed_precision"
    return "." not in key or is_distributed or key == "training.activation_checkpointing"


def factor_name(key):
    """'distributed.virtual_stages' -> 'virtual stages', 'model.kind' -> 'model'"""
    return key.removesuffix(".kind").rpartition(".")[2].replace("_", " ")


def factor_value(value):
    """Returns None for a factor that a case does not have."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, (int, float)) else None if value is None else str(value)


def shown_factors(factors, keys):
    """'microbatches 8, schedule 1f1b', without the factors that a case does not have."""
    known = [key for key in keys if factors.get(key) is not None]
    return ", ".join(f"{factor_name(key)} {factor_value(factors[key])}" for key in known)


def varied(settings):
    """Returns the keys whose values are not the same in all of the settings."""
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1]


def find_same_programs(cases):
    """On one rank all strategies and meshes are one program. The summary names the case that stands for the others."""
    by_id = {case.id: case for case in cases}
    for case in cases:
        case.same_as = by_id.get(text(case.row, "same_program_as")) if case.ok else None


def unit_of(cases):
    """Returns what speed-ups are relative to: "core" if the study gives threads to ranks, else "rank"."""
    return "core" if any("distributed.threads" in case.factors for case in cases) else "rank"


class Work:
    """The cases that do one amount of work. Cases that are one program on one rank count once."""

    def __init__(self, title, cases):
        self.title, self.cases = title, sorted(cases, key=Case.order)
        self.measured = [case for case in self.cases if case.ok and not case.same_as]
        self.unit = unit_of(cases)
        for case in cases:
            case.work = title

    def by_ranks(self, number="ranks"):
        """Returns ranks -> measured cases, the fastest first; or cores -> cases."""
        found = defaultdict(list)
        for case in sorted(self.measured, key=lambda case: (case.ranks or 0, -case.samples_per_second)):
            if case.ranks:
                found[getattr(case, number)].append(case)
        return found

    def fastest_of_strategies(self):
        """Returns cores -> the fastest measured case of each strategy, in the order of strategies."""
        found = {}
        for cores, cases in sorted(self.by_ranks("cores").items()):
            best = {case.strategy: case for case in sorted(cases, key=lambda case: case.samples_per_second)}
            found[cores] = sorted(best.values(), key=Case.order)
        return found

    def compare(self):
        """Computes the ratios to the fastest case on as many ranks."""
        for fastest, *others in self.by_ranks().values():
            for case in others:
                case.behind = case.over(fastest)

    @staticmethod
    def tied(case):
        """True if it may be as fast as the fastest one on as many ranks."""
        return case.behind is not None and (case.behind.low is None or case.behind.low < SMALLEST)


def _batch(case, scaling):
    """Returns what of the batch belongs to the work: in weak scaling the batch of a rank, whichever of the two the study gives."""
    if scaling != "weak":
        return {"global_batch": case.factors.get("global_batch")}
    batch = case.global_batch / case.ranks if case.global_batch and case.ranks else None
    return {"batch_per_rank": int(batch) if batch and batch.is_integer() else batch}


def works_of(cases, scaling):
    """Returns the works in the order of the cases. A title names as few factors as tell the works apart."""
    settings = [{**_batch(case, scaling), **{k: v for k, v in case.other_factors().items() if not is_choice(k)}}
                for case in cases]  # fmt: skip
    keys = sorted(varied(settings), key=lambda key: key != "model.kind")
    distinct = len({repr(one) for one in settings})
    for key in reversed(keys):
        fewer = [other for other in keys if other != key]
        if len({shown_factors(one, fewer) for one in settings}) == distinct:
            keys = fewer
    found = defaultdict(list)
    for case, one in zip(cases, settings):
        # A work may have none of the factors, because another grid gave them.
        found[shown_factors(one, keys) or ("all other cases" if distinct > 1 else "")].append(case)
    return [Work(title, own) for title, own in found.items()]
