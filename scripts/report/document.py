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
    kind: str = "points"  # or "tiles", which stand beside each other

    def html(self):
        items = "\n".join(f"<li>{html(item)}</li>" for item in self.items)
        return f'<ul class="{self.kind}">\n{items}\n</ul>'

    def markdown(self):
        return "\n".join(f"- {markdown(item)}" for item in self.items)


@dataclass
class Column:
    title: str
    cell: Callable  # makes the text for an item; None is a dash
    kind: str = "number"  # or "text", which may be broken into lines, or ""

    def shown(self, item):
        cell = self.cell(item)
        return UNKNOWN if cell is None else str(cell) if isinstance(cell, int) else cell


@dataclass
class Table:
    """A row for every item."""

    items: list
    columns: list
    caption: str = ""
    best: object = None  # the item that stands out
    folded: str = ""  # the title of a long table that need not be open
    rows: list = field(init=False)

    def __post_init__(self):
        self.rows = [[column.shown(item) for column in self.columns] for item in self.items]

    def html(self):
        kinds = [f' class="{column.kind}"' if column.kind else "" for column in self.columns]
        head = "".join(
            f'<th scope="col"{kind}>{escape(column.title)}</th>'
            for column, kind in zip(self.columns, kinds)
        )
        body = ""
        for item, row in zip(self.items, self.rows):
            body += '<tr class="best">' if item is self.best else "<tr>"
            body += "".join(f"<td{kind}>{html(cell)}</td>" for cell, kind in zip(row, kinds))
            body += "</tr>\n"
        caption = f"<caption>{escape(self.caption)}</caption>\n" if self.caption else ""
        table = (
            f'<div class="wide"><table>\n{caption}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}</tbody></table></div>"
        )
        if not self.folded:
            return table
        return f"<details><summary>{escape(self.folded)}</summary>\n{table}\n</details>"

    def markdown(self):
        lines = [f"### {literal(self.folded)}\n"] if self.folded else []
        lines += [f"{literal(self.caption)}\n"] if self.caption else []
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
