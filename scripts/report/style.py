# SPDX-License-Identifier: Apache-2.0
"""Colours, markers and fonts: one place, so that a strategy looks the same in every figure.

Every colour is a pair, one for light and one for dark surfaces. The strategies' pairs were chosen so that
any two of them stay apart (a distance of 0.11 in OKLab) for normal sight, protanopia, deuteranopia and
tritanopia, with a contrast of about 3 or more against the surface. Markers and direct labels repeat what
the colour says.
"""

import matplotlib

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

# Grey is work, colour is time that the mesh costs.
PHASES = {
    "compute": ("#8d97a3", "#6f7985"),
    "optimizer": ("#c3cad2", "#9aa4b0"),
    "communication": ("#d9502b", "#f0764f"),
    "idle": ("#f2b49b", "#8a4a34"),
    "other": ("#e6dcb8", "#5f573c"),
}
PHASE_NAMES = {
    "compute": "compute",
    "optimizer": "optimizer",
    "communication": "exposed communication",
    "idle": "idle",
    "other": "not accounted for",
}

GOOD = ("#18794e", "#4cc38a")
WARNING = ("#9a5b00", "#f1b555")
BAD = ("#c4261d", "#ff8b82")

# Cells of the heat map: the stronger the colour, the larger the value, on both surfaces.
CELLS = (
    ("#eef4fb", "#1a2632"),
    ("#d3e3f4", "#1d3145"),
    ("#b2cdea", "#203f5c"),
    ("#8bb3de", "#255076"),
    ("#6397cf", "#2e6394"),
    ("#3f7bbb", "#4f8cc9"),
    ("#245f9e", "#74aade"),
    ("#134379", "#9fc9ef"),
)
CELL_STRONG = 5  # from here on text is that of the surface
CELL_INK = ("#101418", "#f2f5f8")
CELL_STRONG_INK = ("#fdfeff", "#0e1215")
CELL_EDGE = ("#b9a9a5", "#6b5f5c")
CELL_STATUS = {
    "invalid": ("#f6c9c4", "#5c2521"),
    "oom": ("#f0bf9f", "#5f3a20"),
    "timeout": ("#f3dda9", "#544319"),
    "failed": ("#eaaaa3", "#73302a"),
    "skipped": ("#dfe3e8", "#30363d"),
    "pending": ("#eceff2", "#262b31"),
    "stale": ("#ddd4ea", "#40364f"),
    "n/a": ("#f6f7f9", "#1b1f24"),
}


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


def marker(name):
    return _STRATEGIES.get(name, _OTHER)[1]


def marker_size(name):
    """Marks of about the same area."""
    return {"P": 8.5, "D": 5.5, "s": 5.8, "^": 7.0, "v": 7.0, "X": 7.0}.get(marker(name), 6.3)


def mark(name, scale=1.0, edge=0.6):
    """How a plot shows points of a strategy, set off from each other."""
    return {"color": colour(name), "marker": marker(name), "markersize": scale * marker_size(name),
            "markeredgewidth": edge, "markeredgecolor": SURFACE[0]}  # fmt: skip


def strategy_order(name):
    known = list(_STRATEGIES)
    return (known.index(name), "") if name in known else (len(known), name or "")


def pairs():
    """Every (light, dark) pair a figure may hold, for the rules that turn a figure dark."""
    fixed = [SURFACE, INK, MUTED, GRID, REFERENCE, GOOD, WARNING, BAD, _OTHER[0]]
    cells = [*CELLS, CELL_INK, CELL_STRONG_INK, CELL_EDGE, *CELL_STATUS.values()]
    return fixed + [pair for pair, _ in _PALETTE] + list(PHASES.values()) + cells


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
            "axes.labelsize": 9.0,
            "axes.titlesize": 9.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 8.0,
            "axes.titlecolor": INK[0],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.8,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.facecolor": "none",
            "grid.color": GRID[0],
            "grid.linewidth": 0.8,
            "xtick.color": MUTED[0],
            "ytick.color": MUTED[0],
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "xtick.major.size": 3.0,
            "ytick.major.size": 0.0,
            "xtick.minor.size": 0.0,
            "ytick.minor.size": 0.0,
            "lines.linewidth": 1.8,
            "lines.markersize": 6.0,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "figure.facecolor": SURFACE[0],
            "savefig.facecolor": SURFACE[0],
            "figure.dpi": 100,
        }
    )
