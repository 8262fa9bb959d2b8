# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py."""

import argparse
import os
import sys
from pathlib import Path

from . import style
from .build import build
from .drawing import NothingToShow
from .export import Export, build_export, is_export
from .growth import conditions
from .page import write
from .provenance import mixed
from .study import ReportError, Study


def _report(options):
    """Returns the line for standard output."""
    first, *others = options.results
    output = options.output or Path(first) / "report"
    if others:
        return _several(options)
    if is_export(first):
        export = Export(first)
        page = write(output, f"Training run: {export.kind}", build_export(export))
        return f"the report is {page}"
    study = Study(first)
    title = f"{'Simulated study' if study.machine else 'Study'}: {study.name}"
    page = write(output, title, build(study, options.allow_mixed), study)
    return f"{len(study.measured)} of {len(study.cases)} cases {study.made}; the report is {page}"


def _several(options):
    """Writes the figures of one study under several conditions."""
    if not options.output:
        raise ReportError("several directories need -o DIR")
    studies = [Study(one) for one in options.results]
    for study in studies:
        if (differing := mixed(study)) and not options.allow_mixed:
            raise ReportError(f"{study.directory}: cases differ in {', '.join(differing)}; --allow-mixed compares them")
    try:
        page = write(options.output, f"Study: {studies[0].name}, compared", {"": conditions(studies)})
    except NothingToShow as reason:
        raise ReportError(f"{', '.join(options.results)}: {reason}") from reason
    return f"{len(studies)} directories compared; the report is {page}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Writes a page, report.html, its tables as RESULTS.md, and its figures as SVG and PNG.",
    )
    parser.add_argument("results", metavar="RESULTS", nargs="+",
                        help="output directory of tessera-bench or tessera run --export; several directories of a study, "
                             "each under another condition, give a page of figures that compare them")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: RESULTS/report)")
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
