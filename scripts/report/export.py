# SPDX-License-Identifier: Apache-2.0
"""What `tessera run --export` wrote: one trained model, the samples that it was shown, and its predictions."""

import json
from pathlib import Path

import numpy

from .document import Heading, Paragraph
from .figure_predictions import curves, picture_of
from .files import check_regular, read_text
from .layout import NothingToShow
from .study import ReportError

ARRAYS = ("x", "y", "prediction")


def is_export(directory):
    return all((Path(directory) / f"{name}.npy").exists() for name in ARRAYS)


def _array(path):
    check_regular(path)
    return numpy.load(path)


class Export:
    """Arrays of (samples, positions, columns), and the results."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.name = self.directory.resolve().name
        try:
            self.results = json.loads(read_text(self.directory / "results.json"))
            arrays = [_array(self.directory / f"{name}.npy") for name in ARRAYS]
            drawn = self.directory / "sample.npy"
            self.sample = _array(drawn) if drawn.exists() else None
            self.kind = self.results["config"]["model"]["kind"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReportError(f"{directory} cannot be read: {error}") from error
        self.x, self.y, self.prediction = arrays
        if any(array.ndim != 3 or len(array) == 0 for array in arrays):
            raise ReportError(f"{directory} holds no samples of several positions and columns")

    def validation(self, *keys):
        value = self.results.get("validation", {})
        for key in keys:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        return None if value == {} else value


def figures(export):
    """The picture of this kind of model, if there is one, and the losses."""
    made = []
    for maker in (picture_of(export.kind), curves):
        try:
            made.append(maker(export))
        except NothingToShow:
            pass
    return made


def build_export(export):
    results = export.results
    mesh = ", ".join(
        f"{axis}={size}"
        for axis, size in zip(
            results["config"]["distributed"]["mesh_axis_names"],
            results["config"]["distributed"]["mesh_shape"],
        )
    )
    lead = (
        f"{results['parameters']:,} parameters, {results['steps']:,} steps under "
        f"{results['config']['distributed']['strategy']} on {mesh}; final loss "
        f"{results['final_loss']:.6g}."
    )
    return [
        Heading(f"Training run: {export.kind}", 1),
        Paragraph(lead, "lead"),
        *figures(export),
    ]
