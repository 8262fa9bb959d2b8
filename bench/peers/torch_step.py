# SPDX-License-Identifier: Apache-2.0
"""Training steps of a model in PyTorch. Run by torchrun; rank 0 prints the seconds of each timed step on the slowest
rank, as JSON."""

import os
import time
import types

import case
import models
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


def parse():
    parser = case.parser(__doc__, ["float32", "tf32", "bf16"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: a GPU for each rank")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--strategy", choices=["alone", "ddp", "fsdp2"], default="alone")
    return parser.parse_args()


OPERATIONS = types.SimpleNamespace(
    xp=torch, complex=torch.complex, relu=functional.relu, silu=functional.silu, tanh=torch.tanh, mse=functional.mse_loss,
    gelu=lambda x: functional.gelu(x, approximate="tanh"),
    exact=lambda x: x.float(), as_type=lambda table, x: table.type_as(x),
    embedding=functional.embedding,
    layer_norm=lambda x, scale, bias, epsilon: functional.layer_norm(x, x.shape[-1:], scale, bias, epsilon),
    rms_norm=lambda x, scale, epsilon: functional.rms_norm(x, x.shape[-1:], scale, epsilon),
    causal_attention=lambda q, k, v: functional.scaled_dot_product_attention(
        *(one.transpose(1, 2) for one in (q, k, v)), is_causal=True, enable_gqa=q.shape[2] > k.shape[2]).transpose(1, 2),
    cross_entropy=lambda p, y: functional.cross_entropy(p.flatten(0, 1), y.flatten()),
    bce=lambda p, y: functional.binary_cross_entropy_with_logits(p, y, reduction="sum"),
)  # fmt: skip


class Net(nn.Module):
    """A model of models.py. Layers with a matrix are modules, which FSDP2 shards."""

    def __init__(self, given):
        super().__init__()
        self.ops, self.settings, self.names = OPERATIONS, given.settings, list(given.weights)
        self.predict, self.loss = models.MODELS[given.settings["kind"]]
        self.layers, self.others = nn.ModuleDict(), nn.ParameterDict()
        self.register_buffer("rope", torch.from_numpy(models.rope_table(given.settings)))
        for name, values in sorted(given.weights.items(), reverse=True):  # a weight comes before its bias
            unit, part = name.rsplit("/", 1)
            values = nn.Parameter(torch.from_numpy(values.copy()))
            if part == "weight" and values.ndim == 2 and unit != "embedding":
                self.layers[unit] = nn.Linear(*values.shape[::-1], bias=False)
                self.layers[unit].weight = values
            elif part == "bias" and unit in self.layers and self.settings["kind"] != "pinn":
                self.layers[unit].bias = values
            else:
                self.others[name] = values

    def forward(self, x, noise):
        return self.predict(self, x, noise)

    def dense(self, unit, x):
        return self.layers[unit](x)

    def parameter(self, name):
        return self.others[name]


def spread(net, options):
    """The model as a strategy trains it, and whether autocast has to shorten its operands."""
    shortens = options.precision == "bf16"
    if options.strategy == "ddp":
        return nn.parallel.DistributedDataParallel(net, broadcast_buffers=False), shortens
    if options.strategy == "fsdp2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if shortens else None, reduce_dtype=torch.float32)
        for layer in net.layers.values():
            fully_shard(layer, mp_policy=policy)
        return fully_shard(net, mp_policy=policy), False
    return net, shortens


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
    """Returns the case, its number of parameters, the seconds of timed steps, and the losses of all."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(rank)
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    given = case.load(options.case)
    net = Net(given).to(device)
    parameters = sum(one.numel() for one in net.parameters())
    model, autocasts = spread(net, options)

    def loss_of(x, y, noise):
        with torch.autocast(device.type, torch.bfloat16, enabled=autocasts):
            outputs = model(x, noise)
        return net.loss(net, outputs, y)

    if options.compiled:
        loss_of = torch.compile(loss_of)
    optimizer = torch.optim.Adam(model.parameters(), lr=given.settings["learning_rate"])
    rows = slice(rank * len(given.x) // ranks, (rank + 1) * len(given.x) // ranks)
    x, y = (torch.from_numpy(array[rows]).to(device) for array in (given.x, given.y))
    if given.settings["loss"] == "cross_entropy":
        x, y = x.long(), y.long()
    noise = None if given.noise is None else torch.from_numpy(given.noise[:, rows]).to(device)
    seconds, losses = [], []
    for step in range(options.warm_up + options.steps):
        if ranks > 1:
            dist.barrier()
        begin = seconds_now(device)
        drawn = None if noise is None else noise[step] if step < len(noise) else torch.randn_like(noise[0])
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y, drawn)
        loss.backward()
        optimizer.step()
        seconds.append(seconds_now(device) - begin)
        losses.append(loss.detach())
    seconds, losses = torch.tensor(seconds[options.warm_up :], device=device), torch.stack(losses)
    if ranks > 1:
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        dist.all_reduce(losses, dist.ReduceOp.SUM)
    return given, parameters, seconds.tolist(), (losses / ranks).tolist()


def main():
    options = parse()
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    device = choose_device(options)
    if options.strategy != "alone":
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    measured = time_steps(options, ranks, rank, device)
    if rank == 0:
        case.print_result(f"PyTorch {torch.__version__}", *measured)
    if options.strategy != "alone":
        dist.barrier()
        # The threads of FSDP2 over gloo would end the process with an error (PyTorch 2.15).
        os._exit(0)


if __name__ == "__main__":
    main()
