# SPDX-License-Identifier: Apache-2.0
"""The figures of a study."""

from collections import defaultdict

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from . import drawing, style
from .contents import Figure
from .drawing import NothingToShow
from .fields import numbers, text
from .numbers import BYTE_UNITS, bytes_, count, percent, plural, seconds, times, unit_of
from .works import factor_name, factor_value, is_choice, lines_of, varied

SIZES = ("ranks", "global_batch", "batch_per_rank")
COSTS = ("distributed.mixed_precision",)  # no choices, but compared
FLOOR = 1e-9  # smaller differences are drawn here


def _contenders(work):
    """Returns the fastest case, the baselines, and the fastest of each strategy on the ranks that are explained."""
    best = {case.strategy: case for case in sorted(work.measured[::-1], key=lambda case: case.samples_per_second)
            if case.ranks == work.ranks}  # fmt: skip
    found = {case.id: case for case in [work.best, *(case.baseline for case in work.measured), *best.values()] if case}
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
        note = " (baseline)" if base is case else ""
        panel.text(end, row, f"  {seconds(case.step())}{note}", va="center", size=7.5, color=style.MUTED)
        longest = max(longest, end)
    drawing.rows_of(panel, rows)
    panel.set_xlim(0, 1.2 * longest)
    panel.xaxis.set_major_formatter(lambda value, _: percent(value))
    panel.set_xlabel("ranks × step for one sample, over that of the baseline")
    drawing.legend(figure, [Patch(facecolor=colour, label=words) for words, colour in style.PHASES.values()])
    caption = (
        "The baseline, and the fastest case of each strategy on as many ranks as the fastest of all, or on the most "
        "ranks if the baseline has as many, with their steps. A bar of 200 % is an efficiency of 50 %. A case without a "
        f"baseline is its own. The parts are those of the {study.parted} steps"
        + (", scaled to the measured step." if not study.machine else ".")
    )
    return Figure("breakdown", "Where the time goes", caption, figure)


def _fastest_by_ranks(work):
    """Returns the fastest case of each strategy on each number of ranks."""
    best = {}
    for case in sorted(work.measured, key=lambda case: case.samples_per_second):
        if case.efficiency and case.ranks:
            best[case.strategy, case.ranks] = case
    return list(best.values())


def scaling(study):
    found = [(work, _fastest_by_ranks(work)) for work in study.works]
    found = [(work, cases) for work, cases in found if len({case.ranks for case in cases}) > 2]
    if not found:
        raise NothingToShow("no work has ratios on three numbers of ranks or more")
    figure, panels = drawing.panels(len(found), 2.6 if len(found) > 2 else 3.2, sharex=True, sharey=True)
    strategies = sorted({case.strategy for _, cases in found for case in cases}, key=style.strategy_order)
    for panel, (work, cases) in zip(panels, found):
        panel.axhline(1, **style.DASHED)
        for axis, line in lines_of(cases):
            values = [case.efficiency for case in line]
            bars = [[abs(case.efficiency_at(end) - case.efficiency) for case in line]
                    for end in ("ci95_high", "ci95_low")]  # fmt: skip
            # Bars of several strategies stand side by side.
            beside = 1.012 ** (strategies.index(line[-1].strategy) - (len(strategies) - 1) / 2)
            panel.errorbar([case.ranks * beside for case in line], values, yerr=bars, capsize=2.5,
                           linestyle="-" if axis else "none", **style.mark(line[-1].strategy))  # fmt: skip
        panel.set(xlabel="ranks", ylabel="efficiency", title=work.title)
        panel.label_outer()
    every = [case for _, cases in found for case in cases]
    ends = [case.efficiency_at(end) for case in every for end in ("ci95_low", "ci95_high")]
    panels[0].set_ylim(0.85 * min(1, *ends), 1.15 * max(1, *ends))
    drawing.log_axis(panels[0], "x", count, ticks=sorted({case.ranks for case in every}))
    drawing.log_axis(panels[0], "y", percent)
    drawing.legend(figure, drawing.marks(every))
    bars = "" if study.machine else " Bars: the 95 % confidence interval of its step."
    kind = "T(p₀) ÷ T(p), of one batch per rank" if study.scaling == "weak" else "p₀·T(p₀) ÷ (p·T(p))"
    caption = (
        f"Efficiency {kind}, both axes logarithmic; the dashed line is ideal. A mark is the fastest case of its "
        f"strategy on as many ranks.{bars} Marks are joined where only the size of one axis differs."
    )
    return Figure("scaling", f"{study.scaling.capitalize()} scaling", caption, figure)


