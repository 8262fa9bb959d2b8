# SPDX-License-Identifier: Apache-2.0
"""A made-up machine and a made-up network: what the cases of the fixture would cost on it.

The numbers have the right sizes and the right relations to each other; they were measured nowhere.
"""

import random

WIDTHS = (1024, 4096, 4096, 1024)
PARAMETERS = sum(a * b + b for a, b in zip(WIDTHS, WIDTHS[1:]))
PARAMETER_BYTES = 4 * PARAMETERS
GEMM_PEAK = 4.1e10
ALPHA, BETA = 2.0e-4, 6.0e-10
MEMORY_LIMIT = 600 * 2**20


def ranks_of(mesh):
    product = 1
    for _, size in mesh:
        product *= size
    return product


def flops(batch):
    products = [a * b for a, b in zip(WIDTHS, WIDTHS[1:])]
    return 2 * batch * sum(products) * 3 - 2 * batch * products[0]


def collectives(strategy, mesh, batch):
    """(axis, operation, group size, calls, payload bytes of a step)."""
    sizes = dict(mesh)
    rows = []
    if strategy == "tensor":
        activations = 4 * batch * (WIDTHS[1] + WIDTHS[3])
        rows = [("model", "all_reduce", sizes["model"], 4, 2 * activations)]
    elif strategy == "data":
        rows = [("data", "all_reduce", sizes["data"], 3, PARAMETER_BYTES)]
    elif strategy == "zero1":
        rows = [
            ("data", "all_reduce", sizes["data"], 3, PARAMETER_BYTES),
            ("data", "all_gather", sizes["data"], 3, PARAMETER_BYTES),
        ]
    elif strategy == "zero2":
        rows = [
            ("data", "reduce_scatter", sizes["data"], 3, PARAMETER_BYTES),
            ("data", "all_gather", sizes["data"], 3, PARAMETER_BYTES),
        ]
    else:
        axis = "fsdp" if strategy == "hybrid" else "data"
        rows = [
            (axis, "all_gather", sizes[axis], 5, 5 * PARAMETER_BYTES // 3),
            (axis, "reduce_scatter", sizes[axis], 3, PARAMETER_BYTES),
        ]
        if strategy == "hybrid":
            share = PARAMETER_BYTES // sizes["fsdp"]
            rows.append(("data", "all_reduce", sizes["data"], 3, share))
    return [row for row in rows if row[2] > 1]


def wire(operation, n):
    """(rounds of a call, bytes on the wire for each byte of payload)."""
    factor = 2 if operation == "all_reduce" else 1
    return factor * (n - 1), factor * (n - 1) / n


def seconds_of(row, alpha=ALPHA, beta=BETA):
    _, operation, n, calls, payload = row
    rounds, share = wire(operation, n)
    return alpha * rounds * calls + beta * share * payload


def memory(strategy, mesh, batch):
    ranks = ranks_of(mesh)
    sizes = dict(mesh)
    shard = sizes.get("fsdp", ranks)
    parts = {name: PARAMETER_BYTES for name in ("parameters", "gradients")}
    parts["moments"] = 2 * PARAMETER_BYTES
    if strategy in ("zero1", "zero2", "fsdp", "hybrid", "tensor"):
        parts["moments"] //= shard
    if strategy in ("zero2", "fsdp", "hybrid", "tensor"):
        parts["gradients"] //= shard
    if strategy in ("fsdp", "hybrid", "tensor"):
        parts["parameters"] //= shard
    parts["activations"] = 12 * (batch // (1 if strategy == "tensor" else ranks)) * sum(WIDTHS)
    parts["scratch"] = 2**20
    parts["sums"] = 64
    parts["data"] = 8 * batch * WIDTHS[0] // (1 if strategy == "tensor" else ranks)
    return parts


def breakdown(strategy, mesh, batch, noise):
    """Mean seconds of a step, by phase."""
    ranks = ranks_of(mesh)
    speed = 0.62 - 0.035 * (ranks.bit_length() - 1)
    if strategy == "tensor" and ranks > 1:
        speed *= 0.93  # its matrices are narrow
    shard = 1 if strategy == "data" else dict(mesh).get("fsdp", ranks)
    exposed = sum(seconds_of(row) for row in collectives(strategy, mesh, batch))
    hidden = {"data": 0.45, "zero1": 0.35, "zero2": 0.45, "fsdp": 0.55, "hybrid": 0.5, "tensor": 0}
    return {
        "compute": flops(batch) / ranks / (GEMM_PEAK * speed) * noise.uniform(0.99, 1.02),
        "communication": exposed * (1 - hidden[strategy]) * noise.uniform(0.98, 1.1),
        "idle": 0.0 if ranks == 1 else 0.004 * (ranks.bit_length() - 1) * noise.uniform(0.7, 1.5),
        "optimizer": 0.036 / shard * noise.uniform(0.98, 1.02),
        "other": 0.0006 * noise.uniform(0.8, 1.2),
    }


def step_times(total, noise, number=30):
    """Right-skewed, with now and then an outlier."""
    times = []
    for _ in range(number):
        late = noise.uniform(0.15, 0.3) if noise.random() < 0.006 else 0.0
        times.append(total * (1 + 0.012 * abs(noise.gauss(0, 1)) + late))
    return times


def losses(batch, steps):
    noise = random.Random(f"losses {batch}")
    return [0.31 + 0.75 * 0.82**step * (1 + noise.uniform(-0.02, 0.02)) for step in range(steps)]
