# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a report: report.html, the same as RESULTS.md, and figures/. The page is one file without scripts, fonts
or links to others."""

import re
from html import escape
from pathlib import Path

from . import drawing, style
from .contents import Figure, Table, Text
from .files import replace
from .study import ReportError

# Patterns of the names of all figures.
NAMES = ("growth-*", "losses", "predictions", "speedup-*", "efficiency-*", "time-*", "bytes-*", "memory-*", "node-hours-*",
         "predicted-*")  # fmt: skip
UNIT = re.compile(r"(?<=[\d,]) (?=([%×]|[nmµ]?s|[kKMGT]?i?B(/s)?|[kMGTP]?FLOP/s|samples/s)(?!\w)|[\d.,]+\])")


def _words(text):
    """Escapes a text, and keeps numbers on one line with their units, and the ends of an interval."""
    return escape(UNIT.sub("\u00a0", text))


def _tag(name, *inside, **attributes):
    """Returns an element. What is inside is markup already."""
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value)
    return f"<{name}{said}>{''.join(inside)}</{name}>\n"


def _cell(column, text):
    colour = {"strategy": f"--colour: {style.colour(text)}", "status": f"color: {style.STATUSES.get(text)}"}
    return _tag("td", _words(text), class_=column.kind, style=colour.get(column.kind))


def _table(one):
    head = _tag("tr", *(_tag("th", _words(column.title), class_=column.kind) for column in one.columns))
    rows = [_tag("tr", *map(_cell, one.columns, row), class_="best" if item in one.best else "")
            for item, row in zip(one.items, one.rows)]  # fmt: skip
    return _tag("p", _words(one.caption), class_="note") + _tag("div", _tag("table", _tag("thead", head), *rows), class_="wide")


def _block(one):
    if isinstance(one, Figure):
        picture = _tag("div", one.svg, role="img", aria_label=one.title, class_="wide" if one.wide else "")
        return _tag("figure", _tag("h3", _words(one.title)), picture, _tag("figcaption", _words(one.caption)) if one.caption else "",
                    class_="broad" if one.wide else "")  # fmt: skip
    if isinstance(one, Text):
        return _tag("p", _words(one.text), class_=one.style)
    is_table = isinstance(one, Table)
    inside = _table(one) if is_table else _tag("ul", *(_tag("li", _words(point)) for point in one.points))
    title = one.folded if is_table else one.title
    if one.folded:
        return _tag("details", _tag("summary", _words(title)), inside)
    return (_tag("h3", _words(title)) if title else "") + inside


def _html(title, sections):
    body = [_tag("h1", _words(title))]
    for name, blocks in sections.items():
        head, inside = _tag("h2", _words(name)) if name else "", []
        for one in blocks:
            plate = isinstance(one, Figure) and not one.wide
            if plate and inside and inside[-1][0]:
                inside[-1] = (True, inside[-1][1] + _block(one))
            else:
                inside.append((plate, _block(one)))
        body += [head, *(_tag("div", said, class_="plates") if plate else said for plate, said in inside)]
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    head = ('<meta charset="utf-8" />\n<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
            '<link rel="icon" href="data:," />\n' + _tag("title", escape(title)) + _tag("style", css))  # fmt: skip
    return "<!DOCTYPE html>\n" + _tag("html", _tag("head", head), _tag("body", *body), lang="en")


def _plain(text):
    """Escapes what would be markup or end a cell of a Markdown table."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", text).replace("\n", " ")


def _markdown(title, sections):
    lines = [f"# {_plain(title)}"]
    for name, blocks in sections.items():
        lines += [f"## {_plain(name)}"] if name else []
        for one in blocks:
            heading = getattr(one, "folded", "") if isinstance(one, Table) else getattr(one, "title", "")
            lines += [f"### {_plain(heading)}"] if heading else []
            if isinstance(one, Figure):
                lines += [f"![{_plain(one.title)}](figures/{one.name}.png)", _plain(one.caption)]
            elif isinstance(one, Text):
                lines.append(_plain(one.text))
            elif isinstance(one, Table):
                titles = [_plain(column.title) for column in one.columns]
                marks = ["---:" if column.kind == "number" else "---" for column in one.columns]
                rows = [[("**fastest** " if item in one.best and not at else "") + _plain(cell) for at, cell in enumerate(row)]
                        for item, row in zip(one.items, one.rows)]  # fmt: skip
                lines += [_plain(one.caption), "\n".join(f"| {' | '.join(row)} |" for row in (titles, marks, *rows))]
            else:
                lines.append("\n".join(f"- {_plain(point)}" for point in one.points))
    return "\n\n".join(line for line in lines if line) + "\n"


def write(directory, title, sections):
    """Draws the figures, and returns the path of the page."""
    directory, files = Path(directory), {}
    for figure in [one for blocks in sections.values() for one in blocks if isinstance(one, Figure)]:
        drawing.draw(figure)
        files[f"figures/{figure.name}.svg"] = figure.svg
        files[f"figures/{figure.name}.png"] = figure.png
    files.update({"report.html": _html(title, sections), "RESULTS.md": _markdown(title, sections)})
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
