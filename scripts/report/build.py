# SPDX-License-Identifier: Apache-2.0
"""The document, from the answer to the provenance."""

from collections import Counter

from . import answer, doubts, method, provenance, tables
from .document import Bold, Bullets, Code, Figure, Heading, Paragraph, Status, Table
from .explanation import accuracy
from .fields import text
from .figure_bandwidth import bandwidth
from .figure_cases import breakdown, distribution
from .figure_drift import drift
from .figure_fits import alpha_beta, amdahl
from .figure_heatmap import heatmap
from .figure_loss import losses
from .figure_pipeline import pipeline
from .figure_predicted import predicted
from .figure_scaling import batch, efficiency, speedup
from .layout import NothingToShow
from .numbers import plural
from .recomputation import recomputed
from .regret import regret
from .style import INK, STATUSES

# Sections of figures and of the tables behind them.
SECTIONS = {
    "Scaling": [speedup, efficiency, batch],
    "Strategies and meshes": [heatmap],
    "Where the time goes": [breakdown, pipeline, tables.pipelines, tables.phases, bandwidth],
    "Memory for time": [recomputed],
    "Checkpoints": [tables.checkpoints],
    "Plan and measurement": [accuracy, regret, predicted, tables.predictions, tables.traffic],
    "Is it right?": [losses],
    "Is it steady?": [drift, distribution, tables.steps],
    "Beside other libraries": [tables.peers],
    "Fits": [amdahl, tables.amdahl, alpha_beta, tables.alpha_beta],
}


def build(study, allow_mixed=False):
    """The blocks; sets study.ratios to whether cases may be compared."""
    differing = provenance.mixed(study)
    study.ratios = allow_mixed or not differing
    best = answer.best_case(study)
    kind = "Simulated scaling study" if study.machine else "Scaling study"
    blocks = [Heading(f"{kind}: {study.name}", 1), *_subtitle(study)]
    blocks.append(Paragraph(answer.lead(study, best), "lead"))
    top = len(blocks)
    if best is not None:
        blocks += [tables.tiles(study), tables.fastest(study)]
        if study.ratios:
            blocks += answer.why_others_lose(study, best)
    blocks += doubts.blocks(study)
    if study.measured:
        blocks += [Heading("Results"), tables.results(study)]
    blocks += _figures(study)
    blocks += [Heading("All cases"), tables.all_cases(study)]
    blocks += [Heading(f"How it was {study.made}"), *method.blocks(study)]
    blocks += [Heading("Provenance"), *provenance.blocks(study)]
    # The last block may still read a file and note a problem.
    blocks[top:top] = _warnings(study, differing)
    if study.machine:
        _mark_simulated(blocks, study.machine)
    return [block for block in blocks if not isinstance(block, Table) or block.rows]


def _mark_simulated(blocks, machine):
    """No table or picture may be taken for a measurement, wherever it is copied to."""
    mark = f"Simulated on {machine}."
    for block in blocks:
        if isinstance(block, (Table, Figure)):
            block.caption = f"{mark} {block.caption}".strip()
        if isinstance(block, Figure):
            block.title += " (simulated)"
            block.figure.supxlabel(mark, x=0.995, ha="right", fontsize=8, color=INK[0])


def _subtitle(study):
    counts = Counter(case.status for case in study.cases)
    parts = [plural(len(study.cases), "case") + ": "]
    for status in filter(counts.get, STATUSES):
        parts += [f"{counts[status]} ", Status(status), ", "]
    description, result = text(study.study, "description"), text(study.summary, "result")
    parts[-1:] = [". Result: ", Bold(result), "."] if result else ["."]
    blocks = [Paragraph(description)] if description else []
    return [*blocks, Paragraph(parts, "note")]


def _warnings(study, differing):
    blocks = []
    if study.machine:
        what = (
            f"Simulated on machine {study.machine}: times come from the plans of the cases and the "
            "machine's file. Nothing was run, and no loss was checked."
        )
        blocks.append(Paragraph(what, "warning"))
    if differing:
        what = "Measured cases differ in " + ", ".join(differing)
        end = (
            ". Ratios between them are printed because it was asked for (--allow-mixed); they compare "
            "more than the meshes."
            if study.ratios
            else ". No speed-up, efficiency, fit or other ratio between cases is printed; "
            "--allow-mixed prints them all the same."
        )
        blocks.append(Paragraph(what + end, "warning"))
    if study.measured and not any(case.launch for case in study.measured):
        what = "No launch file tells where the numbers come from: they may not be comparable."
        blocks.append(Paragraph(what, "warning"))
    if study.problems:
        blocks.append(Paragraph("Files that could not be used as they should be:", "warning"))
        blocks.append(Bullets([[Code(path), f": {what}"] for path, what in study.problems]))
    return blocks


def _figures(study):
    """Sections with their figures; what a study does not hold is said in one list at their end."""
    blocks, left_out = [], []
    for title, makers in SECTIONS.items():
        if study.machine and title == "Is it steady?":
            continue
        made = []
        for maker in makers:
            try:
                made.append(maker(study))
            except NothingToShow as reason:
                left_out.append(f"{maker.__name__.replace('_', ' ')}: {reason}")
        made = [block for block in made if not isinstance(block, Table) or block.rows]
        if made:
            blocks += [Heading(title), *made]
    if left_out:
        blocks += [Heading("Figures left out", 3), Bullets(left_out)]
    return blocks
