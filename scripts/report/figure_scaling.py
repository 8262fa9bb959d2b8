# SPDX-License-Identifier: Apache-2.0
"""Speed-up and efficiency against the number of ranks, and speed against the global batch."""

from collections import Counter, defaultdict

from . import document as doc
from . import layout, style
from .numbers import percent, plural, significant
from .series import facets, series, strategy_order


def _side_by_side(case, span):
    """Where a case stands: strategies side by side, because their points are often in one place."""
    offset = max(-4, min(4, strategy_order(case.strategy)[0] - 2.5))
    return case.ranks * (span[-1] / span[0]) ** (0.007 * offset)


def _draw(axis, line, key, span):
    """Joined points with confidence bars."""
    values = [case.derived(key) for case in line.cases]
    bars = [
        [max(0, sign * ((case.derived(f"{key}_{end}") or value) - value))
         for case, value in zip(line.cases, values)]
        for end, sign in (("low", -1), ("high", 1))
    ]  # fmt: skip
    axis.errorbar([_side_by_side(case, span) for case in line.cases], values, yerr=bars,
                  linestyle="-" if line.axis else "none", capsize=2.5, elinewidth=1.1,
                  **style.mark(line.strategy, edge=0.7), zorder=3)  # fmt: skip


def _what_came_next(facet, last):
    """Why the line of a strategy ends before others do: ' (8: timeout)'."""
    later = [case for case in facet.cases if case.strategy == last.strategy and case.ranks]
    later = [case for case in later if case.ranks > last.ranks and case.status != "skipped"]
    if not later or any(case.ok for case in later):
        return ""
    first = min(later, key=lambda case: case.ranks)
    return f" ({first.ranks}: {first.status})"


def _labels(facet, lines, key, span):
    """The name at the last point of each line that reaches as many ranks as any of its strategy, with the
    mesh where a strategy has several of them."""
    most = {}
    for line in lines:
        most[line.strategy] = max(most.get(line.strategy, 0), line.cases[-1].ranks)
    lasts = {line.cases[-1].id: line.cases[-1] for line in lines}
    lasts = [case for case in lasts.values() if case.ranks == most[case.strategy]]
    number = Counter(case.strategy for case in lasts)
    for case in lasts:
        name = case.strategy if number[case.strategy] == 1 else f"{case.strategy} {case.mesh}"
        name += _what_came_next(facet, case)
        yield _side_by_side(case, span), case.derived(key), name, style.colour(case.strategy)


def _panels(study, key, height, ideal, **options):
    """The figure, its panels, and (facet, its cases that have the ratio) of each, for the facets with more
    than one number of ranks; `ideal` makes a value of the ranks over those of the baseline."""
    layout.needs_ratios(study)
    found = []
    for facet in facets(study.cases, study.scaling):
        cases = [case for case in facet.measured if case.derived(key) and case.ranks]
        if len({case.ranks for case in cases}) > 1:
            found.append((facet, cases))
    if not found:
        raise layout.NothingToShow("no work was measured on different numbers of ranks")
    figure, axes = layout.panels(len(found), height, **options)
    for axis, (facet, cases) in zip(axes, found):
        bases = [case.row.get("baseline_ranks") for case in cases]
        first = min([base for base in bases if base] or [case.ranks for case in cases])
        span = sorted({first, *(case.ranks for case in cases)})
        axis.plot(span, [ideal(ranks / first) for ranks in span], **style.DASHED)
        lines = series(cases)
        for line in lines:
            _draw(axis, line, key, span)
        layout.rank_axis(axis, span)
        axis.set_title(facet.title)
        end = (span[-1], ideal(span[-1] / first), "ideal", style.MUTED[0])
        layout.label_ends(axis, [*_labels(facet, lines, key, span), end])
    return figure, axes, found


def _baselines(study, found):
    bases = [study.baseline_of(case) for _, cases in found for case in cases]
    bases = list({base.id: base for base in bases if base}.values())
    many = len({base.global_batch for base in bases}) > 1
    parts = [
        f"{base.strategy} on {base.mesh}" + (f" for batch {base.global_batch:,}" if many else "")
        for base in bases
    ]
    return " and ".join(parts) or "the case named in the table of results"


def speedup(study):
    figure, axes, found = _panels(study, "speedup", 4.0, ideal=lambda ratio: ratio)
    for axis in axes:
        layout.log_axis(axis, "y", "{:g}".format, most=8, base=2)
        axis.set_ylabel("samples/s, times the baseline" if study.scaling == "weak" else "speed-up")
    caption = (
        "Both axes are logarithmic. Bars span the ratios of the ends of both 95 % confidence "
        "intervals; where none is seen, it is smaller than the mark. Points are joined where only the "
        "size of one axis varies; a line that ends early says what the next case came to. Strategies "
        f"stand a little apart, so that none hides another. Relative to {_baselines(study, found)}."
    )
    return doc.Figure("speedup", "Speed-up", caption, figure)


def efficiency(study):
    figure, axes, _ = _panels(study, "efficiency", 3.6, ideal=lambda _: 1.0, sharey=True)
    for axis in axes:
        axis.set_ylim(0, max(1.1, axis.get_ylim()[1]))
        axis.yaxis.set_major_formatter(lambda value, _: percent(value))
        axis.set_ylabel("efficiency")
    kind = "weak: T(p₀) ÷ T(p)" if study.scaling == "weak" else "strong: p₀·T(p₀) ÷ (p·T(p))"
    caption = f"Efficiency ({kind}), with bars and places as above; 100 % is ideal scaling."
    return doc.Figure("efficiency", "Efficiency", caption, figure)


def _batch_lines(study):
    """ranks -> lines of cases that differ in the batch alone, of two batches and more."""
    lines = defaultdict(list)
    for case in study.measured:
        if case.global_batch and case.samples_per_second and case.ranks:
            rest = repr(sorted(case.other_factors().items()))
            lines[case.strategy, case.mesh, rest].append(case)
    of_ranks = defaultdict(list)
    for cases in lines.values():
        if len({case.global_batch for case in cases}) > 1:
            cases.sort(key=lambda case: case.global_batch)
            of_ranks[cases[0].ranks].append(cases)
    if not of_ranks:
        raise layout.NothingToShow("no mesh was measured with different global batches")
    return of_ranks


def batch(study):
    if study.scaling == "weak":
        raise layout.NothingToShow("in weak scaling the global batch follows from the ranks")
    lines = _batch_lines(study)
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
