# SPDX-License-Identifier: Apache-2.0
"""The document as one HTML page that needs nothing else: no script, no font, no network."""

from html import escape

from . import drawing, style
from .document import class_name

_SHEET = """
* { box-sizing: border-box }
body { margin: 0; background: var(--surface); color: var(--ink); font: 16px/1.55 FONT }
main { max-width: 75rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem }
h1 { margin: 0 0 .4rem }
h2 { margin: 3rem 0 .8rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
h3 { margin: 1.6rem 0 .5rem }
p, ul { margin: .6rem 0; max-width: 48rem }
.lead { font-size: 1.2rem }
.note, figcaption { color: var(--muted); font-size: .9rem; max-width: 48rem }
.warning { border-left: 4px solid var(--warning); background: var(--panel); padding: .7rem 1rem }
code { font: .88em/1.4 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  background: var(--panel); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .8rem;
  margin: 1.4rem 0; padding: 0; max-width: none; list-style: none; color: var(--muted) }
.tiles li { background: var(--panel); border-radius: 8px; padding: .8rem 1rem; font-size: .8rem }
.tiles strong { display: block; font-size: 1.45rem; line-height: 1.25; color: var(--ink) }
.wide { overflow-x: auto; margin: .8rem 0 }
table { border-collapse: collapse; font-size: .84rem; min-width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--muted); padding: 0 0 .5rem }
th { text-align: left; color: var(--muted); vertical-align: bottom; border-bottom: 2px solid var(--line) }
td { border-bottom: 1px solid var(--line); vertical-align: top }
th, td { padding: .34rem .27rem }
.number { text-align: right }
td, .strategy, .status { white-space: nowrap }
.text { min-width: 16rem; white-space: normal }
tr.best td { background: var(--best); font-weight: 600 }
figure { margin: 1.5rem 0 2.2rem }
.tessera-figure { display: block; width: 100%; min-width: 40rem; height: auto }
.strategy::before { content: ""; display: inline-block; width: .65em; height: .65em; border-radius: 2px;
  margin-right: .4em; background: var(--colour, var(--muted)) }
.status { font-weight: 600; color: var(--colour) }
details { border: 1px solid var(--line); border-radius: 8px; padding: .5rem 1rem; margin: .8rem 0 }
summary { cursor: pointer; font-weight: 600 }
@media print { .wide { overflow: visible } }
"""


def _colours(surface):
    """The variables of the style sheet, for the light surface (0) or the dark one (1)."""
    pairs = {"surface": style.SURFACE, "ink": style.INK, "muted": style.MUTED, "line": style.GRID,
             "warning": style.WARNING, "panel": style.PANEL, "best": style.BEST}  # fmt: skip
    for name in style.strategies():
        pairs[f"strategy-{class_name(name)}"] = style.strategy_pair(name)
    for name, (words, _, _) in style.STATUSES.items():
        pairs[f"status-{class_name(name)}"] = words
    variables = " ".join(f"--{name}: {pair[surface]};" for name, pair in pairs.items())
    return f":root {{ color-scheme: light dark; {variables} }}"


def page(title, blocks):
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {_colours(1)} }}"
    sheet = _SHEET.replace("FONT", drawing.FONT)
    rules = "\n".join((_colours(0), dark, sheet, drawing.figure_rules()))
    body = "\n".join(block.html() for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Browsers ask for an icon of their own accord; this one is empty.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{rules}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
