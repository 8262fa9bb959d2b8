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
        if _finite(case.losses("step_losses")):
            key = text(case.result, "loss", "reference") or titles[case.id]
            groups.setdefault(key, []).append(case)
    if not groups:
        raise layout.NothingToShow("no case has losses")
    return [(titles[cases[0].id], cases) for cases in groups.values()]


def _finite(values):
    """(step, value) without those that are none."""
    return [(step, value) for step, value in enumerate(values, 1) if value is not None]


def _differences(case):
    """(step, relative difference) where both runs have a finite loss."""
    reference = dict(_finite(case.losses("reference_step_losses")))
    return [
        (step, max(FLOOR, abs(loss - reference[step]) / max(abs(reference[step]), 1e-300)))
        for step, loss in _finite(case.losses("step_losses"))
        if step in reference
    ]


def _verdicts(cases):
    equal = sum(case.verdict == "equal" for case in cases)
    words = f"{equal} of {plural(len(cases), 'run')} equal to one rank"
    return words if equal == len(cases) else f"{words}, {len(cases) - equal} not"


def losses(study):
    groups = _groups(study)
    figure, axes = layout.panels(2 * len(groups), 2.75)
    for (title, cases), left, right in zip(groups, axes[::2], axes[1::2]):
        _curves(left, cases)
        left.set_title(f"{title}: loss" if title else "Loss")
        _distances(right, cases)
        right.set_title(_verdicts(cases))
        for axis, label in ((left, "loss"), (right, "relative difference")):
            axis.set_xlim(0.7, max(len(case.losses("step_losses")) for case in cases) + 0.3)
            axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))
            axis.set_xlabel("step")
            axis.set_ylabel(label)
    layout.strategy_legend(figure, [case for _, cases in groups for case in cases])
    caption = (
        "Left: the loss of every step of the verification, all meshes over each other; the wide grey "
        "line is the run on one rank. Right: the relative difference from it; "
        "above the tolerance (dashed) a case is invalid, not slow. A curve that stops was no longer "
        "finite."
    )
    if any(case.losses("validation_losses") for _, cases in groups for case in cases):
        caption += " Dashed, with hollow marks: the loss of samples that no step has seen."
    return doc.Figure("losses", "Losses", caption, figure)


def _mark(case):
    return {**style.mark(case.strategy, 0.55), "markeredgewidth": 0}


def _curves(axis, cases):
    references = [_finite(case.losses("reference_step_losses")) for case in cases]
    reference = next(filter(None, references), None)
    if reference:
        axis.plot(*zip(*reference), color=style.GRID[0], linewidth=9, solid_capstyle="round",
                  zorder=1)  # fmt: skip
    for case in cases:
        points = _finite(case.losses("step_losses"))
        axis.plot(*zip(*points), linewidth=1.2, alpha=0.8, zorder=2, **_mark(case))
        unseen = [
            (step, loss)
            for step, loss in zip(case.losses("validated_at_steps"), case.losses("validation_losses"))
            if loss is not None
        ]
        if unseen:
            hollow = {**_mark(case), "markerfacecolor": "white", "markeredgewidth": 1.2}
            axis.plot(*zip(*unseen), linewidth=1.0, linestyle="--", zorder=3, **hollow)


def _distances(axis, cases):
    words = {"different": "differs", "not_finite": "not finite"}
    for case in cases:
        points = _differences(case)
        if not points:
            continue
        bad = case.verdict not in ("equal", None)
        axis.plot(*zip(*points), linewidth=1.8 if bad else 0.8,
                  alpha=1.0 if bad else 0.6, zorder=3 if bad else 2, **_mark(case))  # fmt: skip
        if bad:
            name = f"{case.strategy} {case.mesh}: {words.get(case.verdict, case.verdict)}"
            layout.label_ends(axis, [(*points[-1], name, style.colour(case.strategy))])
    tolerances = [number(case.result, "loss", "tolerance") for case in cases]
    tolerance = next(filter(None, tolerances), None)
    if tolerance:
        axis.axhline(tolerance, **{**style.DASHED, "color": style.BAD[0]})
        axis.annotate(f"tolerance {power_of_ten(tolerance)}", (1, tolerance), xytext=(0, 3),
                      textcoords="offset points", size=8, color=style.BAD[0])  # fmt: skip
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, FLOOR * 0.7), max(high, (tolerance or FLOOR) * 10))
    layout.log_axis(axis, "y", lambda value: "0" if value <= FLOOR else power_of_ten(value))
