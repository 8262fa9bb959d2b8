# SPDX-License-Identifier: Apache-2.0
"""Speed-up and efficiency against the number of ranks."""

from collections import Counter

from . import document as doc
from . import layout, style
from .numbers import percent
from .series import facets, series, strategy_order

IDEAL = {"color": style.REFERENCE[0], "linewidth": 1.2, "linestyle": (0, (4, 3)), "zorder": 1}


def _facets_of(study):
    """(facet, its cases that have ratios), for the facets with more than one number of ranks."""
    layout.needs_ratios(study)
    found = []
    for facet in facets(study.cases, study.scaling):
        cases = [case for case in facet.measured if case.derived("speedup") and case.ranks]
        if len({case.ranks for case in cases}) > 1:
            found.append((facet, cases))
    if not found:
        raise layout.NothingToShow("no work was measured on different numbers of ranks")
    return found


def _side_by_side(ranks):
    """Where a case stands: strategies side by side, because their points are often in one place."""
    width = max(ranks) / min(ranks)

    def place(case):
        offset = max(-4, min(4, strategy_order(case.strategy)[0] - 2.5))
        return case.ranks * width ** (0.007 * offset)

    return place


def _draw(axis, lines, key, place=lambda case: case.ranks):
    """Joined points with confidence bars."""
    for line in lines:
        values = [case.derived(key) for case in line.cases]
        ends = [(case.derived(f"{key}_low"), case.derived(f"{key}_high")) for case in line.cases]
        below = [max(0, v - low) if low is not None else 0 for v, (low, _) in zip(values, ends)]
        above = [max(0, high - v) if high is not None else 0 for v, (_, high) in zip(values, ends)]
        axis.errorbar([place(case) for case in line.cases], values, yerr=[below, above],
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


def _labels(facet, lines, key, place):
    """The name at the last point of each line that reaches as many ranks as any of its strategy, with the
    mesh where a strategy has several of them."""
    most = {}
    for line in lines:
        most[line.strategy] = max(most.get(line.strategy, 0), line.cases[-1].ranks)
    lines = [line for line in lines if line.cases[-1].ranks == most[line.strategy]]
    number = Counter(line.strategy for line in lines)
    labels = {}
    for line in lines:
        last = line.cases[-1]
        name = line.strategy if number[line.strategy] == 1 else f"{line.strategy} {last.mesh}"
        name += _what_came_next(facet, last)
        labels[last.id] = (place(last), last.derived(key), name, style.colour(line.strategy))
    return list(labels.values())


def _baselines(study, found):
    names = {case.row.get("baseline"): None for _, cases in found for case in cases}
    bases = [base for base in map(study.by_id, names) if base]
    many = len({base.global_batch for base in bases}) > 1
    parts = [
        f"{base.strategy} on {base.mesh}" + (f" for batch {base.global_batch:,}" if many else "")
        for base in bases
    ]
    return " and ".join(parts) or "the case named in the table of results"


def _first_ranks(cases):
    """The ranks of the baseline, from which the ideal line starts."""
    bases = [case.row.get("baseline_ranks") for case in cases]
    return min([base for base in bases if base] or [case.ranks for case in cases])


def speedup(study):
    found = _facets_of(study)
    figure, axes = layout.panels(len(found), 4.0)
    for axis, (facet, cases) in zip(axes, found):
        first = _first_ranks(cases)
        span = sorted({first, *(case.ranks for case in cases)})
        ideal = [n / first for n in span]
        axis.plot(span, ideal, **IDEAL)
        axis.set_yscale("log", base=2)
        _draw(axis, series(cases), "speedup")
        values = [case.derived("speedup") for case in cases] + ideal
        axis.set_ylim(min(values) / 1.2, max(values) * 1.2)
        layout.powers_of_two_axis(axis.yaxis, min(values), max(values))
        axis.set_ylabel("samples/s, times the baseline" if study.scaling == "weak" else "speed-up")
        layout.rank_axis(axis, span)
        layout.title(axis, facet.title)
    _label(axes, found, "speedup", lambda first, last: last / first)
    caption = [
        "Both axes are logarithmic. Bars span the ratios of the ends of both 95 % confidence "
        "intervals; where none is seen, it is smaller than the mark. Points are joined where only the "
        "size of one axis varies; a line that ends early says what the next case came to. "
        f"Relative to {_baselines(study, found)}."
    ]
    return doc.Figure("speedup", "Speed-up", caption, figure)


def efficiency(study):
    found = _facets_of(study)
    figure, axes = layout.panels(len(found), 3.6, sharey=True)
    highest = max(case.derived("efficiency") or 0 for _, cases in found for case in cases)
    for axis, (facet, cases) in zip(axes, found):
        cases = [case for case in cases if case.derived("efficiency") is not None]
        span = sorted({_first_ranks(cases), *(case.ranks for case in cases)})
        axis.plot(span, [1.0] * len(span), **IDEAL)
        _draw(axis, series(cases), "efficiency", _side_by_side(span))
        axis.set_ylim(0, max(1.1, 1.08 * highest))
        axis.yaxis.set_major_formatter(lambda value, _: percent(value))
        axis.set_ylabel("efficiency")
        layout.rank_axis(axis, span)
        layout.title(axis, facet.title)
    _label(axes, found, "efficiency", lambda first, last: 1.0, beside=True)
    kind = "weak: T(p₀) ÷ T(p)" if study.scaling == "weak" else "strong: p₀·T(p₀) ÷ (p·T(p))"
    caption = [f"Efficiency ({kind}), with bars as above; 100 % is ideal scaling. "
               "Strategies stand a little apart, so that none hides another."]  # fmt: skip
    return doc.Figure("efficiency", "Efficiency", caption, figure)


def _label(axes, found, key, ideal, beside=False):
    layout.settle(axes[0].figure)
    for axis, (facet, cases) in zip(axes, found):
        cases = [case for case in cases if case.derived(key) is not None]
        ranks = [case.ranks for case in cases]
        place = _side_by_side(ranks) if beside else lambda case: case.ranks
        labels = _labels(facet, series(cases), key, place)
        last = max(case.ranks for case in cases)
        labels.append((last, ideal(_first_ranks(cases), last), "ideal", style.MUTED[0]))
        layout.label_ends(axis, labels)
