# SPDX-License-Identifier: Apache-2.0
"""Turns a matplotlib figure into PNG, for light pages, and SVG, which follows the colour scheme."""

import io
import re
from html import escape

from . import layout, style

# Narrower than DejaVu Sans, in which the figure was laid out: nothing can overlap that did not before.
FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif'


def figure_rules(prefix=".tessera-figure"):
    """Attribute selectors, which a viewer without them ignores: it then shows the light figure."""
    dark = "\n  ".join(
        f'{prefix} [style*="{attribute}: {light}"] {{ {attribute}: {dark} !important }}'
        for light, dark in style.pairs()
        for attribute in ("fill", "stroke")
    )
    return (
        f"{prefix} * {{ stroke-linejoin: round; stroke-linecap: butt }}\n"
        f"{prefix} text {{ font-family: {FONT} !important }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{\n  {dark}\n}}"
    )


def draw(block):
    """Fills in the PNG and the SVG of a figure in the document."""
    layout.settle(block.figure)
    block.png = _save(block.figure, "png", {"Software": None}, dpi=160)
    svg = _save(block.figure, "svg", {"Date": None, "Creator": None}).decode()
    block.svg = _element(svg, block.name, f"{block.title}. {block.caption}")


def _save(figure, kind, metadata, **options):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def _without_colours(defs):
    """Rules that match on a mark's colour find it where the mark is used, but not in its definition."""
    text = defs.group(0)
    return text if "<pattern" in text else re.sub(r"\bstroke: #[0-9a-f]{6}(; )?", "", text)


def _element(text, name, title):
    """The <svg> element alone: ids are those of this figure, so that a page can hold many."""
    text = text[text.index("<svg") :]
    # The page has the rule of the style element; marks take their colours from where they are used.
    for useless in ("<style.*?</style>", r"<metadata>.*?</metadata>\s*", r"<!--.*?-->\s*"):
        text = re.sub(useless, "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>.*?</defs>", _without_colours, text, flags=re.DOTALL)
    text = re.sub(r"\n(?=[MLCQz])", " ", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", text)
    head = re.match("<svg([^>]*)>", text)
    return (
        f'<svg class="tessera-figure" role="img" aria-label="{escape(title)}"{head.group(1)}>\n'
        f"<title>{escape(title)}</title>{text[head.end() :].strip()}\n"
    )


def standalone(element):
    """A file of its own, with the rules that the page otherwise holds."""
    return element.replace("</title>", f"</title>\n<style>\n{figure_rules('svg')}\n</style>", 1)
