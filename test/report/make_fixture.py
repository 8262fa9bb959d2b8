#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a results directory that holds every status and every strategy, always the same: make_fixture.py DIRECTORY."""

import json
import random
import sys
from pathlib import Path

import fixture_case
import fixture_model as model

FIRST, SECOND = "20261120T140310Z-node7-4711", "20261120T151902Z-node7-5200"
PROVENANCE = {
    "version": "0.1.0",
    "git_revision": "3f9a1c2e77d04b1c9a1e6f6f0b8c2d4e5a6b7c8d",
    "git_dirty": False,
    "build_type": "Release",
    "compiler": "GNU 12.2.0",
    "cxx_flags": "-O3 -DNDEBUG -march=native",
    "kokkos": {"version": "3.4.01", "backend": "Serial", "backends": ["Serial"], "concurrency": 1},
    "kokkos_kernels": {"version": "3.4.01", "libraries": ["BLAS"]},
    "blas": "OpenBLAS 0.3.21, kernels of Cooperlake",
    "blas_library": "libopenblas.so.0",
    "mpi": {"library": "Open MPI v4.1.4", "standard": "3.1", "thread_level": "multiple"},
    "cuda_version": None,
    "nodes": "2 with 4 ranks each",
    "arguments": ["tessera-bench", "run", "inputs/fixture.toml", "-o", "results/fixture"],
}
ONE_AXIS = [[("data", n)] for n in (1, 2, 4, 8)]
MESHES = {name: ONE_AXIS for name in ("data", "zero1", "zero2", "fsdp")}
MESHES["tensor"] = [[("model", n)] for n in (1, 2, 4, 8)]
MESHES["hybrid"] = [[("data", a), ("fsdp", b)] for a, b in ((2, 2), (2, 4), (4, 2))]

# The failures: (strategy, mesh, global batch) -> status, reason, exit code.
FATES = {
    ("zero2", "data=8", 256): ("invalid", "loss of step 3 is 0.7342, one rank has 0.7329"
                               " (relative difference 1.8e-03, tolerance 1e-05)", 2),
    ("tensor", "model=4", 2048): ("invalid", "loss of step 2 is not finite", 2),
    ("data", "data=2", 2048): ("oom", "rank 1: cannot allocate 402.8 MiB for moments", 3),
    ("tensor", "model=8", 2048): ("timeout", "still in its warm-up after 60 s, the limit of a case", 4),
    ("hybrid", "data=4,fsdp=2", 2048): ("failed", "rank 5: all_gather on axis 'fsdp': MPI_ERR_INTERN"
                                        " | <engine.cpp:212>", 5),
    ("fsdp", "data=8", 2048): ("pending", None, None),
    ("zero1", "data=8", 2048): ("pending", None, None),
}  # fmt: skip


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def write_timeline(path, length):
    """Writes what `tessera plan --timeline` writes for a step whose activations grow, and then shrink."""
    memory = {"parameters": 2**30, "gradients": 2**30, "moments": 2**31, "data": 2**20, "sums": 8, "activations": 2**32}
    actions = [{"text": f"{'forward' if 2 * at < length else 'backward'}(block{at}/attention/output, m31)",
                "activations": 3 * 2**31 * min(at + 1, length - at) // (length + 2), "activation_gradients": at * 2**10,
                "buffers": at % 7 * 2**22} for at in range(length)]  # fmt: skip
    state = sum(memory.values()) - memory["activations"]
    uses = [state + sum(action[key] for key in ("activations", "activation_gradients", "buffers")) for action in actions]
    peak = max(range(length), key=uses.__getitem__)
    tensors = [{"path": f"block{at // 2}/fc{at % 2 + 1}/output", "role": "activation", "microbatch": at // 4, "bytes": 2**25}
               for at in range(12)]  # fmt: skip
    write(path, {"mesh": "pipeline=8,fsdp=2,model=4", "strategy": "fsdp", "rank": 56,
                 "memory": {**memory, "total": sum(memory.values())},
                 "actions": [{**action, "in_use": use, "reaches": use} for action, use in zip(actions, uses)],
                 "peak": {"action": peak, "in_use": uses[peak], "tensors": tensors}})  # fmt: skip


def launch(name, cases, time):
    placement = [{"cpu_model": "Made-up CPU 8 cores", "cpu_sets": [str(r) for r in range(8)], "gpus": [None],
                  "hosts": {"node7": "0-7"}}]  # fmt: skip
    return {"schema_version": 1, "name": name, "ranks": 8, "seed": 1, "order": cases,
            "provenance": {**PROVENANCE, "time": time, "placement": placement,
                           "rank": {"process": int(name[-4:])}}}  # fmt: skip


def peers():
    """What scripts/peers.sh writes, with ratios 1, 1.5, 2 and 2.5."""
    names = (("Tessera", "tessera"), ("PyTorch eager", "torch"), ("PyTorch compiled", "torch"), ("JAX jit", "jax"))
    rows = [{"model": kind, "name": name, "library": library, "ranks": 1, "precision": "float32", "version": name.split()[0],
             "rounds": [0.02 * ratio] * 3, "step_seconds": 0.02 * ratio, "ratio_to_tessera": ratio,
             "ratio_in_rounds": [0.9 * ratio, 1.1 * ratio]}
            for kind in ("mlp", "transformer", "vae", "fno", "pinn")
            for ratio, (name, library) in zip((1, 1.5, 2, 2.5), names)]  # fmt: skip
    return {"schema_version": 1, "device_name": "Made-up CPU 8 cores", "threads_per_rank": 1, "peers": rows}


def asked_for():
    """Yields (strategy, mesh, global batch, reason to skip)."""
    for batch in (256, 2048):
        for strategy, meshes in MESHES.items():
            for mesh in meshes:
                yield strategy, mesh, batch, None
        excluded = "excluded: tensor splits no batch, so its axis 'data' must have size 1"
        yield "tensor", [("data", 2), ("model", 4)], batch, excluded


def main(directory):
    root = Path(directory)
    entries, results = [], []
    for strategy, mesh, batch, skip in asked_for():
        text = ",".join(f"{name}={size}" for name, size in mesh)
        fate = FATES.get((strategy, text, batch), ("ok", None, 0))
        if skip:
            fate = ("skipped", skip, 77)
        elif batch == 2048 and model.ranks_of(mesh) == 1:
            needs = sum(model.memory(strategy, mesh, batch).values())
            fate = ("oom", f"needs {needs / 2**30:.2f} GiB on a rank,"
                    f" the limit is {model.MEMORY_LIMIT / 2**30:.2f} GiB", 3)  # fmt: skip
        noise = random.Random(f"{strategy} {text} {batch}")
        case = fixture_case.FixtureCase(strategy, mesh, batch, fate, noise)
        entries.append(case.entry(skip))
        results.append(case)

    written = [case for case in results if case.status != "pending"]
    for case in written:
        name = SECOND if case.batch == 2048 and case.strategy == "hybrid" else FIRST
        write(root / "cases" / case.id / "result.json", case.result(name))
    for name, time in ((FIRST, "2026-11-20T14:03:10Z"), (SECOND, "2026-11-20T15:19:02Z")):
        order = [case.id for case in written if case.result(name)["launch"] == name]
        write(root / "launches" / f"{name}.json", launch(name, order, time))
    write(root / "peers.json", peers())
    write(root / "study.json", fixture_case.study(entries))
    write(root / "summary.json", fixture_case.summary(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
