# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a document and writes its files."""

import re
from pathlib import Path

from . import document as doc
from . import drawing, html_page, layout, markdown_page
from .study import ReportError


def figures_of(blocks):
    return [block for block in blocks if isinstance(block, doc.Figure)]


def draw(blocks):
    for block in figures_of(blocks):
        layout.settle(block.figure)
        block.png = drawing.png(block.figure)
        block.svg = drawing.svg(
            block.figure, block.name, f"{block.title}. {doc.plain(block.caption)}"
        )


def write(directory, title, blocks):
    """Returns the files, the page first."""
    draw(blocks)
    directory = Path(directory)
    files = {"report.html": html_page.page(title, blocks), "report.md": markdown_page.page(blocks)}
    for block in figures_of(blocks):
        files[f"figures/{block.name}.svg"] = drawing.standalone(block.svg)
        files[f"figures/{block.name}.png"] = block.png
    try:
        _remove_earlier(directory, files)
        (directory / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _replace(directory / name, content)
    except OSError as error:
        raise ReportError(
            f"cannot write the report to {directory}: {error.strerror}; -o DIR puts it elsewhere"
        ) from error
    return [directory / name for name in files]


def _remove_earlier(directory, files):
    """Figures of an earlier report that this one does not have would be taken for its own."""
    earlier = directory / "report.md"
    if earlier.exists():
        for name in re.findall(r"\]\(figures/(\w+)\.png\)", earlier.read_text(encoding="utf-8")):
            for kind in ("png", "svg"):
                if f"figures/{name}.{kind}" not in files:
                    (directory / "figures" / f"{name}.{kind}").unlink(missing_ok=True)


def _replace(path, content):
    """Under a temporary name first, so that nobody reads half a file."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    temporary.replace(path)
