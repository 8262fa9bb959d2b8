#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PyTorch computes with a tensor-parallel network whose terms it adds in 16 bits, for torch_sums_test.cpp.
usage: make_torch_sums.py [--check] DIRECTORY

To make test/engine/torch_sums again:
  python3 -m venv venv && venv/bin/pip install torch numpy
  venv/bin/python test/engine/make_torch_sums.py test/engine/torch_sums

With --check it writes nothing, and fails if the installed PyTorch computes something else than the files have.

Two processes with gloo train linear layers without bias, split by columns and by rows in turn (Shoeybi et al. 2019). Parameters
and their gradients are float32; operands, activations, their gradients and the sums over both processes have 16 bits.
bf16.safetensors and fp16.safetensors have the data x and y and, for each step N, from 1, "N/loss" and "N/gradient": the gradients of
all weights, each (inputs, outputs), one after the other. The files committed are of torch 2.7.1."""

import json
import pathlib
import struct
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn import functional

RANKS, STEPS, RATE, SAMPLES = 2, 3, 1 / 4096, 16
WIDTHS = [8, 16, 16, 16, 4]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SCALE = 1024  # of losses, so that small gradients have all bits of float16


def save(path, arrays):
    """Writes float32 tensors as safetensors."""
    header, end = {}, 0
    for name, values in arrays.items():
        begin, end = end, end + 4 * values.numel()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(values.detach().contiguous().numpy().tobytes() for values in arrays.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    """Returns all elements of a file of save(), one array after the other."""
    data = path.read_bytes()
    return torch.frombuffer(bytearray(data[8 + struct.unpack("<Q", data[:8])[0] :]), dtype=torch.float32)


class Linear(torch.autograd.Function):
    """One process's part of a linear layer. Its products have the type of x, but the gradient of the weight is float32, as
    Megatron-LM's main gradients."""

    @staticmethod
    def forward(context, x, weight, by_rows):
        context.by_rows = by_rows
        context.save_for_backward(x, weight.to(x.dtype))
        y = functional.linear(x, weight.to(x.dtype))
        if by_rows:
            dist.all_reduce(y)
        return y

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        of_x = gradient @ weight
        if not context.by_rows:
            dist.all_reduce(of_x)
        return of_x, gradient.float().t() @ x.float(), None


def draw():
    """Returns x, y and weights. The terms of the two processes nearly cancel, so that their rounding shows in the sums."""
    generator = torch.Generator().manual_seed(3)

    def random(*shape):
        return torch.randint(-32, 33, shape, generator=generator) / 64

    x, y = 1 + random(SAMPLES, WIDTHS[0]), random(SAMPLES, WIDTHS[-1])
    weights = []
    for layer, (before, after) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        weights.append(random(after, before) / 2)
        if layer % 2 == 0:
            weights[-1] += 0.25
        else:
            weights[-1] += torch.where(torch.arange(before) < before // 2, 1.0, -1.0)
    return x, y, weights


def predict(x, shards, dtype):
    h = x.to(dtype)
    for layer, shard in enumerate(shards):
        h = Linear.apply(h, shard, layer % 2 == 1)
        h = torch.relu(h) if layer + 1 < len(shards) else h
    return h.float()


def train(rank, kind, meeting, directory):
    dist.init_process_group("gloo", init_method=f"file://{meeting}/{kind}", rank=rank, world_size=RANKS)
    x, y, weights = draw()
    found = {"x": x, "y": y}
    shards = [weight.chunk(RANKS, dim=layer % 2)[rank].clone().requires_grad_() for layer, weight in enumerate(weights)]
    for step in range(1, STEPS + 1):
        loss = functional.mse_loss(predict(x, shards, TYPES[kind]), y)
        (SCALE * loss).backward()
        gradients = []
        for layer, shard in enumerate(shards):
            gradient, shard.grad = shard.grad / SCALE, None
            shard.data -= RATE * gradient
            parts = [torch.empty_like(gradient) for _ in range(RANKS)]
            dist.all_gather(parts, gradient)
            gradients.append(torch.cat(parts, dim=layer % 2).t().flatten())
        found |= {f"{step}/loss": loss.reshape(1), f"{step}/gradient": torch.cat(gradients)}
    if rank == 0:
        save(directory / f"{kind}.safetensors", found)
        save(directory / "weights.safetensors", {f"layer{n}.weight": weight for n, weight in enumerate(weights, 1)})
    dist.destroy_process_group()


def write(directory):
    with tempfile.TemporaryDirectory() as meeting:
        for kind in TYPES:
            torch.multiprocessing.spawn(train, (kind, meeting, directory), nprocs=RANKS)


def check(directory):
    """Returns the files of a directory that differ from what PyTorch computes by more than few roundings of an element do."""
    with tempfile.TemporaryDirectory() as other:
        write(pathlib.Path(other))
        files = {path.name: load(path) for path in directory.glob("*.safetensors")}
        made = {path.name: load(path) for path in pathlib.Path(other).iterdir()}
    return [
        name for name in files.keys() | made.keys()
        if name not in files or name not in made or files[name].shape != made[name].shape
        or (files[name] - made[name]).norm() > 2e-4 * files[name].norm()
    ]  # fmt: skip


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[-1])
    if sys.argv[1] != "--check":
        write(place)
    elif wrong := check(place):
        sys.exit(f"error: PyTorch {torch.__version__} computes other values than {', '.join(sorted(wrong))} in {place}")
