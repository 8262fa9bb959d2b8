# SPDX-License-Identifier: Apache-2.0
"""Samples per second against the global batch, where a study varies it."""

from collections import Counter, defaultdict

from . import document as doc
from . import layout, style
from .numbers import plural, significant
from .series import strategy_order


def _lines(study):
    """ranks -> lines of cases that differ in the batch alone, of two batches and more."""
    lines = defaultdict(list)
    for case in study.measured:
        if case.global_batch and case.samples_per_second and case.ranks:
            rest = repr(sorted(case.other_factors().items()))
            lines[case.strategy, case.mesh, rest].append(case)
    of_ranks = defaultdict(list)
    for cases in sorted(lines.values(), key=lambda cases: strategy_order(cases[0].strategy)):
        if len({case.global_batch for case in cases}) > 1:
            cases.sort(key=lambda case: case.global_batch)
            of_ranks[cases[0].ranks].append(cases)
    if not of_ranks:
        raise layout.NothingToShow("no mesh was measured with different global batches")
    return of_ranks


def batch(study):
    if study.scaling == "weak":
        raise layout.NothingToShow("in weak scaling the global batch follows from the ranks")
    lines = _lines(study)
    figure, axes = layout.panels(len(lines), 3.3, columns=3)
    for axis, (ranks, own) in zip(axes, sorted(lines.items())):
        number = Counter(cases[0].strategy for cases in own)
        labels = []
        for cases in own:
            strategy = cases[0].strategy
            points = [(case.global_batch, case.samples_per_second) for case in cases]
            axis.plot(*zip(*points), **style.mark(strategy), linewidth=1.5)
            name = f"{strategy} {cases[0].mesh}" if number[strategy] > 1 else strategy
            labels.append((*points[-1], name, style.colour(strategy)))
        batches = [case.global_batch for cases in own for case in cases]
        layout.rank_axis(axis, batches, "global batch (samples)")
        layout.log_axis(axis, "y", significant, most=5)
        axis.set_ylabel("samples/s")
        axis.set_title(plural(int(ranks), "rank"))
        layout.label_ends(axis, labels)
    caption = (
        "Samples per second against the global batch, both logarithmic; a line is one mesh, on which "
        "only the batch varies."
    )
    return doc.Figure("batch", "Global batch", caption, figure)
