# SPDX-License-Identifier: Apache-2.0
"""What the report says: a list of the blocks below, each of which knows its HTML and its Markdown.

Text is a string, a span, or a list of strings and spans; a span is never nested.
"""

import re
from dataclasses import dataclass, field
from html import escape
from typing import Callable, Optional

from .numbers import UNKNOWN


def literal(text):
    """As Markdown: nothing in it is markup or ends a cell of a table."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", text).replace("\n", " ")


def class_name(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "none"


@dataclass(frozen=True)
class Span:
    text: str

    def html(self):
        """The page has a variable with the colour of every strategy and status."""
        kind = type(self).__name__.lower()
        colour = f"--colour: var(--{kind}-{class_name(self.text)})"
        return f'<span class="{kind}" style="{colour}">{escape(self.text)}</span>'

    def markdown(self):
        return literal(self.text)


class Strategy(Span):
    """The name of a strategy, beside its colour where there are colours."""


class Status(Span):
    pass


class Bold(Span):
    def html(self):
        return f"<strong>{escape(self.text)}</strong>"

    def markdown(self):
        return f"**{literal(self.text)}**"


class Code(Span):
    def html(self):
        return f"<code>{escape(self.text)}</code>"

    def markdown(self):
        # A bar ends a cell even inside code.
        return "`" + self.text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


def _parts(text):
    return text if isinstance(text, list) else [text]


def html(text):
    return "".join(escape(part) if isinstance(part, str) else part.html() for part in _parts(text))


def markdown(text):
    return "".join(
        literal(part) if isinstance(part, str) else part.markdown() for part in _parts(text)
    )


def plain(text):
    return "".join(part if isinstance(part, str) else part.text for part in _parts(text))


def listed(texts):
    """One text of several, with commas between them."""
    return [part for text in texts for part in (*_parts(text), ", ")][:-1]


@dataclass
class Heading:
    text: str
    level: int = 2

    def html(self):
        return f'<h{self.level} id="{class_name(self.text)}">{escape(self.text)}</h{self.level}>'

    def markdown(self):
        return "#" * self.level + " " + literal(self.text)


@dataclass
class Paragraph:
    text: object
    kind: str = ""  # "", "lead", "note" or "warning"

    def html(self):
        kind = f' class="{self.kind}"' if self.kind else ""
        return f"<p{kind}>{html(self.text)}</p>"

    def markdown(self):
        return ("> " if self.kind == "warning" else "") + markdown(self.text)


@dataclass
class Bullets:
    items: list

    def html(self):
        items = "\n".join(f"<li>{html(item)}</li>" for item in self.items)
        return f"<ul>\n{items}\n</ul>"

    def markdown(self):
        return "\n".join(f"- {markdown(item)}" for item in self.items)


@dataclass
class Tiles:
    """Large numbers: (label, value, note)."""

    tiles: list

    def html(self):
        tiles = "\n".join(
            f"<div><dt>{escape(label)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
            for label, value, note in self.tiles
        )
        return f'<dl class="tiles">\n{tiles}\n</dl>'

    def markdown(self):
        return "\n".join(
            f"- {literal(label)}: **{literal(value)}**" + (f" ({literal(note)})" if note else "")
            for label, value, note in self.tiles
        )


@dataclass
class Column:
    title: str
    cell: Callable  # makes the text for an item; None is a dash
    kind: str = "number"  # or "text", which may be broken into lines, or ""


@dataclass
class Table:
    """A row for every item; `best` is the one that stands out."""

    items: list
    columns: list
    caption: str = ""
    best: object = None
    rows: list = field(init=False)

    def __post_init__(self):
        cells = [[column.cell(item) for column in self.columns] for item in self.items]
        self.rows = [[UNKNOWN if cell is None else cell for cell in row] for row in cells]

    def html(self):
        kinds = [f' class="{column.kind}"' if column.kind else "" for column in self.columns]
        head = "".join(
            f'<th scope="col"{kind}>{escape(column.title)}</th>'
            for column, kind in zip(self.columns, kinds)
        )
        rows = []
        for item, row in zip(self.items, self.rows):
            cells = "".join(f"<td{kind}>{html(cell)}</td>" for cell, kind in zip(row, kinds))
            rows.append(f'<tr class="best">{cells}</tr>' if item is self.best else f"<tr>{cells}</tr>")
        caption = f"<caption>{escape(self.caption)}</caption>\n" if self.caption else ""
        body = "\n".join(rows)
        return (
            f'<div class="wide"><table>\n{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )

    def markdown(self):
        lines = [f"{literal(self.caption)}\n"] if self.caption else []
        lines.append("| " + " | ".join(literal(column.title) for column in self.columns) + " |")
        rules = ("---:" if column.kind == "number" else "---" for column in self.columns)
        lines.append("|" + "|".join(rules) + "|")
        for item, row in zip(self.items, self.rows):
            star = "★ " if item is self.best else ""
            lines.append(f"| {star}" + " | ".join(markdown(cell) for cell in row) + " |")
        return "\n".join(lines)


@dataclass
class Figure:
    """A picture with what it says in words; `svg` and `png` are filled in when it has been drawn."""

    name: str
    title: str
    caption: str
    figure: object
    svg: Optional[str] = None
    png: Optional[bytes] = None

    def html(self):
        return (
            f'<figure id="figure-{self.name}"><h3>{escape(self.title)}</h3>\n'
            f'<div class="wide">{self.svg}</div>\n'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def markdown(self):
        title, caption = literal(self.title), literal(self.caption)
        return f"### {title}\n\n![{title}](figures/{self.name}.png)\n\n{caption}"


@dataclass
class Details:
    """Long material that need not be open."""

    summary: str
    blocks: list

    def html(self):
        inner = "\n".join(block.html() for block in self.blocks)
        return f"<details><summary>{escape(self.summary)}</summary>\n{inner}\n</details>"

    def markdown(self):
        inner = "\n\n".join(block.markdown() for block in self.blocks)
        return f"### {literal(self.summary)}\n\n{inner}"
