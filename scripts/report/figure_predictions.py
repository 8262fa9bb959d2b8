# SPDX-License-Identifier: Apache-2.0
"""What a trained model predicts for samples that it has not seen, drawn as its users would."""

import math

import numpy
from matplotlib.ticker import MaxNLocator

from . import document as doc
from . import layout, style
from .fields import number, numbers, text

FIELD, ERROR = "viridis", "magma"


def picture_of(kind):
    return {"fno": operator, "pinn": solution, "vae": autoencoder}.get(kind, _no_picture)


def _no_picture(export):
    raise layout.NothingToShow(f"a {export.kind} has no picture of its own")


def _image(figure, axis, values, title, colours, limits=None, bar=True):
    low, high = limits or (float(values.min()), float(values.max()))
    image = axis.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    axis.set_title(title)
    if bar:
        figure.colorbar(image, ax=axis, shrink=0.8)


def operator(export, samples=3):
    """Rows of coefficient, solution, prediction and error."""
    points = export.x.shape[1]
    side = math.isqrt(points)
    if side * side != points:
        raise layout.NothingToShow("the points form no square grid")
    samples = min(samples, len(export.x))
    figure, axes = layout.panels(4 * samples, 2.2, columns=4)
    for sample in range(samples):
        coefficient, true, predicted = (
            values[sample, :, 0].reshape(side, side)
            for values in (export.x, export.y, export.prediction)
        )
        limits = (float(true.min()), float(true.max()))
        error = numpy.linalg.norm(predicted - true) / numpy.linalg.norm(true)
        row = axes[4 * sample : 4 * sample + 4]
        _image(figure, row[0], coefficient, "coefficient a", "Greys")
        _image(figure, row[1], true, "solution u", FIELD, limits)
        _image(figure, row[2], predicted, "predicted", FIELD, limits)
        _image(figure, row[3], abs(predicted - true), f"error: {error:.1%}", ERROR)
    caption = (
        "Each row is a sample: what the operator is given, the solution, the prediction in the same "
        "colours, and the magnitude of the error, whose L2 norm relative to the solution's stands above."
    )
    return doc.Figure("predictions", "Predicted fields", caption, figure)


def solution(export):
    """Over the points of the square, which are scattered."""
    x, y = export.x[:, 0, 0], export.x[:, 0, 1]
    predicted, true = export.prediction[:, 0, 0], export.y[:, 1, 0]
    error = numpy.linalg.norm(predicted - true) / numpy.linalg.norm(true)
    figure, axes = layout.panels(2, 3.6)
    for axis, values, title, colours in (
        (axes[0], predicted, "solution u", FIELD),
        (axes[1], abs(predicted - true), f"error: {error:.2%}", ERROR),
    ):
        image = axis.tricontourf(x, y, values, levels=40, cmap=colours)
        figure.colorbar(image, ax=axis)
        axis.set_aspect("equal")
        axis.set_title(title)
        axis.set_xlabel("x")
        axis.set_ylabel("y")
    caption = (
        f"Left: the network's solution at {len(x):,} points that it was not trained on. Right: its "
        "distance from the exact solution, whose L2 norm relative to the solution's stands above."
    )
    return doc.Figure("predictions", "Solution of the equation", caption, figure)


def autoencoder(export, samples=10):
    """Rows of inputs, of what is made of them, and of what the model imagines by itself."""
    columns = export.x.shape[2]
    side = math.isqrt(columns)
    if side * side != columns:
        raise layout.NothingToShow("the columns form no square image")
    samples = min(samples, len(export.x))
    rows = {"input": export.x[:, 0, :], "output": _probability(export.prediction[:, 0, :])}
    caption = "Input: samples that the model was not trained on. Output: what it decodes from their codes."
    if export.sample is not None:
        rows["drawn"] = _probability(export.sample[:, 0, :])
        caption += " Drawn: what it decodes from codes drawn at random, without any input."
    figure, axes = layout.panels(len(rows) * samples, 1.05, columns=samples)
    for row, (name, values) in enumerate(rows.items()):
        axes[row * samples].set_ylabel(name)
        for sample in range(samples):
            image = values[sample].reshape(side, side)
            _image(figure, axes[row * samples + sample], image, "", "Greys_r", (0, 1), bar=False)
    return doc.Figure("predictions", "Reconstructions", caption, figure)


def _probability(logits):
    return 1 / (1 + numpy.exp(-logits))


def curves(export):
    losses = export.needed(numbers, "epoch_losses")
    figure, (axis,) = layout.panels(1, 3.2, columns=1)
    axis.plot(range(1, len(losses) + 1), losses, color=style.INK[0], label="training")
    validated = numbers(export.results, "validation", "losses")
    epochs = numbers(export.results, "validation", "epochs")
    if validated and len(validated) == len(epochs):
        axis.plot(epochs, validated, color=style.PASSES["F"][1][0], label="unseen samples")
    best = number(export.results, "validation", "best_loss")
    if best is not None:
        axis.axhline(best, label="best possible", **style.DASHED)
    if None not in losses and min(losses) > 0 and max(losses) / min(losses) > 30:
        axis.set_yscale("log")
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axis.set_xlabel("epoch")
    axis.set_ylabel(export.needed(text, "config", "training", "loss"))
    axis.legend()
    return doc.Figure("losses", "Losses", "The mean loss of each epoch.", figure)
