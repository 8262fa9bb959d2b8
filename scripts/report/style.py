# SPDX-License-Identifier: Apache-2.0
"""Colours, markers and fonts: one place, so that a strategy looks the same in every figure.

Every colour is a pair, one for light and one for dark surfaces. The strategies' pairs were chosen so that
any two of them stay apart (a distance of 0.11 in OKLab) for normal sight, protanopia, deuteranopia and
tritanopia, with a contrast of about 3 or more against the surface. Markers and direct labels repeat what
the colour says.
"""

import matplotlib
from matplotlib.colors import LinearSegmentedColormap, to_hex

SURFACE = ("#ffffff", "#15181c")
INK = ("#1c2024", "#e8eaed")
MUTED = ("#5c646e", "#a3abb5")
GRID = ("#e3e6ea", "#2c3138")
REFERENCE = ("#8b939d", "#7b838d")

# Given to strategies in the order in which the study lists them; further ones share the last.
_PALETTE = [
    (("#0527a8", "#4f71d6"), "o"),
    (("#d5820d", "#f4cd5c"), "s"),
    (("#14aa99", "#5fecd7"), "^"),
    (("#8f5ace", "#b0a2ff"), "D"),
    (("#b3235f", "#f27ca0"), "v"),
    (("#622c04", "#a06c44"), "P"),
]
_STRATEGIES = {}
_OTHER = (("#6b7178", "#b4bac1"), "X")

# Words and colour of each phase, work first: what the mesh costs ends a bar. Grey is work, colour is time
# that the mesh costs.
PHASES = {
    "compute": ("compute", ("#8d97a3", "#6f7985")),
    "optimizer": ("optimizer", ("#c3cad2", "#9aa4b0")),
    "other": ("not accounted for", ("#e6dcb8", "#5f573c")),
    "communication": ("exposed communication", ("#d9502b", "#f0764f")),
    "idle": ("idle", ("#f2b49b", "#8a4a34")),
}

# Of the passes of a pipeline, by the first letter of their names.
PASSES = {
    "F": ("forward", ("#8cb4e0", "#2f5f94")),
    "B": ("backward, or gradients of inputs", ("#f3b77a", "#87521a")),
    "W": ("gradients of weights", ("#a3cfa0", "#3b6d3d")),
}

GOOD = ("#18794e", "#4cc38a")
WARNING = ("#9a5b00", "#f1b555")
BAD = ("#c4261d", "#ff8b82")
PANEL = ("#f6f7f9", "#1c2025")
BEST = ("#eaf3ec", "#1b2a22")


def _ramp(*colours, number=8):
    ramp = LinearSegmentedColormap.from_list("ramp", colours)
    return [to_hex(ramp(step / (number - 1))) for step in range(number)]


# Of every status, in the order in which they are counted: the colour of its name, and the colour and hatch
# of its cells in the heat map, where "n/a" stands for no case.
STATUSES = {
    "ok": (GOOD, None, ""),
    "unverified": (WARNING, None, ""),
    "invalid": (BAD, ("#f6c9c4", "#5c2521"), "////"),
    "oom": (WARNING, ("#f0bf9f", "#5f3a20"), "xxxx"),
    "timeout": (WARNING, ("#f3dda9", "#544319"), "----"),
    "failed": (BAD, ("#eaaaa3", "#73302a"), "\\\\\\\\"),
    "skipped": (MUTED, ("#dfe3e8", "#30363d"), ""),
    "pending": (MUTED, ("#eceff2", "#262b31"), ""),
    "running": (MUTED, ("#e4eaee", "#232b33"), ""),
    "stale": (WARNING, ("#ddd4ea", "#40364f"), ""),
    "n/a": (MUTED, ("#f6f7f9", "#1b1f24"), ""),
}
# Cells with a speed: the stronger the colour, the larger the value, on both surfaces.
CELLS = list(zip(_ramp("#eef4fb", "#6fa0d5", "#134379"), _ramp("#1a2632", "#2e6394", "#9fc9ef")))
CELL_STRONG = 5  # from here on text is that of the surface
CELL_INK = ("#101418", "#f2f5f8")
CELL_STRONG_INK = ("#fdfeff", "#0e1215")
CELL_EDGE = ("#b9a9a5", "#6b5f5c")

# How lines of reference are drawn.
DASHED = {"color": REFERENCE[0], "linewidth": 1.2, "linestyle": (0, (4, 3)), "zorder": 1}


def use_strategies(names):
    """All strategies that the program knows, in its order, whatever the study runs."""
    _STRATEGIES.clear()
    _STRATEGIES.update(zip(names, _PALETTE))


def strategies():
    return list(_STRATEGIES)


def strategy_pair(name):
    return _STRATEGIES.get(name, _OTHER)[0]


def colour(name):
    return strategy_pair(name)[0]


def mark(name, scale=1.0, edge=0.6):
    """How a plot shows points of a strategy, set off from each other; marks have about the same area."""
    marker = _STRATEGIES.get(name, _OTHER)[1]
    size = {"P": 8.5, "D": 5.5, "s": 5.8, "^": 7.0, "v": 7.0, "X": 7.0}.get(marker, 6.3)
    return {"color": colour(name), "marker": marker, "markersize": scale * size,
            "markeredgewidth": edge, "markeredgecolor": SURFACE[0]}  # fmt: skip


def strategy_order(name):
    known = list(_STRATEGIES)
    return (known.index(name), "") if name in known else (len(known), name or "")


def pairs():
    """Every (light, dark) pair a figure may hold, for the rules that turn a figure dark."""
    fixed = [SURFACE, INK, MUTED, GRID, REFERENCE, BAD, _OTHER[0]]
    cells = [*CELLS, CELL_INK, CELL_STRONG_INK, CELL_EDGE]
    cells += [cell for _, cell, _ in STATUSES.values() if cell]
    phases = [pair for _, pair in (*PHASES.values(), *PASSES.values())]
    return fixed + [pair for pair, _ in _PALETTE] + phases + cells


def use():
    """Sets matplotlib up: no display, no randomness, text as text."""
    matplotlib.use("Agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tessera",
            "font.family": "DejaVu Sans",
            "font.size": 9.0,
            "text.color": INK[0],
            "text.parse_math": False,
            "axes.edgecolor": REFERENCE[0],
            "axes.labelcolor": MUTED[0],
            "axes.titlesize": 9.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlecolor": INK[0],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.facecolor": "none",
            "grid.color": GRID[0],
            "xtick.color": MUTED[0],
            "ytick.color": MUTED[0],
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "ytick.major.size": 0.0,
            "lines.linewidth": 1.8,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
        }
    )
