# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of a transformer with experts equal those that PyTorch computes. Run it by hand, with NumPy
and PyTorch: experts_oracle.py [LAUNCHER...] TESSERA, for example with "mpirun -n 2 build/release/bin/tessera".

The gradient is the difference that a step of SGD with learning rate 1 makes to the parameters."""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

SAMPLES, T, V, D, HEADS, H = 6, 7, 11, 12, 3, 10
CONFIG = """
[model]
kind = "transformer"
activation = "gelu"
dtype = "float64"
[model.transformer]
vocabulary = {V}
context = {T}
width = {D}
heads = {HEADS}
blocks = 2
inner_width = {H}
experts = {experts}
top_k = {top_k}
capacity_factor = {factor}
balance_loss = {balance}
router_z_loss = {z}
[data]
kind = "npy"
x = "x.npy"
y = "y.npy"
samples = {SAMPLES}
[training]
num_epochs = 1
batch_size = {SAMPLES}
loss = "cross_entropy"
[optimizer]
kind = "sgd"
[distributed]
mesh_shape = [-1]
mesh_axis_names = ["expert"]
[checkpoint]
at_end = true
keep = 1
"""
CASES = [
    {"experts": 4, "top_k": 2, "factor": 0.75, "balance": 0.3, "z": 0.1},
    {"experts": 5, "top_k": 1, "factor": 1.0, "balance": 0.0, "z": 0.2},
    {"experts": 3, "top_k": 3, "factor": 0.0, "balance": 0.5, "z": 0.0},
]


def safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, facts in header.items():
        begin, end = facts["data_offsets"]
        arrays[name] = np.frombuffer(data[8 + length :][begin:end], "<f8").reshape(facts["shape"]).copy()
    return arrays


def block(p, name, x, case):
    """Returns the output of a block, and its terms of the loss as means over the samples."""
    width = D // HEADS

    def norm(unit):
        return F.layer_norm(x, (D,), p[f"{name}/{unit}/scale"], p[f"{name}/{unit}/bias"], 1e-5)

    qkv = norm("ln1") @ p[f"{name}/qkv/kernel"] + p[f"{name}/qkv/bias"]
    q, k, v = qkv.view(SAMPLES, T, HEADS, 3, width).permute(3, 0, 2, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(SAMPLES, T, D)
    x = x + mixed @ p[f"{name}/proj/kernel"] + p[f"{name}/proj/bias"]

    h = norm_of = F.layer_norm(x, (D,), p[f"{name}/ln2/scale"], p[f"{name}/ln2/bias"], 1e-5)
    logits = norm_of @ p[f"{name}/router/kernel"]
    probability = logits.softmax(-1)
    chosen = torch.zeros_like(probability).scatter_(-1, probability.topk(case["top_k"], -1).indices, 1.0)
    even = Fraction(case["top_k"] * T, case["experts"])
    capacity = min(T, math.ceil(Fraction(str(case["factor"])) * even)) if case["factor"] > 0 else T
    taken = chosen * (chosen.cumsum(1) <= capacity)
    change = 0
    for e in range(case["experts"]):
        inner = F.gelu(h @ p[f"{name}/fc1/kernel"][e] + p[f"{name}/fc1/bias"].view(-1, H)[e], approximate="tanh")
        out = inner @ p[f"{name}/fc2/kernel"][e] + p[f"{name}/fc2/bias"].view(-1, D)[e]
        change = change + (taken * probability)[..., e : e + 1] * out
    fraction = chosen.sum(1) / (case["top_k"] * T)
    balance = case["experts"] * (fraction * probability.mean(1)).sum(-1).mean()
    z = logits.logsumexp(-1).square().mean()
    dropped = int(chosen.sum() - taken.sum())
    return x + change, case["balance"] * balance + case["z"] * z, dropped


def loss_of(p, x, y, case):
    h = p["embedding/table"][x] + p["embedding/position"]
    total, dropped = 0, 0
    for number in (1, 2):
        h, terms, lost = block(p, f"block{number}", h, case)
        total, dropped = total + terms, dropped + lost
    h = F.layer_norm(h, (D,), p["ln/scale"], p["ln/bias"], 1e-5)
    logits = h @ p["logits/kernel"]
    return total + F.cross_entropy(logits.reshape(-1, V), y.reshape(-1)), dropped


def trained(command, folder, rate):
    saves = f"saves{rate}"
    subprocess.run(
        [*command, "run", "moe.toml", "--set", f"training.learning_rate={rate}", "--set",
         f"checkpoint.directory={saves}"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (saved,) = (folder / saves).glob("*/step_*")
    subprocess.run([command[-1], "checkpoint", "export", saved], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return safetensors(saved.with_suffix(".tessera.safetensors"))


def main(command):
    random = np.random.default_rng(7)
    x = random.integers(0, V, (SAMPLES, T))
    y = random.integers(0, V, (SAMPLES, T))
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            np.save(folder / "x.npy", x.astype(np.float64))
            np.save(folder / "y.npy", y.astype(np.float64))
            (folder / "moe.toml").write_text(CONFIG.format(**globals(), **case))
            before, after = trained(command, folder, 0), trained(command, folder, 1)
        p = {k: torch.tensor(v, requires_grad=True) for k, v in before.items()}
        loss, dropped = loss_of(p, torch.tensor(x), torch.tensor(y), case)
        loss.backward()
        worst = max(np.abs(before[k] - after[k] - p[k].grad.numpy()).max() for k in p)
        largest = max(p[k].grad.abs().max().item() for k in p)
        print(f"{case}: loss {loss.item():.6f}, {dropped} choices dropped, gradients differ by {worst / largest:.1e}")
        assert worst / largest < 1e-9
        assert dropped > 0 or case["factor"] == 0


main([*sys.argv[1:-1], str(pathlib.Path(sys.argv[-1]).resolve())])