def comparisons(study, key):
    """Returns value -> [(case, its step and its memory over the smallest of its group)]. All other factors are equal
    in a group, but for those that follow from this one: each schedule may have its number of virtual stages.
    Strategies also differ in mesh, and each is on its fastest one."""
    groups = defaultdict(dict)
    follow = {"mesh"} if key == "strategy" else _followers([case.factors for case in study.measured], key)
    for case in sorted(study.measured, key=lambda case: case.step()):
        rest = {k: v for k, v in case.factors.items() if k != key and k not in follow}
        # On one rank all strategies and meshes are the same.
        if key in case.factors and (case.ranks != 1 or key not in ("strategy", "mesh")):
            groups[repr(sorted(rest.items()))].setdefault(factor_value(case.factors[key]), case)
    found = {factor_value(case.factors[key]): [] for case in study.cases if key in case.factors}
    for own in [own for own in groups.values() if len(own) > 1]:
        memory = {value: case.memory or 0 for value, case in own.items()}
        shortest, smallest = min(case.step() for case in own.values()), min(memory.values())
        for value, case in own.items():
            found[value].append((case, case.step() / shortest, memory[value] / smallest if smallest > 0 else None))
    return {value: own for value, own in found.items() if own}


def _followers(settings, key):
    """Returns the configuration keys that have one value for each value of `key`."""
    if "." not in key:
        return set()
    others = {other for one in settings for other in one if "." in other and other != key}
    return {other for other in others
            if len({repr((one[key], one.get(other))) for one in settings if key in one})
            == len({repr(one[key]) for one in settings if key in one})}  # fmt: skip


def choices(study):
    """Returns a figure for each factor."""
    keys = varied([case.factors for case in study.measured] if study.ratios else [])
    keys = [key for key in keys if (is_choice(key) and key not in SIZES) or key in COSTS]
    found = [(key, values) for key in keys if (values := comparisons(study, key))]
    if not found:
        raise NothingToShow("no factor has two values that may be compared, with all other factors equal")
    return [choice(f"choice-{number}", key, values) for number, (key, values) in enumerate(found, 1)]


def choice(name, key, values):
    """Draws what comparisons() returns for a factor."""
    figure, panels = drawing.panels(2, 0.7 + 0.3 * len(values), sharey=True)
    for row, own in enumerate(values.values()):
        for case, *ratios in own:
            for panel, ratio in zip(panels, ratios):
                panel.plot([ratio], [row], linestyle="none", **style.mark(case.strategy))
    for panel, title in zip(panels, ("step", "memory")):
        drawing.rows_of(panel, list(values))
        panel.set_xlim(0.97, max(1.05 * panel.get_xlim()[1], 1.1))
        if panel.get_xlim()[1] > 2:
            drawing.log_axis(panel, "x", times)
        else:
            panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        panel.xaxis.set_major_formatter(lambda value, _: times(value))
        panel.set_xlabel(f"{title} over the smallest, all else equal")
    panels[1].tick_params(labelleft=False)
    cases = [case for own in values.values() for case, *_ in own]
    if len({case.strategy for case in cases}) > 1 and key != "strategy":
        drawing.legend(figure, drawing.marks(cases))
    wins = [f"{value}: {sum(step == 1 for _, step, _ in own)} of {len(own)}" for value, own in values.items()]
    also = " Each strategy is on its fastest mesh." if key == "strategy" else ""
    caption = (
        f"Each mark is a case; 1.00 × is the smallest among the cases that differ in this factor only.{also} Memory is "
        f"planned. How often each has the shortest step, also as one of several: {'; '.join(wins)}."
    )
    return Figure(name, factor_name(key).capitalize(), caption, figure)


