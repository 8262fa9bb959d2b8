# SPDX-License-Identifier: Apache-2.0
"""Colours, markers and fonts, so that a strategy looks the same in every figure and table.

The colours of strategies can be told apart with normal sight, protanopia, deuteranopia and tritanopia, and markers
repeat what colours say.
"""

import matplotlib

MUTED, REFERENCE = "#5c646e", "#8b939d"
GOOD, WARNING, BAD = "#18794e", "#9a5b00", "#c4261d"

STRATEGIES = {
    "data": ("#0527a8", "o"),
    "zero1": ("#d5820d", "s"),
    "zero2": ("#14aa99", "^"),
    "fsdp": ("#8f5ace", "D"),
    "hybrid": ("#b3235f", "v"),
    "tensor": ("#622c04", "P"),
}
OTHER = ("#3d444c", "X")
PARTS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d8cb3c", "#0072b2", "#d55e00", "#b8bec5")  # of stacked bars (Okabe and Ito)

# Words and colour of each phase of a step. Grey is work, red is time that the mesh costs.
PHASES = {
    "compute": ("compute", "#8d97a3"),
    "optimizer": ("optimizer", "#c3cad2"),
    "launches": ("launches of kernels", "#b59b52"),  # of predicted steps; measured ones have them in the other parts
    "other": ("other", "#e6dcb8"),
    "communication": ("communication", "#d9502b"),
    "idle": ("idle", "#f2b49b"),
}

# Every status, in the order in which they are counted, and the colour of its name.
STATUSES = {"ok": GOOD, "unverified": WARNING, "invalid": BAD, "oom": WARNING, "timeout": WARNING, "failed": BAD,
            "skipped": MUTED, "pending": MUTED}  # fmt: skip

DASHED = {"color": REFERENCE, "linewidth": 1.2, "linestyle": (0, (4, 3)), "zorder": 1}


def colour(strategy):
    return STRATEGIES.get(strategy, OTHER)[0]


def strategy_order(name):
    names = list(STRATEGIES)
    return (names.index(name) if name in names else len(names), name)


def mark(strategy):
    """Returns how a plot draws the points of a strategy."""
    own, marker = STRATEGIES.get(strategy, OTHER)
    return {"color": own, "marker": marker, "markersize": 7, "markeredgewidth": 0.6, "markeredgecolor": "white"}


SERIES = [*STRATEGIES.values(), OTHER]


def series(number):
    """Returns how a plot draws the points of a line that is not that of a strategy."""
    own, marker = SERIES[number % len(SERIES)]
    return {"color": own, "marker": marker, "markersize": 5, "markeredgewidth": 0.6, "markeredgecolor": "white",
            "linewidth": 1.2}  # fmt: skip


def use():
    """Sets up matplotlib without a display, without randomness, and with text that stays text."""
    matplotlib.use("Agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tessera",
            "text.parse_math": False,
            "font.size": 11.5,
            "axes.titlesize": 11.5,
            "axes.labelsize": 11.5,
            "xtick.labelsize": 11.5,
            "ytick.labelsize": 11.5,
            "legend.fontsize": 11.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": "#e3e6ea",
            "legend.frameon": False,
        }
    )
