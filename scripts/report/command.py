# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py."""

import argparse
import sys
from pathlib import Path

from . import style
from .build import build
from .export import Export, build_export, is_export
from .output import write
from .study import ReportError, Study


def _report_export(options):
    export = Export(options.results)
    output = options.output or Path(options.results) / "report"
    print(f"the report is {write(output, f'Training run: {export.kind}', build_export(export))}")
    return 0


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
        if is_export(options.results):
            return _report_export(options)
        study = Study(options.results)
        blocks = build(study, options.allow_mixed)
        output = options.output or Path(options.results) / "report"
        page = write(output, f"Scaling study: {study.name}", blocks)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(study.measured)} of {len(study.cases)} cases {study.made}; the report is {page}")
    return 0
