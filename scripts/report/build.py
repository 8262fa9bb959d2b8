# SPDX-License-Identifier: Apache-2.0
"""The document, from the answer to the provenance."""

from collections import Counter

from . import (
    answer,
    detail_tables,
    doubts,
    figure_bandwidth,
    figure_batch,
    figure_breakdown,
    figure_fits,
    figure_heatmap,
    figure_loss,
    figure_predicted,
    figure_scaling,
    figure_steps,
    layout,
    method,
    provenance,
    tables,
)
from . import document as doc
from .fields import text
from .numbers import plural

# Statuses in the order in which they are counted.
STATUSES = ("ok", "invalid", "oom", "timeout", "failed", "skipped", "pending", "running", "stale")


def build(study, allow_mixed=False):
    """The blocks; sets study.ratios to whether cases may be compared."""
    differing = provenance.mixed(study)
    study.ratios = allow_mixed or not differing
    best = answer.best_case(study)
    blocks = [doc.Heading(f"Scaling study: {study.name}", 1), *_subtitle(study)]
    blocks.append(doc.Paragraph(answer.lead(study, best), "lead"))
    blocks += _warnings(study, differing)
    if best is not None:
        blocks.append(answer.tiles(study, best))
        blocks += answer.per_facet(study)
        if study.ratios:
            blocks += answer.why_others_lose(study, best)
    blocks += doubts.blocks(study)
    if study.measured:
        blocks += [doc.Heading("Results"), tables.results(study)]
    blocks += _figures(study)
    blocks += [doc.Heading("All cases"), tables.all_cases(study)]
    blocks += [doc.Heading("How it was measured"), *method.blocks(study)]
    blocks += [doc.Heading("Provenance"), *provenance.blocks(study)]
    return blocks


def _subtitle(study):
    counts = Counter(case.status for case in study.cases)
    parts = [plural(len(study.cases), "case") + ": "]
    for status in sorted(counts, key=lambda s: STATUSES.index(s) if s in STATUSES else 99):
        parts += [f"{counts[status]} ", doc.Status(status), ", "]
    description = text(study.study, "description")
    blocks = [doc.Paragraph(description)] if description else []
    result = text(study.summary, "result")
    end = [". Result: ", doc.Bold(result), "."] if result else ["."]
    return blocks + [doc.Paragraph(parts[:-1] + end, "note")]


def _warnings(study, differing):
    blocks = []
    if differing:
        what = "Measured cases differ in " + ", ".join(differing)
        end = (
            ". Ratios between them are printed because it was asked for (--allow-mixed); they compare "
            "more than the meshes."
            if study.ratios
            else ". No speed-up, efficiency, fit or other ratio between cases is printed; "
            "--allow-mixed prints them all the same."
        )
        blocks.append(doc.Paragraph(what + end, "warning"))
    if study.measured and not any(case.launch for case in study.measured):
        what = "No launch file tells where the numbers come from: they may not be comparable."
        blocks.append(doc.Paragraph(what, "warning"))
    if study.problems:
        blocks.append(doc.Paragraph("Files that could not be used as they should be:", "warning"))
        blocks.append(doc.Bullets([[doc.Code(path), f": {what}"] for path, what in study.problems]))
    return blocks


def _figures(study):
    """Sections with their figures; what a study does not hold is said in one list at their end."""
    sections = [
        ("Scaling", [figure_scaling.speedup, figure_scaling.efficiency, figure_batch.batch]),
        ("Strategies and meshes", [figure_heatmap.heatmap]),
        (
            "Where the time goes",
            [figure_breakdown.breakdown, detail_tables.phases, figure_bandwidth.bandwidth],
        ),
        (
            "Plan and measurement",
            [figure_predicted.predicted, detail_tables.predictions, detail_tables.traffic],
        ),
        ("Is it right?", [figure_loss.losses]),
        ("Is it steady?", [figure_steps.distribution, detail_tables.steps]),
        (
            "Fits",
            [
                figure_fits.amdahl,
                detail_tables.amdahl,
                figure_fits.alpha_beta,
                detail_tables.alpha_beta,
            ],
        ),
    ]
    blocks, left_out = [], []
    for title, makers in sections:
        made = []
        for maker in makers:
            try:
                made.append(maker(study))
            except layout.NothingToShow as reason:
                left_out.append([f"{maker.__name__.replace('_', ' ')}: {reason}"])
        made = [block for block in made if not _empty(block)]
        if made:
            blocks += [doc.Heading(title), *made]
    if left_out:
        blocks += [doc.Heading("Figures left out", 3), doc.Bullets(left_out)]
    return blocks


def _empty(block):
    if isinstance(block, doc.Details):
        return all(_empty(inner) for inner in block.blocks)
    return isinstance(block, doc.Table) and not block.rows
