# SPDX-License-Identifier: Apache-2.0
"""Parameters that were exported give the loss that the run printed, computed with NumPy alone.
usage: export_test.py NPZ SAFETENSORS DIRECTORY-OF-RUN-EXPORT CHECKPOINT: both files of the tutorial's model, one with
PyTorch's names; x.npy, y.npy and results.json of its validation samples; the checkpoint that they are from"""
import json
import pathlib
import struct
import sys

import numpy as np


def safetensors(path):
    """The arrays of a file, read as its format says."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    assert all(isinstance(text, str) for text in texts.values())
    arrays = {}
    assert sum(facts["data_offsets"][1] - facts["data_offsets"][0] for facts in header.values()) == len(data) - 8 - length
    for name, facts in header.items():
        begin, end = facts["data_offsets"]
        kind = {"F32": "<f4", "F64": "<f8"}[facts["dtype"]]
        arrays[name] = np.frombuffer(data[8 + length :][begin:end], kind).reshape(facts["shape"])
    return arrays, texts


def main(npz, tensors, export, checkpoint):
    ours = dict(np.load(npz))
    theirs, _ = safetensors(pathlib.Path(tensors))
    if sorted(ours) != ["layer1/bias", "layer1/kernel", "layer2/bias", "layer2/kernel"]:
        return f"{npz} has {sorted(ours)}"
    if sorted(theirs) != ["layer1.bias", "layer1.weight", "layer2.bias", "layer2.weight"]:
        return f"{tensors} has {sorted(theirs)}"
    # A checkpoint has the same parameters beside the moments, and its state as JSON.
    saved, texts = safetensors(pathlib.Path(checkpoint))
    if any(not np.array_equal(saved[name], ours[name]) for name in ours) or len(saved) != 3 * len(ours):
        return f"{checkpoint} has other parameters"
    if json.loads(texts["tessera"])["step"] != 40:
        return f"{checkpoint} is not of step 40"
    for layer in ("layer1", "layer2"):
        if not np.array_equal(ours[f"{layer}/kernel"].T, theirs[f"{layer}.weight"]):
            return f"{layer}.weight is not the kernel, transposed"
        if not np.array_equal(ours[f"{layer}/bias"], theirs[f"{layer}.bias"]):
            return f"{layer}.bias is another one"

    export = pathlib.Path(export)
    x, y, prediction = (np.load(export / f"{name}.npy") for name in ("x", "y", "prediction"))
    x, y, prediction = (array.reshape(len(array), -1).astype(np.float64) for array in (x, y, prediction))
    # nn.Linear: x @ weight.T + bias
    hidden = np.maximum(x @ theirs["layer1.weight"].T + theirs["layer1.bias"], 0)
    output = hidden @ theirs["layer2.weight"].T + theirs["layer2.bias"]
    if not np.allclose(output, prediction, rtol=1e-5, atol=1e-5):
        return "the predictions of the run are others"
    printed = json.loads((export / "results.json").read_text())["validation"]["losses"][-1]
    loss = np.mean((output - y) ** 2)
    if abs(loss - printed) > 1e-5 * printed:
        return f"the loss is {loss}, and the run printed {printed}"
    return None


sys.exit(main(*sys.argv[1:]))
