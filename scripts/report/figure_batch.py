# SPDX-License-Identifier: Apache-2.0
"""Samples per second against the global batch, where a study varies it."""

from . import document as doc
from . import layout, style
from .numbers import significant
from .series import strategy_order


def _lines(study):
    """Cases that differ in the batch alone: (strategy, mesh) -> cases, for two batches and more."""
    lines = {}
    for case in study.measured:
        if case.global_batch and case.samples_per_second and case.ranks:
            rest = repr(sorted(case.other_factors().items()))
            lines.setdefault((case.strategy, case.mesh, rest), []).append(case)
    lines = [
        sorted(cases, key=lambda case: case.global_batch)
        for cases in lines.values()
        if len({case.global_batch for case in cases}) > 1
    ]
    if not lines:
        raise layout.NothingToShow("no mesh was measured with different global batches")
    return sorted(lines, key=lambda cases: (cases[0].ranks, strategy_order(cases[0].strategy)))


def batch(study):
    if study.scaling == "weak":
        raise layout.NothingToShow("in weak scaling the global batch follows from the ranks")
    lines = _lines(study)
    counts = sorted({cases[0].ranks for cases in lines})
    figure, axes = layout.panels(len(counts), 3.3, columns=3)
    everything = []
    for axis, ranks in zip(axes, counts):
        own = [cases for cases in lines if cases[0].ranks == ranks]
        labels = []
        for cases in own:
            strategy = cases[0].strategy
            points = [(case.global_batch, case.samples_per_second) for case in cases]
            axis.plot(*zip(*points), **style.mark(strategy), linewidth=1.5)
            several = sum(other[0].strategy == strategy for other in own) > 1
            name = f"{strategy} {cases[0].mesh}" if several else strategy
            labels.append((*points[-1], name, style.colour(strategy)))
        batches = [case.global_batch for cases in own for case in cases]
        layout.rank_axis(axis, batches)
        axis.set_xlabel("global batch (samples)")
        axis.set_ylabel("samples/s")
        layout.plain_log_axis(axis, significant, "y", most=5)
        axis.set_title(f"{ranks:g} rank" + ("s" if ranks > 1 else ""))
        everything.append((axis, labels))
    layout.settle(figure)
    for axis, labels in everything:
        layout.label_ends(axis, labels)
    caption = (
        "Samples per second against the global batch, both logarithmic; a line is one mesh, on which "
        "only the batch varies."
    )
    return doc.Figure("batch", "Global batch", caption, figure)
