# SPDX-License-Identifier: Apache-2.0
"""Costs of the cases of the fixture, for a made-up network on a made-up machine. Only their proportions are real."""

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


# (operation, calls of a step, payload over that of all parameters), on one axis.
CALLS = {
    "data": [("all_reduce", 3, 1)],
    "zero1": [("all_reduce", 3, 1), ("all_gather", 3, 1)],
    "zero2": [("reduce_scatter", 3, 1), ("all_gather", 3, 1)],
    "fsdp": [("all_gather", 5, 5 / 3), ("reduce_scatter", 3, 1)],
}


def collectives(strategy, mesh, batch):
    """Returns (axis, operation, group size, calls, payload bytes of a step)."""
    sizes = dict(mesh)
    if strategy == "tensor":
        rows = [("model", "all_reduce", sizes["model"], 4, 8 * batch * (WIDTHS[1] + WIDTHS[3]))]
    else:
        axis = "fsdp" if strategy == "hybrid" else "data"
        rows = [(axis, operation, sizes[axis], calls, int(share * PARAMETER_BYTES))
                for operation, calls, share in CALLS["fsdp" if strategy == "hybrid" else strategy]]  # fmt: skip
    if strategy == "hybrid":
        rows.append(("data", "all_reduce", sizes["data"], 3, PARAMETER_BYTES // sizes["fsdp"]))
    return [row for row in rows if row[2] > 1]


def wire(operation, n):
    """Returns the rounds of a call and its bytes on the wire for each byte of payload."""
    factor = 2 if operation == "all_reduce" else 1
    return factor * (n - 1), factor * (n - 1) / n


def seconds_of(row, alpha=ALPHA, beta=BETA):
    _, operation, n, calls, payload = row
    rounds, share = wire(operation, n)
    return alpha * rounds * calls + beta * share * payload


def memory(strategy, mesh, batch):
    ranks = ranks_of(mesh)
    shard = dict(mesh).get("fsdp", ranks)
    sharded = {"data": 0, "zero1": 1, "zero2": 2}.get(strategy, 3)
    parts = {"moments": 2 * PARAMETER_BYTES, "gradients": PARAMETER_BYTES, "parameters": PARAMETER_BYTES}
    parts = {name: size // (shard if n < sharded else 1) for n, (name, size) in enumerate(parts.items())}
    samples = batch if strategy == "tensor" else batch // ranks
    return {**parts, "activations": 12 * samples * sum(WIDTHS), "data": 8 * samples * WIDTHS[0]}


def breakdown(strategy, mesh, batch, noise):
    """Returns the mean seconds of a step by phase."""
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
    """Returns step times with a long tail of slow steps."""
    return [total * (1 + 0.012 * abs(noise.gauss(0, 1))) for _ in range(number)]


def losses(batch, steps):
    noise = random.Random(f"losses {batch}")
    return [0.31 + 0.75 * 0.82**step * (1 + noise.uniform(-0.02, 0.02)) for step in range(steps)]
