# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a report: report.html, RESULTS.md and figures/."""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, pass_eval_context

from . import drawing, numbers, style
from .contents import Figure
from .fields import number
from .files import replace
from .study import ReportError

# Patterns of the names of all figures.
NAMES = ("breakdown", "choice-*", "scaling", "growth-*", "pareto", "bubbles", "losses", "predictions", "routers")


UNIT = re.compile(r"(?<=[\d,]) (?=([%×]|[nmµ]?s|[kKMGT]?i?B(/s)?|[kMGTP]?FLOP/s|samples/s)(?!\w)|[\d.,]+\])")


@pass_eval_context
def _bound(context, value):
    """Keeps numbers of the page on one line with their units, and the ends of an interval."""
    return UNIT.sub("\u00a0", value) if context.autoescape and type(value) is str else value


def _markdown(cell):
    """Escapes what would be markup or end a cell of a Markdown table."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", cell).replace("\n", " ")


def write(directory, title, sections, study=None):
    """Draws the figures, renders the templates and returns the path of the page."""
    directory, files = Path(directory), {}
    for figure in [one for blocks in sections.values() for one in blocks if isinstance(one, Figure)]:
        drawing.draw(figure)
        files[f"figures/{figure.name}.svg"] = figure.svg
        files[f"figures/{figure.name}.png"] = figure.png
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), trim_blocks=True,
                            lstrip_blocks=True, finalize=_bound,
                            autoescape=lambda name: name.endswith(".html"))  # fmt: skip
    templates.filters["markdown"] = _markdown
    templates.filters["setting"] = lambda path: number(study.study, *path.split("."))
    values = {"title": title, "sections": sections, "study": study, "style": style, "numbers": numbers}
    for name in ("report.html", "RESULTS.md") if study else ("report.html",):
        files[name] = templates.get_template(name).render(values)
    try:
        # Figures of an earlier report would be taken for figures of this one.
        for old in [path for name in NAMES for path in directory.glob(f"figures/{name}.[sp][vn]g")]:
            if f"figures/{old.name}" not in files:
                old.unlink()
        (directory / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            replace(directory / name, content)
    except OSError as error:
        raise ReportError(
            f"cannot write the report to {directory}: {error.strerror}; -o DIR puts it elsewhere"
        ) from error
    return directory / "report.html"
