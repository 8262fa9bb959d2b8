# SPDX-License-Identifier: Apache-2.0
"""The page on one trained model, from the samples and predictions that `tessera run --export` wrote."""

import io
import json
import math
from pathlib import Path

import numpy
from matplotlib.ticker import MaxNLocator

from . import drawing, style
from .contents import Figure, Text
from .fields import located, number, numbers, text, texts
from .files import read
from .numbers import percent
from .study import ReportError

ARRAYS = ("x", "y", "prediction")


def is_export(directory):
    return all((Path(directory) / f"{name}.npy").exists() for name in ARRAYS)


class Export:
    """Arrays of (samples, positions, columns), and the results."""

    def __init__(self, directory):
        self.file = Path(directory) / "results.json"
        paths = [Path(directory) / f"{name}.npy" for name in (*ARRAYS, "sample")]
        try:
            content = json.loads(read(self.file))
            arrays = {path.stem: numpy.load(io.BytesIO(read(path))) for path in paths if path.exists()}
        except (OSError, ValueError, RecursionError, EOFError) as error:
            raise ReportError(f"{directory} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise ReportError(f"{self.file} cannot be read: it holds no object")
        self.results = located(content, self._wrong)
        self.kind = self.needed(text, "config", "model", "kind")
        self.x, self.y, self.prediction = (arrays[name] for name in ARRAYS)
        self.sample = arrays.get("sample")
        if any(arrays[name].ndim != 3 or len(arrays[name]) == 0 for name in ARRAYS):
            raise ReportError(f"{directory} holds no samples of several positions and columns")

    def _wrong(self, key, what):
        raise ReportError(f"{self.file}: {key} = {what}")

    def needed(self, read, *path):
        """Reads with a function of fields, and rejects an empty value."""
        value = read(self.results, *path)
        if value in (None, []):
            raise ReportError(f"{self.file}: {'.'.join(path)} is missing")
        return value


def build_export(export):
    """Returns the sections of the page: a picture of the predictions, if this kind of model has one, and the losses."""
    distributed = ("config", "distributed")
    names = export.needed(texts, *distributed, "mesh_axis_names")
    sizes = export.needed(numbers, *distributed, "mesh_shape")
    mesh = ", ".join(f"{name}={size}" for name, size in zip(names, sizes))
    lead = (
        f"{export.needed(number, 'parameters'):,} parameters, {export.needed(number, 'steps'):,} steps under "
        f"{export.needed(text, *distributed, 'strategy')} on {mesh}; final loss"
        f" {export.needed(number, 'final_loss'):.6g}."
    )
    picture = {"fno": _operator, "pinn": _solution, "vae": _autoencoder}.get(export.kind, lambda _: None)(export)
    return {"": [one for one in (Text(lead, "lead"), picture, _curves(export)) if one]}


def _relative_error(predicted, true):
    return float(numpy.linalg.norm(predicted - true) / numpy.linalg.norm(true))


def _images(rows, height, bars=True):
    """Draws rows of (values, title, colours, limits). Returns None if the values form no square image."""
    side = math.isqrt(rows[0][0][0].size)
    if side * side != rows[0][0][0].size:
        return None
    figure, axes = drawing.panels(len(rows) * len(rows[0]), height, columns=len(rows[0]))
    for axis, (values, title, colours, limits) in zip(axes, [one for row in rows for one in row]):
        low, high = limits or (values.min(), values.max())
        axis.set(xticks=[], yticks=[], title=title)
        axis.grid(False)
        image = axis.imshow(values.reshape(side, side), cmap=colours, vmin=low, vmax=high, interpolation="nearest")
        if bars:
            figure.colorbar(image, ax=axis, shrink=0.8)
    return figure


def _operator(export):
    rows = []
    for a, true, predicted in list(zip(*(values[..., 0] for values in (export.x, export.y, export.prediction))))[:3]:
        limits = (true.min(), true.max())
        title = f"error: {percent(_relative_error(predicted, true), 1)}"
        rows.append([(a, "coefficient a", "Greys", None), (true, "solution u", "viridis", limits),
                     (predicted, "predicted", "viridis", limits), (abs(predicted - true), title, "magma", None)])
    caption = (
        "A row for each of a few unseen samples: the input of the operator, the solution, the prediction in the same "
        "colours, and the error, with its L2 norm over that of the solution."
    )
    figure = _images(rows, 2.2)
    return figure and Figure("predictions", "Predicted fields", caption, figure, wide=True)


def _solution(export):
    """The points are scattered over the square."""
    x, y = export.x[:, 0, 0], export.x[:, 0, 1]
    predicted, true = export.prediction[:, 0, 0], export.y[:, 1, 0]
    figure, axes = drawing.panels(2, 3.6)
    error = f"error: {percent(_relative_error(predicted, true), 2)}"
    for axis, values, title, colours in ((axes[0], predicted, "solution u", "viridis"),
                                         (axes[1], abs(predicted - true), error, "magma")):  # fmt: skip
        field = axis.tripcolor(x, y, values, shading="gouraud", cmap=colours, rasterized=True)
        figure.colorbar(field, ax=axis)
        axis.set(aspect="equal", title=title, xlabel="x", ylabel="y")
    caption = (
        f"Left: the solution of the network at {len(x):,} points that it was not trained on. Right: its distance from "
        "the exact solution, with its L2 norm over that of the solution."
    )
    return Figure("predictions", "Solution of the equation", caption, figure, wide=True)


def _autoencoder(export):
    rows = {"input": export.x, "output": 1 / (1 + numpy.exp(-export.prediction))}
    if export.sample is not None:
        rows["drawn"] = 1 / (1 + numpy.exp(-export.sample))
    pictures = [[(one, name, "Greys_r", (0, 1)) for one in values[:10, 0]] for name, values in rows.items()]
    figure = _images(pictures, 1.2, bars=False)
    caption = "Inputs are unseen samples, outputs are decoded from their codes, and drawn images from random codes."
    return figure and Figure("predictions", "Reconstructions", caption, figure, wide=True)


def _curves(export):
    losses = export.needed(numbers, "epoch_losses")
    figure, axis = drawing.plate()
    axis.plot(range(1, len(losses) + 1), losses, color="#1c2024", label="training")
    validated, epochs = (numbers(export.results, "validation", key) for key in ("losses", "epochs"))
    if validated and len(validated) == len(epochs):
        axis.plot(epochs, validated, color=style.colour("data"), label="unseen samples")
    best = number(export.results, "validation", "best_loss")
    if best is not None:
        axis.axhline(best, label="best possible", **style.DASHED)
    if None not in losses and min(losses) > 0 and max(losses) / min(losses) > 30:
        drawing.log_axis(axis, "y", "{:g}".format)
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    axis.set(xlabel="epoch", ylabel="loss, " + export.needed(text, "config", "training", "loss"))
    axis.legend()
    return Figure("losses", "Losses", "The mean loss of each epoch.", figure)
