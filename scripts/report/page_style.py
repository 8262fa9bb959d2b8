# SPDX-License-Identifier: Apache-2.0
"""The style sheet of the page, with the colours of style.py."""

import re

from . import style

_COLOURS = {
    "surface": style.SURFACE,
    "ink": style.INK,
    "muted": style.MUTED,
    "line": style.GRID,
    "panel": ("#f6f7f9", "#1c2025"),
    "good": style.GOOD,
    "warning": style.WARNING,
    "bad": style.BAD,
    "best": ("#eaf3ec", "#1b2a22"),
}

_SHEET = """
* { box-sizing: border-box }
body { margin: 0; background: var(--surface); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif }
main { max-width: 75rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em }
h2 { font-size: 1.35rem; margin: 3rem 0 .8rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem }
p, ul { margin: .6rem 0; max-width: 48rem }
li { margin: .3rem 0 }
.lead { font-size: 1.2rem; line-height: 1.5; margin: .8rem 0 }
.note { color: var(--muted); font-size: .9rem }
.warning { border-left: 4px solid var(--warning); background: var(--panel); padding: .7rem 1rem }
code { font: .88em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  background: var(--panel); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere }
td code { overflow-wrap: normal; white-space: nowrap }
.text { min-width: 16rem }
.text code { overflow-wrap: anywhere; white-space: normal }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
  margin: 1.4rem 0 }
.tiles div { background: var(--panel); border-radius: 8px; padding: .8rem 1rem }
.tiles dt { color: var(--muted); font-size: .82rem }
.tiles dd { margin: .1rem 0 0; font-size: 1.45rem; font-weight: 600; line-height: 1.25 }
.tiles small { display: block; font-size: .8rem; font-weight: 400; color: var(--muted); margin-top: .2rem }
.wide { overflow-x: auto; margin: .8rem 0 }
table { border-collapse: collapse; font-size: .84rem; min-width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--muted); padding: 0 0 .5rem }
th { text-align: left; font-weight: 600; color: var(--muted); vertical-align: bottom;
  border-bottom: 2px solid var(--line) }
th, td { padding: .34rem .55rem .34rem 0 }
td { border-bottom: 1px solid var(--line); vertical-align: top }
.number { text-align: right }
td.number { white-space: nowrap }
td:first-child, th:first-child { padding-left: .4rem }
tr.best td { background: var(--best); font-weight: 600 }
figure { margin: 1.5rem 0 2.2rem }
figcaption { color: var(--muted); font-size: .9rem; max-width: 48rem }
.tessera-figure { display: block; width: 100%; min-width: 40rem; height: auto }
.strategy { white-space: nowrap }
.strategy::before { content: ""; display: inline-block; width: .65em; height: .65em; border-radius: 2px;
  margin-right: .4em; background: currentColor; background: var(--strategy, var(--muted)) }
.status { font-weight: 600; white-space: nowrap }
details { border: 1px solid var(--line); border-radius: 8px; padding: .5rem 1rem; margin: .8rem 0 }
summary { cursor: pointer; font-weight: 600 }
@media print { details > * { display: block } .wide { overflow: visible } }
"""


def class_name(text):
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-") or "none"


def _variables(index):
    colours = {**_COLOURS}
    for name in style.strategies():
        colours[f"s-{name}"] = style.strategy_pair(name)
    return " ".join(f"--{name}: {pair[index]};" for name, pair in colours.items())


def rules():
    lines = [f":root {{ color-scheme: light dark; {_variables(0)} }}"]
    lines.append(
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(1)} }} }}"
    )
    for name in style.strategies():
        lines.append(f".s-{name} {{ --strategy: var(--s-{name}) }}")
    for names, colour in (
        (("ok",), "good"),
        (("invalid", "failed"), "bad"),
        (("oom", "timeout", "stale"), "warning"),
        (("skipped", "pending", "running"), "muted"),
    ):
        selector = ", ".join(f".st-{name}" for name in names)
        lines.append(f"{selector} {{ color: var(--{colour}) }}")
    return "\n".join(lines) + _SHEET
