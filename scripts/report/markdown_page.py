# SPDX-License-Identifier: Apache-2.0
"""The document as Markdown that shows the figures' files."""

import re

from . import document as doc

# What would be markup in a paragraph or end a cell of a table.
_SPECIAL = re.compile(r"([\\`*_|<>\[\]#~])")


def escape(text):
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def inline(text):
    return "".join(_span(part) for part in doc.spans(text))


def _span(part):
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, doc.Bold):
        return f"**{escape(part.text)}**"
    if isinstance(part, doc.Code):
        # A bar ends a cell even inside code.
        return "`" + part.text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"
    return escape(part.name)


def _table(block):
    lines = [f"{escape(block.caption)}\n"] if block.caption else []
    lines.append("| " + " | ".join(escape(column.title) for column in block.columns) + " |")
    lines.append(
        "|" + "|".join("---:" if column.number else "---" for column in block.columns) + "|"
    )
    for index, row in enumerate(block.rows):
        cells = [inline(cell) for cell in row]
        if index in block.best:
            cells[0] = f"★ {cells[0]}"
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _tiles(block):
    return "\n".join(
        f"- {escape(tile.label)}: **{escape(tile.value)}**"
        + (f" ({escape(tile.note)})" if tile.note else "")
        for tile in block.tiles
    )


def _block(block):
    if isinstance(block, doc.Heading):
        return "#" * block.level + " " + escape(block.text)
    if isinstance(block, doc.Paragraph):
        return ("> " if block.kind == "warning" else "") + inline(block.text)
    if isinstance(block, doc.Bullets):
        return "\n".join(f"- {inline(item)}" for item in block.items)
    if isinstance(block, doc.Tiles):
        return _tiles(block)
    if isinstance(block, doc.Table):
        return _table(block)
    if isinstance(block, doc.Figure):
        return (
            f"### {escape(block.title)}\n\n![{escape(block.title)}](figures/{block.name}.png)\n\n"
            f"{inline(block.caption)}"
        )
    if isinstance(block, doc.Details):
        return f"### {escape(block.summary)}\n\n{page(block.blocks).strip()}"
    raise TypeError(f"no Markdown for {type(block).__name__}")


def page(blocks):
    return "\n\n".join(_block(block) for block in blocks) + "\n"
