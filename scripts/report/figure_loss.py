# SPDX-License-Identifier: Apache-2.0
"""The losses of all meshes over each other, and how far each is from the one-rank run."""

from matplotlib.ticker import MaxNLocator

from . import document as doc
from . import layout, style
from .fields import number, text
from .numbers import plural, power_of_ten
from .series import facets

FLOOR = 1e-9  # where differences of zero are drawn


def _groups(study):
    """(title, cases) for all cases that were held against the same losses of one rank."""
    titles = {}
    for facet in facets(study.cases, study.scaling):
        for case in facet.cases:
            titles.setdefault(case.id, facet.title)
    groups = {}
    for case in study.cases:
        if any(loss is not None for loss in case.losses("step_losses")):
            key = text(case.result, "loss", "reference") or titles[case.id]
            groups.setdefault(key, []).append(case)
    if not groups:
        raise layout.NothingToShow("no case has losses")
    return [(titles[cases[0].id], cases) for cases in groups.values()]


def _differences(case):
    """(step, relative difference) where both runs have a finite loss."""
    pairs = zip(case.losses("step_losses"), case.losses("reference_step_losses"))
    return [
        (step, max(FLOOR, abs(loss - other) / max(abs(other), 1e-300)))
        for step, (loss, other) in enumerate(pairs, 1)
        if loss is not None and other is not None
    ]


def _verdicts(cases):
    equal = sum(case.verdict == "equal" for case in cases)
    text_ = f"{equal} of {plural(len(cases), 'run')} equal to one rank"
    return text_ if equal == len(cases) else f"{text_}, {len(cases) - equal} not"


def losses(study):
    groups = _groups(study)
    figure, axes = layout.panels(2 * len(groups), 2.75, columns=2)
    everything = []
    for (title, cases), left, right in zip(groups, axes[::2], axes[1::2]):
        _curves(left, cases)
        left.set_title(f"{title}: loss" if title else "Loss")
        labels = _distance(right, cases)
        right.set_title(_verdicts(cases))
        last = max(len(case.losses("step_losses")) for case in cases)
        everything.append((right, labels, last))
    layout.strategy_legend(figure, [case for _, cases in groups for case in cases])
    layout.settle(figure)
    for axis, labels, last in everything:
        layout.label_ends(axis, labels, right=last)
    caption = (
        "Left: the loss of every step of the verification, all meshes over each other; the wide grey "
        "line is the run on one rank. Right: the relative difference from it; "
        "above the tolerance (dashed) a case is invalid, not slow. A curve that stops was no longer "
        "finite."
    )
    return doc.Figure("losses", "Losses", caption, figure)


def _curves(axis, cases):
    reference = next((c.losses("reference_step_losses") for c in cases
                      if c.losses("reference_step_losses")), [])  # fmt: skip
    points = [(step, loss) for step, loss in enumerate(reference, 1) if loss is not None]
    if points:
        axis.plot(*zip(*points), color=style.GRID[0], linewidth=9, solid_capstyle="round", zorder=1)
    for case in cases:
        points = [(s, v) for s, v in enumerate(case.losses("step_losses"), 1) if v is not None]
        axis.plot(*zip(*points), color=style.colour(case.strategy), linewidth=1.2,
                  marker=style.marker(case.strategy), markersize=3.5, markeredgewidth=0,
                  alpha=0.8, zorder=2)  # fmt: skip
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axis.set_xlabel("step")
    axis.set_ylabel("loss")


def _distance(axis, cases):
    labels = []
    for case in cases:
        points = _differences(case)
        if not points:
            continue
        colour = style.colour(case.strategy)
        bad = case.verdict not in ("equal", None)
        axis.plot(*zip(*points), color=colour, marker=style.marker(case.strategy), markersize=3.5,
                  markeredgewidth=0, linewidth=1.8 if bad else 0.8,
                  alpha=1.0 if bad else 0.6, zorder=3 if bad else 2)  # fmt: skip
        if bad:
            what = {"different": "differs", "not_finite": "not finite"}
            name = f"{case.strategy} {case.mesh}: {what.get(case.verdict, case.verdict)}"
            labels.append((*points[-1], name, colour))
    last = max((len(case.losses("step_losses")) for case in cases), default=1)
    tolerances = [number(case.result, "loss", "tolerance") for case in cases]
    tolerance = next((value for value in tolerances if value), None)
    if tolerance:
        axis.axhline(tolerance, color=style.BAD[0], linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
        axis.annotate(f"tolerance {power_of_ten(tolerance)}", (1, tolerance), xytext=(0, 3),
                      textcoords="offset points", size=8, color=style.BAD[0])  # fmt: skip
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, FLOOR * 0.7), max(high, (tolerance or FLOOR) * 10))
    layout.plain_log_axis(axis, lambda value: "0" if value <= FLOOR else power_of_ten(value), "y")
    axis.set_xlim(0.7, last + 0.3)
    ticks = MaxNLocator(8, integer=True).tick_values(1, last)
    axis.set_xticks([tick for tick in ticks if 1 <= tick <= last])
    axis.set_xlabel("step")
    axis.set_ylabel("relative difference")
    return labels
