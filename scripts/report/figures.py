# SPDX-License-Identifier: Apache-2.0
"""The figures of a study."""

from collections import defaultdict

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from . import drawing, style
from .contents import Figure
from .drawing import NothingToShow
from .fields import numbers, text
from .numbers import percent, plural, seconds, times
from .works import factor_name, factor_value, is_choice, lines_of, varied

SIZES = ("ranks", "global_batch", "batch_per_rank")
COSTS = ("distributed.mixed_precision", "training.activation_checkpointing")  # no choices, but compared
DASHES = ("-", "--", ":", "-.")  # for the settings of a strategy
FLOOR = 1e-9  # smaller differences are drawn here


def _contenders(work):
    """Returns the baselines, and the fastest case of each strategy on as many ranks as the fastest of all."""
    best = {case.strategy: case for case in sorted(work.measured, key=lambda case: case.samples_per_second)
            if case.ranks == work.best.ranks}  # fmt: skip
    found = {case.id: case for case in [*(case.baseline for case in work.measured), *best.values()] if case}
    return sorted((case for case in found.values() if case.phases and case.ranks), key=lambda case: case.order())


def breakdown(study):
    """Compares the time of all ranks for one sample, so that bars of ideal scaling are equally long."""
    # With several works, a row above the cases of each has its title.
    found = [(work.title, own) for work in study.works if (own := _contenders(work))]
    found = [(title, own) for title, own in found if len(own) > 1] or found
    rows = [row for title, own in found for row in ([title] if title else []) + own]
    if not rows:
        raise NothingToShow("no measured case has a breakdown")
    figure, (panel,) = drawing.panels(1, 0.6 + 0.24 * len(rows))
    longest = 0.0
    for row, case in enumerate(rows):
        if isinstance(case, str):
            continue
        end, base = 0.0, case.baseline or case
        scale = case.ranks / case.samples_per_second / ((base.ranks or case.ranks) / base.samples_per_second)
        for name, (_, colour) in style.PHASES.items():
            panel.barh(row, scale * case.share(name), left=end, height=0.78, color=colour)
            end += scale * case.share(name)
        panel.text(end, row, f"  {seconds(case.step())}", va="center", size=7.5, color=style.MUTED)
        longest = max(longest, end)
    drawing.rows_of(panel, rows)
    panel.set_xlim(0, 1.15 * longest)
    panel.xaxis.set_major_formatter(lambda value, _: percent(value))
    drawing.legend(figure, [Patch(facecolor=colour, label=words) for words, colour in style.PHASES.values()])
    caption = (
        "The baseline, and the fastest case of each strategy on as many ranks as the fastest of all. The length of a "
        "bar is ranks × step time for one sample, over that of the baseline (or of itself, without one): 200 % is an "
        "efficiency of 50 %. The step time stands beside it. The parts are those of the instrumented run, scaled to "
        "the measured step."
    )
    return Figure("breakdown", "Where the time goes", caption, figure)


def scaling(study):
    found = [(work, [case for case in work.measured if case.efficiency and case.ranks]) for work in study.works]
    found = [(work, cases) for work, cases in found if len({case.ranks for case in cases}) > 1]
    if not found:
        raise NothingToShow("no work has ratios on different numbers of ranks")
    figure, panels = drawing.panels(len(found), 2.6 if len(found) > 2 else 3.2, sharex=True, sharey=True)
    shown = {}  # settings -> what the legend shows
    for panel, (work, cases) in zip(panels, found):
        panel.axhline(1, **style.DASHED)
        for axis, line in lines_of(cases):
            strategy, name = line[-1].strategy, line[-1].name.replace(f" on {line[-1].mesh}", "")
            dashes = DASHES[sum(other.split(",")[0] == strategy for other in shown if other != name) % len(DASHES)]
            values = [case.efficiency for case in line]
            bars = [[abs(case.efficiency_at(end) - case.efficiency) for case in line]
                    for end in ("ci95_high", "ci95_low")]  # fmt: skip
            shown[name] = panel.errorbar([case.ranks for case in line], values, yerr=bars, capsize=2.5, label=name,
                                         linestyle=dashes if axis else "none", **style.mark(strategy))  # fmt: skip
        panel.set(xlabel="ranks", ylabel="efficiency", title=work.title)
        panel.label_outer()
    every = [case for _, cases in found for case in cases]
    lowest, highest = (choose(case.efficiency for case in every) for choose in (min, max))
    panels[0].set_ylim(0.85 * min(1, lowest), 1.15 * max(1, highest))
    drawing.log_axis(panels[0], "x", "{:g}".format, ticks=sorted({case.ranks for case in every}))
    drawing.log_axis(panels[0], "y", percent)
    drawing.legend(figure, list(shown.values()))
    kind = "T(p₀) ÷ T(p), of one batch per rank" if study.scaling == "weak" else "p₀·T(p₀) ÷ (p·T(p))"
    caption = (
        f"Efficiency {kind}, both axes logarithmic; the dashed line is ideal. Bars: the 95 % confidence interval of "
        "the step of the case. Points are joined where only the size of one axis differs."
    )
    return Figure("scaling", f"{study.scaling.capitalize()} scaling", caption, figure)


