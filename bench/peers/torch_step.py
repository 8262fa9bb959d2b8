# SPDX-License-Identifier: Apache-2.0
"""Training steps of a multilayer perceptron in PyTorch. Run by torchrun; rank 0 prints the seconds of each timed step on
the slowest rank, as JSON."""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", required=True)
    parser.add_argument("--batch", type=int, required=True, help="rows of all ranks together")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--precision", choices=["float32", "tf32", "bf16"], default="float32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: a GPU for each rank")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--strategy", choices=["alone", "ddp", "fsdp2"], default="alone")
    return parser.parse_args()


def make_model(widths):
    layers = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def spread(model, options):
    """The model as a strategy trains it, and whether autocast has to shorten its operands."""
    shortens = options.precision == "bf16"
    if options.strategy == "ddp":
        return nn.parallel.DistributedDataParallel(model), shortens
    if options.strategy == "fsdp2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if shortens else None, reduce_dtype=torch.float32
        )
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mp_policy=policy)
        return fully_shard(model, mp_policy=policy), False
    return model, shortens


def choose_device(options):
    if options.device == "cpu":
        return torch.device("cpu")
    number, seen = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    if number >= seen:
        raise SystemExit(f"error: --device cuda: this process is number {number} of its node, and PyTorch sees {seen} GPUs")
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def seconds_now(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def time_steps(options, ranks, rank, device):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    model, autocasts = spread(make_model(options.widths).to(device), options)
    if options.compiled:
        model = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    rows = options.batch // ranks + (rank < options.batch % ranks)
    x, y = (torch.randn(rows, width, device=device) for width in (options.widths[0], options.widths[-1]))
    if options.precision == "bf16" and options.strategy == "fsdp2":
        x = x.bfloat16()
    seconds = []
    for _ in range(options.warm_up + options.steps):
        if ranks > 1:
            dist.barrier()
        begin = seconds_now(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=autocasts):
            prediction = model(x)
        nn.functional.mse_loss(prediction.float(), y).backward()
        optimizer.step()
        seconds.append(seconds_now(device) - begin)
    seconds = torch.tensor(seconds[options.warm_up :], device=device)
    if ranks > 1:
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.tolist()


def main():
    options = parse()
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    device = choose_device(options)
    if options.strategy != "alone":
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    seconds = time_steps(options, ranks, rank, device)
    if rank == 0:
        print(json.dumps({"library": f"PyTorch {torch.__version__}", "step_seconds": seconds}))
    if options.strategy != "alone":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