def pareto(study):
    """Compares time and memory of the cases on the ranks that are explained."""
    found = []
    for work in study.works if study.ratios else ():
        cases = [case for case in work.measured if case.ranks == work.ranks and case.memory]
        if len({case.memory for case in cases}) > 2:
            found.append((work, sorted(cases, key=lambda case: (case.step() / (case.global_batch or 1), case.memory))))
    if not found:
        raise NothingToShow("no work has three cases with different memory on as many ranks")
    figure, panels = drawing.panels(len(found), 2.6 if len(found) > 2 else 3.2)
    said = []
    for panel, (work, cases) in zip(panels, found):
        # The largest unit shows round numbers of bytes.
        factor, unit = unit_of([case.memory for case in cases], BYTE_UNITS)
        front = [case for number, case in enumerate(cases)
                 if all(case.memory < other.memory for other in cases[:number])]  # fmt: skip
        panel.plot([case.memory / factor for case in front], [case.step() for case in front], drawstyle="steps-post",
                   color=style.REFERENCE, linewidth=1, zorder=1)  # fmt: skip
        for case in sorted(cases, key=front.__contains__):
            mark = style.mark(case.strategy, hollow=case not in front)
            panel.plot([case.memory / factor], [case.step()], linestyle="none", **mark)
        panel.set(xlabel=f"memory of a rank, {unit}", ylabel="step", title=work.title)
        drawing.log_axis(panel, "x", "{:g}".format)
        drawing.log_axis(panel, "y", seconds)
        names = "; ".join(f"{case.name} ({seconds(case.step())}, {bytes_(case.memory)})"
                          for case in (front[:6] if len(found) == 1 else [front[0], *front[1:][-1:]]))  # fmt: skip
        said.append(f"{work.title}: {names}" if work.title else names)
    drawing.legend(figure, drawing.marks([case for _, cases in found for case in cases]))
    caption = (
        "Cases on as many ranks as the fastest, or on the most ranks if the baseline has as many. Filled marks are on "
        "the front: no other case is faster with as little memory. "
        f"{'The front, from the fastest on' if len(said) == 1 else 'Its ends'}: {'. '.join(said)}."
    )
    return Figure("pareto", "Time against memory", caption, figure)


def bubbles(study):
    cases = [case for case in study.measured if case.number("pipeline", "bubble") is not None and case.phases]
    if not cases:
        raise NothingToShow("no measured case has a pipeline")
    groups = defaultdict(list)
    for case in sorted(cases, key=lambda case: (_schedule(case), case.number("pipeline", "microbatches") or 0)):
        groups[(f"{case.work}: " if case.work else "") + f"{case.strategy} on {case.mesh}"].append(case)
    # A group of several cases has a row with its name.
    rows = sorted(groups.items(), key=lambda row: (-len(row[1]), row[0]))
    lines = [one for name, own in rows for one in [name] * (len(own) > 1) + own]
    alone = {own[0].id: f"{name}, " for name, own in rows if len(own) == 1}
    figure, (panel,) = drawing.panels(1, 0.9 + 0.22 * len(lines))
    for row, case in enumerate(lines):
        if isinstance(case, str):
            continue
        planned, measured = case.number("pipeline", "bubble"), case.share("idle")
        panel.plot([planned, measured], [row, row], color=style.REFERENCE, linewidth=1)
        panel.plot([planned], [row], **style.mark(case.strategy, hollow=True))
        panel.plot([measured], [row], **style.mark(case.strategy))
    drawing.rows_of(panel, lines, lambda case: alone.get(case.id, "")
                    + f"{_schedule(case)}, m = {case.number('pipeline', 'microbatches') or 0:g}")  # fmt: skip
    panel.set_xlim(0, 1.05 * panel.get_xlim()[1])
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    panel.xaxis.set_major_formatter(lambda value, _: percent(value))
    panel.set_xlabel("part of the step in which a stage waits")
    caption = (
        "Hollow marks show the bubble that is planned: of the schedule with m microbatches, if backward passes take "
        f"twice as long as forward passes and messages no time. Filled marks show the idle time of the {study.parted} "
        "steps, the mean over ranks."
    )
    return Figure("bubbles", f"Bubble, planned and {study.made}", caption, figure)


def _schedule(case):
    return text(case.result, "pipeline", "schedule") or "unknown"


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
    # Types of less precision have a larger one.
    tolerances = sorted({case.number("loss", "tolerance") or 0 for case in cases} - {0}) or [0]
    for tolerance in filter(None, tolerances):
        panel.axhline(tolerance, **{**style.DASHED, "color": style.BAD})
    panel.set_ylim(FLOOR / 1.5, 10 * max(tolerances[-1], *(value for case in cases for _, value in _differences(case))))
    drawing.log_axis(panel, "y", lambda value: "0" if value <= FLOOR else f"{value:g}")
    panel.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    panel.set(xlabel="step", ylabel="relative difference")
    drawing.legend(figure, drawing.marks(cases))
    equal = sum(case.verdict == "equal" for case in cases)
    caption = (
        f"Difference of the loss from that of the reference, over the latter. {equal} of {plural(len(cases), 'case')} "
        f"are equal within the tolerance of {' or '.join(f'{one:.3g}' for one in tolerances)} (dashed). Thick lines "
        "are cases that are not; a line ends where the loss is no longer finite."
    )
    return Figure("losses", "Losses against the reference", caption, figure)
