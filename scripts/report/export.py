# SPDX-License-Identifier: Apache-2.0
"""What `tessera run --export` wrote: one trained model, the samples that it was shown, and its predictions."""

import json
from pathlib import Path

import numpy

from .document import Heading, Paragraph
from .fields import located, number, numbers, text, texts
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
        self.file = self.directory / "results.json"
        try:
            content = json.loads(read_text(self.file))
        except (OSError, ValueError, RecursionError) as error:
            raise ReportError(f"{self.file} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise ReportError(f"{self.file} cannot be read: it holds no object")
        self.results = located(content, self._wrong)
        self.kind = self.needed(text, "config", "model", "kind")
        try:
            arrays = [_array(self.directory / f"{name}.npy") for name in ARRAYS]
            drawn = self.directory / "sample.npy"
            self.sample = _array(drawn) if drawn.exists() else None
        except (OSError, ValueError, EOFError) as error:
            raise ReportError(f"{directory} cannot be read: {error}") from error
        self.x, self.y, self.prediction = arrays
        if any(array.ndim != 3 or len(array) == 0 for array in arrays):
            raise ReportError(f"{directory} holds no samples of several positions and columns")

    def _wrong(self, key, what):
        raise ReportError(f"{self.file}: {key} = {what}")

    def needed(self, read, *path):
        """What one of the functions of fields reads there, which must be something."""
        value = read(self.results, *path)
        if value in (None, []):
            raise ReportError(f"{self.file}: {'.'.join(path)} is missing")
        return value


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
    distributed = ("config", "distributed")
    names = export.needed(texts, *distributed, "mesh_axis_names")
    sizes = export.needed(numbers, *distributed, "mesh_shape")
    mesh = ", ".join(f"{axis}={size}" for axis, size in zip(names, sizes))
    lead = (
        f"{export.needed(number, 'parameters'):,} parameters, {export.needed(number, 'steps'):,} steps under "
        f"{export.needed(text, *distributed, 'strategy')} on {mesh}; final loss "
        f"{export.needed(number, 'final_loss'):.6g}."
    )
    return [
        Heading(f"Training run: {export.kind}", 1),
        Paragraph(lead, "lead"),
        *figures(export),
    ]
