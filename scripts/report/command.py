# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py."""

import argparse
import os
import sys
from pathlib import Path

from . import style
from .build import build
from .export import Export, build_export, is_export
from .output import write
from .study import ReportError, Study


def _say(text):
    try:
        print(text, flush=True)
    except OSError as error:
        # Python flushes the rest when it ends; discard it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReportError(f"cannot write to standard output: {error.strerror}") from error


def _report(options):
    output = options.output or Path(options.results) / "report"
    if is_export(options.results):
        export = Export(options.results)
        page = write(output, f"Training run: {export.kind}", build_export(export))
        _say(f"the report is {page}")
    else:
        study = Study(options.results)
        page = write(output, f"Scaling study: {study.name}", build(study, options.allow_mixed))
        _say(f"{len(study.measured)} of {len(study.cases)} cases {study.made}; the report is {page}")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Writes report.html, report.md and figures/ (SVG and PNG) from the results of "
        "tessera-bench. The page is one file and needs no network.",
    )
    parser.add_argument("results", metavar="RESULTS", help="directory that tessera-bench or tessera run --export wrote to")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="where to write (default: RESULTS/report)"
    )
    parser.add_argument(
        "--allow-mixed",
        action="store_true",
        help="print ratios even between cases of different revisions, builds, libraries or machines",
    )
    options = parser.parse_args(arguments)
    style.use()
    try:
        _report(options)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
