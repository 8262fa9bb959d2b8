# SPDX-License-Identifier: Apache-2.0
"""The document as one HTML page that needs nothing else: no script, no font, no network."""

from html import escape

from . import document as doc
from . import drawing, page_style


def inline(text):
    return "".join(_span(part) for part in doc.spans(text))


def _span(part):
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, doc.Bold):
        return f"<strong>{escape(part.text)}</strong>"
    if isinstance(part, doc.Code):
        return f"<code>{escape(part.text)}</code>"
    if isinstance(part, doc.Strategy):
        return f'<span class="strategy s-{page_style.class_name(part.name)}">{escape(part.name)}</span>'
    if isinstance(part, doc.Status):
        return (
            f'<span class="status st-{page_style.class_name(part.name)}">{escape(part.name)}</span>'
        )
    raise TypeError(f"no HTML for {type(part).__name__}")


def _heading(block):
    anchor = page_style.class_name(block.text.lower().replace(" ", "-"))
    return f'<h{block.level} id="{anchor}">{escape(block.text)}</h{block.level}>'


def _paragraph(block):
    kind = f' class="{block.kind}"' if block.kind else ""
    return f"<p{kind}>{inline(block.text)}</p>"


def _bullets(block):
    items = "\n".join(f"<li>{inline(item)}</li>" for item in block.items)
    return f"<ul>\n{items}\n</ul>"


def _tiles(block):
    tiles = "\n".join(
        f"<div><dt>{escape(tile.label)}</dt><dd>{escape(tile.value)}"
        + (f"<small>{escape(tile.note)}</small>" if tile.note else "")
        + "</dd></div>"
        for tile in block.tiles
    )
    return f'<dl class="tiles">\n{tiles}\n</dl>'


def _table(block):
    kinds = [
        ' class="number"' if column.number else ' class="text"' if column.wide else ""
        for column in block.columns
    ]
    head = "".join(
        f'<th scope="col"{kind}>{escape(column.title)}</th>'
        for column, kind in zip(block.columns, kinds)
    )
    rows = []
    for index, row in enumerate(block.rows):
        cells = "".join(f"<td{kind}>{inline(cell)}</td>" for cell, kind in zip(row, kinds))
        kind = ' class="best"' if index in block.best else ""
        rows.append(f"<tr{kind}>{cells}</tr>")
    caption = f"<caption>{escape(block.caption)}</caption>\n" if block.caption else ""
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table>\n{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _figure(block):
    return (
        f'<figure id="figure-{block.name}"><h3>{escape(block.title)}</h3>\n'
        f'<div class="wide">{block.svg}</div>\n<figcaption>{inline(block.caption)}</figcaption></figure>'
    )


def _details(block):
    return f"<details><summary>{escape(block.summary)}</summary>\n{body(block.blocks)}\n</details>"


_WRITERS = {
    doc.Heading: _heading,
    doc.Paragraph: _paragraph,
    doc.Bullets: _bullets,
    doc.Tiles: _tiles,
    doc.Table: _table,
    doc.Figure: _figure,
    doc.Details: _details,
}


def body(blocks):
    return "\n".join(_WRITERS[type(block)](block) for block in blocks)


def page(title, blocks):
    rules = page_style.rules() + drawing.figure_rules()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Browsers ask for an icon of their own accord; this one is empty.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{rules}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body(blocks)}\n</main>\n</body>\n</html>\n"
    )
