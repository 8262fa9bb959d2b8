# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/report.py."""

import argparse
import sys
from pathlib import Path

from . import style
from .build import build
from .output import write
from .study import ReportError, Study


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Writes report.html, report.md and figures/ (SVG and PNG) from the results of "
        "tessera-bench. The page is one file and needs no network.",
    )
    parser.add_argument("results", metavar="RESULTS", help="directory that tessera-bench wrote to")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="where to write (default: RESULTS/report)"
    )
    parser.add_argument(
        "--allow-mixed",
        action="store_true",
        help="print ratios even between cases of different revisions, builds, libraries or machines",
    )
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    style.use()
    try:
        study = Study(options.results)
        blocks = build(study, options.allow_mixed)
        output = Path(options.output) if options.output else Path(options.results) / "report"
        files = write(output, f"Scaling study: {study.name}", blocks)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    measured = f"{len(study.measured)} of {len(study.cases)} cases measured"
    print(f"{measured}; the report is {files[0]}")
    return 0