def comparisons(study, key):
    """Returns value -> [(case, its step and its memory over the smallest of its group)]. All other factors are equal
    in a group; strategies also differ in mesh, and each is on its fastest one."""
    groups = defaultdict(dict)
    for case in sorted(study.measured, key=lambda case: case.step()):
        rest = {k: v for k, v in case.factors.items() if k != key and (key, k) != ("strategy", "mesh")}
        # On one rank all strategies and meshes are the same.
        if key in case.factors and (case.ranks != 1 or key not in ("strategy", "mesh")):
            groups[repr(sorted(rest.items()))].setdefault(factor_value(case.factors[key]), case)
    found = {factor_value(case.factors[key]): [] for case in study.cases if key in case.factors}
    for own in [own for own in groups.values() if len(own) > 1]:
        memory = {value: case.number("memory", "planned_bytes") or 0 for value, case in own.items()}
        shortest, smallest = min(case.step() for case in own.values()), min(memory.values())
        for value, case in own.items():
            found[value].append((case, case.step() / shortest, memory[value] / smallest if smallest > 0 else None))
    return {value: own for value, own in found.items() if own}


def choices(study):
    keys = varied([case.factors for case in study.measured] if study.ratios else [])
    keys = [key for key in keys if (is_choice(key) and key not in SIZES) or key in COSTS]
    found = [(key, values) for key in keys if (values := comparisons(study, key))]
    if not found:
        raise NothingToShow("no factor has two values that may be compared, with all other factors equal")
    heights = [len(values) + 1.6 for _, values in found]
    figure, panels = drawing.panels(len(found), 0.32 * sum(heights) / len(found) + 0.3, columns=1, sharex=True,
                                    gridspec_kw={"height_ratios": heights})  # fmt: skip
    for panel, (key, values) in zip(panels, found):
        for row, own in enumerate(values.values()):
            for case, step, memory in own:
                panel.plot([step], [row - 0.15], linestyle="none", **style.mark(case.strategy))
                panel.plot([memory], [row + 0.15], linestyle="none", **style.mark(case.strategy, hollow=True))
        drawing.rows_of(panel, list(values))
        panel.set_title(factor_name(key))
        panel.tick_params(labelbottom=True)
    panels[0].set_xlim(0.97, 1.05 * panels[0].get_xlim()[1])
    if panels[0].get_xlim()[1] > 2:
        drawing.log_axis(panels[0], "x", times)
    panels[0].xaxis.set_major_formatter(lambda value, _: times(value))
    panels[-1].set_xlabel("step (filled) and memory (hollow), over the smallest with all other factors equal")
    drawing.legend(figure, drawing.marks([case for _, values in found for own in values.values() for case, *_ in own]))
    caption = (
        "A row for each value of a factor, and two marks for each case with it: its step and its planned memory. Marks "
        "at 1.00 × are the smallest among the cases that differ in this factor only. Strategies differ in mesh, too, "
        "and each is on its fastest one."
    )
    return Figure("choices", "What each choice costs", caption, figure)


def bubbles(study):
    cases = [case for case in study.measured if case.number("pipeline", "bubble") is not None and case.phases]
    if not cases:
        raise NothingToShow("no measured case has a pipeline")
    cases.sort(key=lambda case: (case.axes, text(case.result, "pipeline", "schedule") or "", case.name))
    figure, (panel,) = drawing.panels(1, 0.9 + 0.22 * len(cases))
    for row, case in enumerate(cases):
        planned, measured = case.number("pipeline", "bubble"), case.share("idle")
        panel.plot([planned, measured], [row, row], color=style.REFERENCE, linewidth=1)
        panel.plot([planned], [row], **style.mark(case.strategy, hollow=True))
        panel.plot([measured], [row], **style.mark(case.strategy))
    drawing.rows_of(panel, cases)
    panel.set_xlim(0, 1.05 * panel.get_xlim()[1])
    panel.xaxis.set_major_formatter(lambda value, _: percent(value))
    panel.set_xlabel("part of the step in which a stage waits")
    caption = (
        "Hollow marks show the bubble of the schedule, if backward passes take twice as long as forward passes and "
        "messages no time. Filled marks show the idle time of the instrumented run, the mean over ranks."
    )
    return Figure("bubbles", "Bubble, planned and measured", caption, figure)


def _differences(case):
    """Returns (step, relative difference from the reference) where both losses are finite."""
    pairs = zip(*(numbers(case.result, "loss", key) for key in ("step_losses", "reference_step_losses")))
    return [(step, max(FLOOR, abs(loss - reference) / max(abs(reference), 1e-300)))
            for step, (loss, reference) in enumerate(pairs, 1) if None not in (loss, reference)]  # fmt: skip


def losses(study):
    cases = [case for case in study.cases if _differences(case)]
    if not cases:
        raise NothingToShow("no case has losses and those of a reference")
    figure, (panel,) = drawing.panels(1, 3.0)
    for case in cases:
        bad = case.verdict not in ("equal", None)
        width, size = (1.8, 5) if bad else (0.7, 3)
        panel.plot(*zip(*_differences(case)), linewidth=width, **style.mark(case.strategy, size))
    tolerance = max(case.number("loss", "tolerance") or 0 for case in cases)
    if tolerance > 0:
        panel.axhline(tolerance, **{**style.DASHED, "color": style.BAD})
    panel.set_ylim(FLOOR / 1.5, 10 * max(tolerance, *(value for case in cases for _, value in _differences(case))))
    drawing.log_axis(panel, "y", lambda value: "0" if value <= FLOOR else f"{value:g}")
    panel.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    panel.set(xlabel="step", ylabel="relative difference")
    drawing.legend(figure, drawing.marks(cases))
    equal = sum(case.verdict == "equal" for case in cases)
    caption = (
        f"Difference of the loss from that of the reference, over the latter. {equal} of {plural(len(cases), 'case')} "
        f"are equal within the tolerance of {tolerance:g} (dashed). Thick lines are cases that are not; a "
        "line ends where the loss is no longer finite."
    )
    return Figure("losses", "Losses against the reference", caption, figure)
