#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares trainings with optimizer.kind = "muon" with torch.optim.Muon, for which PyTorch 2.9 or newer must be installed.
usage: compare_torch_muon.py TESSERA

PyTorch's Newton-Schulz steps run in bf16. Here they run in double, as those of Tessera do in a training in double: a
conversion to bf16 gives a copy. Prints the largest relative difference of each kernel and bias after some steps, for meshes
that hold matrices whole, share them and split them, and fails if one is above 1e-12."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

WIDTHS, SAMPLES, STEPS, RATE, DECAY = [8, 24, 12, 4], 12, 6, 0.02, 0.1
SCALES = {"match_rms": "match_rms_adamw", "original": "original"}
MESHES = [("data=1", "data", "gather"), ("data=2", "zero1", "exchange"), ("model=2", "tensor", "gather"),
          ("data=3", "fsdp", "owner")]

to_type = torch.Tensor.to


def to_but_not_bf16(tensor, *arguments, **options):
    if options.get("dtype") is torch.bfloat16:
        return tensor.clone()
    return to_type(tensor, *arguments, **options)


def save(path, arrays):
    header, end = {}, 0
    for name, values in arrays.items():
        begin, end = end, end + values.numel() * 8
        header[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    data = b"".join(values.contiguous().numpy().tobytes() for values in arrays.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    data, arrays = raw[8 + size:], {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            arrays[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float64).reshape(entry["shape"])
    return arrays


def train_torch(initial, x, y, scale):
    """Returns the parameters, under Tessera's names and in its layout: kernels are (inputs, outputs)."""
    layers = [f"layer{i + 1}" for i in range(len(WIDTHS) - 1)]
    weights = [initial[f"{layer}/kernel"].t().clone().requires_grad_() for layer in layers]
    biases = [initial[f"{layer}/bias"].clone().requires_grad_() for layer in layers]
    optimizers = [torch.optim.Muon(weights[:-1], lr=RATE, weight_decay=DECAY, adjust_lr_fn=SCALES[scale]),
                  torch.optim.AdamW(weights[-1:] + biases, lr=RATE, weight_decay=DECAY)]
    for rows, targets in zip(x.split(SAMPLES), y.split(SAMPLES)):
        for i, (weight, bias) in enumerate(zip(weights, biases)):
            rows = rows @ weight.t() + bias
            if i + 1 < len(weights):
                rows = torch.tanh(rows)
        for optimizer in optimizers:
            optimizer.zero_grad()
        ((rows - targets) ** 2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    kernels = {f"{layer}/kernel": weight.detach().t() for layer, weight in zip(layers, weights)}
    return kernels | {f"{layer}/bias": bias.detach() for layer, bias in zip(layers, biases)}


def train_tessera(tessera, folder, name, mesh, settings):
    file = folder / "muon.toml"
    file.write_text(f'[model]\nwidths = {WIDTHS}\nactivation = "tanh"\ndtype = "float64"\n'
                    f'[data]\nkind = "npy"\nx = "{folder}/x.npy"\ny = "{folder}/y.npy"\nsamples = "all"\n'
                    f'[training]\nnum_epochs = 1\nbatch_size = {SAMPLES}\nlearning_rate = {RATE}\n'
                    f'[optimizer]\nkind = "muon"\nweight_decay = {DECAY}\n'
                    f'[checkpoint]\ninit_from = "{folder}/initial.safetensors"\ndirectory = "{folder}/{name}"\n')
    options = [word for setting in settings for word in ("--set", setting)]
    ranks = mesh.split("=")[1]
    subprocess.run(["mpirun", "-n", ranks, tessera, "run", str(file), "--mesh", mesh, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return load(next((folder / name).rglob("*.safetensors")))


def main():
    torch.Tensor.to = to_but_not_bf16
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    x, y = torch.randn(SAMPLES * STEPS, WIDTHS[0]), torch.randn(SAMPLES * STEPS, WIDTHS[-1])
    initial = {}
    for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        initial[f"layer{i + 1}/kernel"] = torch.randn(inputs, outputs) / inputs ** 0.5
        initial[f"layer{i + 1}/bias"] = torch.randn(outputs) / 10
    worst = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "x.npy", x.numpy()), np.save(folder / "y.npy", y.numpy())
        save(folder / "initial.safetensors", initial)
        for scale in SCALES:
            expected = train_torch(initial, x, y, scale)
            for mesh, strategy, layout in MESHES:
                found = train_tessera(sys.argv[1], folder, f"{scale}_{layout}_{mesh}", mesh,
                                      [f"distributed.strategy={strategy}", f"distributed.muon_layout={layout}",
                                       f"optimizer.muon_scale={scale}"])
                errors = {path: float((found[path] - values).abs().max() / values.abs().max())
                          for path, values in expected.items()}
                print(scale, mesh, strategy, layout, *(f"{path} {error:.1e}" for path, error in errors.items()))
                worst = max(worst, *errors.values())
    sys.exit(0 if worst < 1e-12 else f"the largest difference is {worst:.1e}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
