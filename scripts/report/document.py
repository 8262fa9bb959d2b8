# SPDX-License-Identifier: Apache-2.0
"""What the report says, before it is HTML or Markdown: a list of the blocks below.

Text is a string or a list of strings and spans; a span is never nested.
"""

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Bold:
    text: str


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Strategy:
    """The name of a strategy, beside its colour where there are colours."""

    name: str


@dataclass(frozen=True)
class Status:
    name: str


@dataclass
class Heading:
    text: str
    level: int = 2


@dataclass
class Paragraph:
    text: object
    kind: str = ""  # "", "lead", "note" or "warning"


@dataclass
class Bullets:
    items: list


@dataclass
class Tile:
    label: str
    value: str
    note: str = ""


@dataclass
class Tiles:
    tiles: list


@dataclass
class Column:
    title: str
    number: bool = False
    wide: bool = False  # holds text, which may be broken into lines


@dataclass
class Table:
    columns: list
    rows: list
    caption: str = ""
    # Rows to stand out, by index.
    best: set = field(default_factory=set)


@dataclass
class Figure:
    """A picture with what it says in words; `svg` and `png` are filled in when it has been drawn."""

    name: str
    title: str
    caption: object
    figure: object = None
    svg: Optional[str] = None
    png: Optional[bytes] = None


@dataclass
class Details:
    """Long material that need not be open."""

    summary: str
    blocks: list


def spans(text):
    return [] if text is None else text if isinstance(text, list) else [text]


def plain(text):
    return "".join(
        part if isinstance(part, str) else getattr(part, "text", None) or part.name
        for part in spans(text)
    )
