# SPDX-License-Identifier: Apache-2.0
"""The page on the memory of a step, from a file that `tessera plan --timeline` wrote."""

import json
import math
import re
from collections import Counter
from pathlib import Path

from . import drawing, style
from .contents import Column, Figure, Table, Text
from .fields import located, mapping, number, positive, table, text
from .files import read
from .numbers import BYTE_UNITS, bytes_, count, percent, unit_of
from .study import ReportError

FRAME = ("activations", "activation_gradients", "buffers")
MOST_POINTS, MOST_TENSORS = 800, 20


def build_timeline(path):
    """Returns the sections of the page: the use of memory by action, and what is in use at the peak."""

    def wrong(key, what):
        raise ReportError(f"{path}: {key} = {what}")

    try:
        plan = located(json.loads(read(Path(path))), wrong)
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    memory, actions, peak = mapping(plan, "memory"), table(plan, "actions"), mapping(plan, "peak")
    total, most, at = positive(memory, "total"), positive(peak, "in_use"), int(number(peak, "action") or 0)
    if not total or not most or at not in range(len(actions)):
        raise ReportError(f"{path}: is neither a directory of results nor a file of tessera plan --timeline")
    lead = (
        f"Rank {count(number(plan, 'rank'))} of {text(plan, 'mesh')} under {text(plan, 'strategy')} allocates {bytes_(total)}. "
        f"A step uses {bytes_(most)} at most, in action {count(at)}, {text(actions[at], 'text')}. "
        f"The other {bytes_(total - most)} lie between tensors that share memory."
    )
    # All but the frame is always in use.
    state = {name: size for name in memory if name not in ("total", "activations") and (size := positive(memory, name))}
    figure = _areas(state, actions, total, (at, most))
    return {"": [Text(lead, "lead"), figure], "What is in use at the peak?": [_tensors(state, table(peak, "tensors"), most)]}


def _areas(state, actions, total, peak):
    """Draws the bytes of each role over the actions. Of a long step, the action that uses most stands for its neighbours."""
    step = math.ceil(len(actions) / MOST_POINTS)
    begins = range(0, len(actions), step)
    actions = [max(actions[begin : begin + step], key=lambda action: positive(action, "in_use") or 0) for begin in begins]
    sizes = {role: [size] * len(actions) for role, size in state.items()}
    sizes.update({role: part for role in FRAME if any(part := [positive(action, role) or 0 for action in actions])})
    large = sorted(sizes, key=lambda role: -max(sizes[role]))[: len(style.PARTS) - 1]
    parts = {role.replace("_", " "): part for role, part in sizes.items() if role in large}
    caption = "Microbatches that repeat the same actions have one area."
    if rest := [role for role in sizes if role not in large]:
        parts["rest"] = [sum(together) for together in zip(*(sizes[role] for role in rest))]
        caption += f" The rest: {', '.join(rest)}.".replace("_", " ")
    factor, unit = unit_of([total], BYTE_UNITS)
    figure, (panel,) = drawing.panels(1, 4)
    panel.stackplot([*begins, begins[-1] + step], [[size / factor for size in (*part, part[-1])] for part in parts.values()],
                    step="post", colors=style.PARTS, linewidth=0)  # fmt: skip
    line = panel.axhline(total / factor, label=f"allocated, {bytes_(total)}", **style.DASHED)
    (mark,) = panel.plot([peak[0] + 0.5], [peak[1] / factor], linestyle="none", marker=7, color="black", markersize=8,
                         label=f"peak, {bytes_(peak[1])}")  # fmt: skip
    panel.set(xlim=(0, begins[-1] + step), ylim=(0, 1.06 * total / factor), xlabel="action of the step", ylabel=unit)
    drawing.legend(figure, [*drawing.patches(dict(zip(parts, style.PARTS))), line, mark])
    return Figure("memory-timeline", "Memory in use", caption, figure, wide=True)


def _tensors(state, tensors, most):
    """Returns the table of the largest. Tensors of blocks that differ in their number only share a row."""
    sizes, times = Counter(state), Counter()
    for tensor in tensors:
        name = re.sub(r"^([a-z_]+)\d+/", r"\1*/", text(tensor, "path") or "")
        sizes[name] += number(tensor, "bytes") or 0
        times[name] += 1
    columns = [Column("tensors", lambda row: row[0], "code"), Column("number", lambda row: times[row[0]] or None),
               Column("bytes", lambda row: bytes_(row[1])), Column("part", lambda row: percent(row[1] / most, 1))]  # fmt: skip
    return Table(sizes.most_common(MOST_TENSORS), columns, "* stands for the numbers of blocks. Each microbatch has its own tensors.")
