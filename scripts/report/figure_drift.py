# SPDX-License-Identifier: Apache-2.0
"""What the machine did while the study ran."""

import statistics

from . import document as doc
from . import layout, style
from .numbers import percent, plural


def drift(study):
    """The fixed kernels beside every round, over time: a panel for each number of ranks."""
    groups = {}
    for case in study.measured:
        for made in case.rounds:
            groups.setdefault(case.ranks, []).append((made, case.strategy))
    groups = {ranks: made for ranks, made in sorted(groups.items()) if len(made) > 1}
    if not groups:
        raise layout.NothingToShow("no number of ranks has two rounds to compare")
    longest = max(one.at for made in groups.values() for one, _ in made)
    unit, words = (1, "seconds") if longest < 300 else (60, "minutes")
    figure, axes = layout.panels(len(groups), 2.2, columns=3)
    for axis, (ranks, made) in zip(axes, groups.items()):
        typical = statistics.median(one.machine for one, _ in made)
        for one, strategy in made:
            look = {**style.mark(strategy, edge=0), "markersize": 4}
            axis.plot(one.at / unit, one.machine / typical, linestyle="none", **look)
        axis.axhline(1, color=style.REFERENCE[0], linewidth=0.9, zorder=0)
        axis.set_title(plural(int(ranks), "rank"))
        axis.set_xlabel(f"{words} since the launch began")
        axis.yaxis.set_major_formatter(lambda value, _: percent(value))
    axes[0].set_ylabel("time of the fixed kernels")
    layout.strategy_legend(figure, study.measured)
    caption = (
        "A small matrix product and a sweep through memory, run on the ranks of a case before and "
        "behind each round of its steps: their time over its median on as many ranks. It does not "
        "depend on the program. Where it is above 100 %, the machine was slower: comparisons are "
        "corrected for that."
    )
    return doc.Figure("drift", "Drift of the machine", caption, figure)
