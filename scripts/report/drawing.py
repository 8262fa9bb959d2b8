# SPDX-License-Identifier: Apache-2.0
"""Turns a matplotlib figure into PNG, for light pages, and SVG, which follows the colour scheme."""

import io
import re
from html import escape

from . import style

# Narrower than DejaVu Sans, in which the figure was laid out: nothing can overlap that did not before.
FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif'


def dark_rules(prefix):
    """Attribute selectors, which a viewer without them ignores: it then shows the light figure."""
    return [
        f'{prefix} [style*="{attribute}: {light}"] {{ {attribute}: {dark} !important }}'
        for light, dark in style.pairs()
        for attribute in ("fill", "stroke")
    ]


def figure_rules(prefix=".tessera-figure"):
    rules = [
        f"{prefix} * {{ stroke-linejoin: round; stroke-linecap: butt }}",
        f"{prefix} text {{ font-family: {FONT} !important }}",
    ]
    dark = "\n  ".join(dark_rules(prefix))
    rules.append(f"@media screen and (prefers-color-scheme: dark) {{\n  {dark}\n}}")
    return "\n".join(rules)


def save(figure, kind, **options):
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def png(figure):
    return save(figure, "png", dpi=160)


def _without_colours(defs):
    """Rules that match on a mark's colour find it where the mark is used, but not in its definition."""
    text = defs.group(0)
    return text if "<pattern" in text else re.sub(r"\bstroke: #[0-9a-f]{6}(; )?", "", text)


def svg(figure, name, title):
    """The <svg> element alone: ids are those of this figure, so that a page can hold many."""
    text = save(figure, "svg").decode()
    text = text[text.index("<svg") :]
    # The page has this rule; marks take their colours from where they are used.
    text = re.sub(r'<style type="text/css">.*?</style>', "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>.*?</defs>", _without_colours, text, flags=re.DOTALL)
    text = re.sub(r"\n(?=[MLCQz])", " ", text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    # No fixed size: the page, or the viewer, scales the view box.
    head = re.match(r"<svg[^>]*>", text).group(0)
    box = re.search(r'viewBox="([^"]+)"', head).group(1)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'class="tessera-figure" viewBox="{box}" role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>"
    )
    return (opening + text[len(head) :]).strip() + "\n"


def standalone(element):
    """A file of its own: with its size and with the rules that the page otherwise holds."""
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', element).groups()
    head, rest = element.split(">", 1)
    title, rest = rest.split("</title>", 1)
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n{head} width="{width}pt" height="{height}pt">'
        f"{title}</title>\n<style>\n{figure_rules('svg')}\n</style>{rest}"
    )
