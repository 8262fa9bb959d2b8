# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a document and writes its files."""

import re
from pathlib import Path

from . import drawing, html_page
from .document import Figure
from .files import read_text, replace
from .study import ReportError


def figures_of(blocks):
    return [block for block in blocks if isinstance(block, Figure)]


def write(directory, title, blocks):
    """Returns the path of the page."""
    directory = Path(directory)
    files = {}
    for figure in figures_of(blocks):
        drawing.draw(figure)
        files[f"figures/{figure.name}.svg"] = drawing.standalone(figure.svg)
        files[f"figures/{figure.name}.png"] = figure.png
    files["report.md"] = "\n\n".join(block.markdown() for block in blocks) + "\n"
    files["report.html"] = html_page.page(title, blocks)
    try:
        _remove_earlier(directory, files)
        (directory / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            replace(directory / name, content)
    except OSError as error:
        raise ReportError(
            f"cannot write the report to {directory}: {error.strerror}; -o DIR puts it elsewhere"
        ) from error
    return directory / "report.html"


def _remove_earlier(directory, files):
    """Figures of an earlier report that this one does not have would be taken for its own."""
    earlier = directory / "report.md"
    text = read_text(earlier) if earlier.exists() else ""
    for png in set(re.findall(r"\]\((figures/\w+\.png)\)", text)) - files.keys():
        (directory / png).unlink(missing_ok=True)
        (directory / png).with_suffix(".svg").unlink(missing_ok=True)
