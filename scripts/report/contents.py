# SPDX-License-Identifier: Apache-2.0
"""The contents of a page as plain text, of which `page` makes HTML and Markdown."""

from dataclasses import dataclass, field
from typing import Callable

from .fields import number
from .numbers import UNKNOWN


@dataclass
class Text:
    text: str
    style: str = ""  # or "lead", "note", "warning"


@dataclass
class Points:
    title: str
    points: list
    folded: bool = False


@dataclass
class Column:
    title: str
    cell: Callable  # returns the text for an item; None is a dash
    kind: str = "number"  # or "word", "text" (may break), "code", "strategy", "status"


def shown(title, show, path):
    """Returns a column of a number in the result of a case, or in a row of a table of its result: "memory.limit"."""
    return Column(title, lambda item: show(number(getattr(item, "result", item), *path.split("."))))


@dataclass
class Table:
    """A row for every item. A folded table has a title and opens when the reader wants it."""

    items: list
    columns: list
    caption: str = ""
    best: list = ()  # the items that stand out
    folded: str = ""
    rows: list = field(init=False)

    def __post_init__(self):
        """Leaves out columns without a value, and moves columns with the same word in every row to the caption."""
        rows = [[column.cell(item) for column in self.columns] for item in self.items]
        rows = [[UNKNOWN if cell is None else str(cell) for cell in row] for row in rows]
        same, keep = [], []
        for index, column in enumerate(self.columns):
            values = {row[index] for row in rows}
            if values == {UNKNOWN}:
                continue
            if len(values) > 1 or len(rows) < 2 or column.kind in ("number", "status"):
                keep.append(index)
            else:
                same.append(f"{column.title}{':' if column.kind == 'text' else ''} {rows[0][index]}")
        if same:
            self.caption = f"{self.caption} The same for all: {', '.join(same)}."
        self.columns = [self.columns[index] for index in keep]
        self.rows = [[row[index] for index in keep] for row in rows]


@dataclass
class Figure:
    """`figure` is matplotlib's. It is drawn when the page is written. A wide one scrolls on a phone."""

    name: str
    title: str
    caption: str
    figure: object
    wide: bool = False
    svg: str = ""
    png: bytes = b""
