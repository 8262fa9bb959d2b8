# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py."""

import argparse
import os
import sys
from pathlib import Path

from . import style
from .build import build
from .export import Export, build_export, is_export
from .page import write
from .study import ReportError, Study


def _report(options):
    """Returns the line for standard output."""
    output = options.output or Path(options.results) / "report"
    if is_export(options.results):
        export = Export(options.results)
        page = write(output, f"Training run: {export.kind}", build_export(export))
        return f"the report is {page}"
    study = Study(options.results)
    title = f"{'Simulated study' if study.machine else 'Study'}: {study.name}"
    page = write(output, title, build(study, options.allow_mixed), study)
    return f"{len(study.measured)} of {len(study.cases)} cases {study.made}; the report is {page}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Writes a page, report.html, its tables as RESULTS.md, and its figures as SVG and PNG.",
    )
    parser.add_argument("results", metavar="RESULTS", help="output directory of tessera-bench or tessera run --export")
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
