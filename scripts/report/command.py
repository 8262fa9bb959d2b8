# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py, and the page that it puts together, from the answer to the provenance."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from . import answer, figures, growth, predictions, provenance, style, tables
from .contents import Figure, Points, Table, Text
from .drawing import NothingToShow
from .export import Export, build_export, is_export
from .fields import text
from .memory import build_timeline
from .numbers import plural
from .page import write
from .study import ReportError, Study

SECTIONS = {
    "": [answer.blocks, answer.caveats],
    "Does it scale?": [figures.scaling, growth.growth],
    "Where does the time go?": [figures.parts_of_time],
    "What does it cost?": [figures.costs, figures.node_hours, tables.fastest, tables.traffic],
    "Is the prediction good?": [figures.predicted, predictions.predictions],
    "Other libraries": [tables.peers],
    "All cases": [tables.measured, tables.unmeasured],
    "How it was measured": [provenance.method, provenance.machine_files],
    "Provenance": [provenance.differing, provenance.launches, provenance.configuration],
}


def build(study, allow_mixed=False):
    """Returns the sections of the page, each a title and its blocks. Computes ratios if the cases may be compared."""
    differing = provenance.mixed(study)
    if allow_mixed or not differing:
        study.compare()
    sections, left_out = {}, []
    for title, makers in SECTIONS.items():
        sections[title] = []
        for maker in makers:
            try:
                made = maker(study)
                sections[title] += made if isinstance(made, list) else [made]
            except NothingToShow as reason:
                left_out.append(f"{title.rstrip('?') or 'How certain this is'}: {reason}")
    sections["Left out"] = [Points("", list(dict.fromkeys(left_out)))] if left_out else []
    # Reading may have noted problems until here.
    sections[""][:0] = [*_subtitle(study), *_warnings(study, differing)]
    for title, blocks in sections.items():
        sections[title] = [one for one in blocks if not isinstance(one, Table) or one.rows]
        for one in sections[title] if study.machine else []:
            if isinstance(one, (Table, Figure)):
                # A table or figure may be copied to where nothing else says this.
                one.caption = f"Simulated on {study.machine}. {one.caption}"
            if isinstance(one, Figure):
                one.figure.supxlabel(f"simulated on {study.machine}", x=0.995, ha="right", fontsize=11)
    return {title: blocks for title, blocks in sections.items() if blocks}


def _subtitle(study):
    counts = Counter(case.status for case in study.cases)
    said = ", ".join(f"{counts[one]} {one}" for one in style.STATUSES if counts[one])
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
    if study.measured and not any(any(case.launches) for case in study.measured):
        said.append("No launch file shows where the numbers come from, so they may not be comparable.")
    problems = [Points("Files with problems", [f"{path}: {what}" for path, what in study.problems])]
    return [Text(one, "warning") for one in said] + (problems if study.problems else [])


def _report(options):
    """Returns the line for standard output."""
    first = options.results
    if Path(first).is_file():
        page = write(options.output or f"{first}.report", "Memory of a step", build_timeline(first))
        return f"the report is {page}"
    output = options.output or Path(first) / "report"
    if is_export(first):
        export = Export(first)
        page = write(output, f"Training run: {export.kind}", build_export(export))
        return f"the report is {page}"
    study = Study(first)
    title = f"{'Simulated study' if study.machine else 'Study'}: {study.name}"
    page = write(output, title, build(study, options.allow_mixed))
    return f"{len(study.measured)} of {len(study.cases)} cases {study.made}; the report is {page}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Writes a page, report.html, the same as RESULTS.md, and its figures as SVG and PNG.",
    )
    parser.add_argument("results", metavar="RESULTS", help="output directory of tessera-bench or tessera run --export, or file of tessera plan --timeline")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: RESULTS/report, or FILE.report)")
    parser.add_argument("--allow-mixed", action="store_true",
                        help="print ratios between cases of different programs or machines, too")  # fmt: skip
    options = parser.parse_args(arguments)
    style.use()
    try:
        said = _report(options)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        print(said, flush=True)
    except OSError as error:
        # Python flushes the rest when it ends; /dev/null takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
        return 1
    return 0
