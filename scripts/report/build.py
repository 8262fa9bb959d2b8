# SPDX-License-Identifier: Apache-2.0
"""Puts the page together, from the answer to the provenance."""

import os
import sys
from collections import Counter
from time import monotonic

from . import answer, caveats, figures, growth, peers, predictions, provenance, tables
from .contents import Figure, Points, Table, Text
from .drawing import NothingToShow
from .fields import text
from .numbers import plural
from .style import STATUSES

SECTIONS = {
    "How certain this is": [answer.ties, caveats.caveats],
    "Why": [figures.breakdown, answer.reasons],
    "What to try next": [answer.untried],
    "Choices": [figures.choices, figures.scaling, growth.growth, figures.pareto],
    "Pipelines": [figures.bubbles, tables.pipelines],
    "Results": [tables.results, tables.rates],
    "Other libraries": [peers.peers],
    "Checkpoints": [tables.checkpoints],
    "Correctness": [figures.losses, tables.traffic],
    "Predictions": [predictions.predictions],
    "Fits": [tables.amdahl, tables.alpha_beta],
    "All cases": [tables.all_cases],
    "Provenance": [provenance.launches, provenance.configuration],
}


def build(study, allow_mixed=False):
    """Returns the sections of the page, each a title and its blocks. Computes ratios if the cases may be compared."""
    differing = provenance.mixed(study)
    if allow_mixed or not differing:
        study.compare()
    begin, sections, left_out = monotonic(), {"": answer.blocks(study)}, []
    for title, makers in SECTIONS.items():
        if monotonic() - begin > 2 and os.environ.get("TESSERA_PROGRESS") != "none":
            print(f"report.py: {title}", file=sys.stderr)
        sections[title] = []
        for maker in makers:
            try:
                made = maker(study)
                sections[title] += made if isinstance(made, list) else [made]
            except NothingToShow as reason:
                left_out.append(f"{title}: {reason}")
    sections["Left out"] = [Points("", left_out)] if left_out else []
    # Reading may have noted problems until here.
    sections[""][:0] = [*_subtitle(study), *_warnings(study, differing)]
    for title, blocks in sections.items():
        sections[title] = [one for one in blocks if not isinstance(one, Table) or one.rows]
        for one in sections[title] if study.machine else []:
            if isinstance(one, (Table, Figure)):
                # A table or figure may be copied to where nothing else says this.
                one.caption = f"Simulated on {study.machine}. {one.caption}"
            if isinstance(one, Figure):
                one.figure.supxlabel(f"simulated on {study.machine}", x=0.995, ha="right", fontsize=8)
    return {title: blocks for title, blocks in sections.items() if blocks}


def _subtitle(study):
    counts = Counter(case.status for case in study.cases)
    said = ", ".join(f"{counts[one]} {one}" for one in STATUSES if counts[one])
    result = text(study.summary, "result")
    said = f"{plural(len(study.cases), 'case')}: {said}"
    parts = [text(study.study, "description"), said, result and f"Result: {result}"]
    return [Text(". ".join(part.rstrip(".") for part in parts if part) + ".", "note")]


def _warnings(study, differing):
    said = []
    if study.machine:
        said.append(f"Simulated on the machine {study.machine}. Nothing was run, and no loss was checked.")
    if differing and study.ratios:
        said.append(f"Measured cases differ in {', '.join(differing)}. Ratios compare more than the meshes.")
    elif differing:
        said.append(f"Measured cases differ in {', '.join(differing)}. No ratio is printed; --allow-mixed prints them.")
    if study.measured and not any(case.launch for case in study.measured):
        said.append("No launch file shows where the numbers come from, so they may not be comparable.")
    problems = [Points("Files with problems", [f"{path}: {what}" for path, what in study.problems])]
    return [Text(one, "warning") for one in said] + (problems if study.problems else [])
