# SPDX-License-Identifier: Apache-2.0
"""What a plan says about a training, as sections of text: nothing about hosts, versions or times."""

import collections
import hashlib
import itertools
import math
import re


def numbers_of(ranges):
    """Returns the ranks of "0-2,5"."""
    ranks = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", ranges):
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def ranges_of(ranks):
    """Returns ranks as "0-2,5"."""
    texts = []
    for _, run in itertools.groupby(enumerate(sorted(ranks)), lambda pair: pair[1] - pair[0]):
        run = [rank for _, rank in run]
        texts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ",".join(texts)


def by_value(values):
    """Returns {rank: value} as "VALUE on 0-2; VALUE on 3". Ranks with one value are one group, however the program has
    grouped them."""
    groups = collections.defaultdict(list)
    for rank, value in values.items():
        groups[value].append(rank)
    ordered = sorted(groups.items(), key=lambda group: min(group[1]))
    return "; ".join(f"{value} on {ranges_of(ranks)}" for value, ranks in ordered)


def setup_lines(plan):
    """Returns what is planned, and the number of parameters."""
    keys = ("num_ranks", "strategy", "dtype", "state_dtype", "parameters", "steps_per_epoch")
    return [f"mesh {plan['mesh']['spec']}"] + [f"{key} {plan[key]}" for key in keys], plan["parameters"]


def call_lines(plan, key):
    """Returns the calls or payload bytes of every kind of call, and their sum over the ranks in a step."""
    rows, total = collections.defaultdict(collections.Counter), 0
    for call in plan["collectives"]:
        across = " across nodes" if call.get("across_nodes") else ""
        name = f"per {call['cadence']}: {call['axis']} {call['operation']} of {call['what']}{across}"
        for rank in numbers_of(call["ranks"]):
            rows[name][rank] += call[key]
            total += call[key] if call["cadence"] == "step" else 0
    lines = sorted(f"{name}: {by_value(ranks)}" for name, ranks in rows.items())
    ledger = [f"rank 0 in a step: {call['axis']} {call['operation']} {call[key]}" for call in plan["traffic_of_rank_0"]]
    return lines + sorted(ledger), total


def memory_lines(plan):
    """Returns the bytes of each kind, and the largest sum on a rank. Scratch of 16-bit products depends on the libraries of
    the build and on the processor, so it does not count."""
    rows = collections.defaultdict(dict)
    for group in plan["memory"]:
        sizes = dict(group["bytes"])
        if plan["dtype"] in ("bfloat16", "float16"):
            sizes["total"] -= sizes.pop("scratch")
        for kind, size in sizes.items():
            for rank in numbers_of(group["ranks"]):
                rows[kind][rank] = size
    return [f"{kind}: {by_value(ranks)}" for kind, ranks in sorted(rows.items())], max(rows["total"].values())


def flops_lines(plan):
    """Returns the FLOPs of a step on all ranks. Those above 2^53 are no integers, and are rounded."""
    return [f"{name} {count:.12g}" if isinstance(count, float) else f"{name} {count}"
            for name, count in sorted(plan["flops"].items())], sum(plan["flops"].values())  # fmt: skip


def tensors_of(plan, of_state):
    """Returns the parameters with their gradients and moments, or else the tensors of a batch."""
    parameters = {tensor["path"] for tensor in plan["tensors"] if tensor["role"] == "parameter"}
    return [tensor for tensor in plan["tensors"] if of_state == (
        tensor["role"] in ("parameter", "moment") or tensor["path"].removesuffix(".gradient") in parameters)]  # fmt: skip


def name_of(tensor):
    return f"stage {tensor['stage']} {tensor['role']} {tensor['path']} {tensor['dtype']}"


def tensor_lines(plan, of_state):
    """Returns shape, PartitionSpec and local shapes of each tensor, and the number of tensors."""
    lines = []
    for tensor in tensors_of(plan, of_state):
        local = {}
        for group in tensor["local"]:
            kept = f" keeps {group['kept_elements']}" if "kept_elements" in group else ""
            for rank in numbers_of(group["ranks"]):
                local[rank] = "x".join(map(str, group["shape"])) + kept
        shares = f" in shares over {tensor['shares_over']}" if "shares_over" in tensor else ""
        shape = "x".join(map(str, tensor["shape"]))
        lines.append(f"{name_of(tensor)} {shape} {tensor['spec']}{shares}: {by_value(local)}")
    return sorted(lines), len(lines)


def element_lines(plan):
    """Returns the elements that each rank has of the tensors of a batch, whatever their dimensions are called, and the sum
    over tensors and ranks."""
    lines, total = [], 0
    for tensor in tensors_of(plan, False):
        local = {rank: math.prod(group["shape"]) for group in tensor["local"] for rank in numbers_of(group["ranks"])}
        lines.append(f"{name_of(tensor)}: {by_value(local)}")
        total += sum(local.values())
    return sorted(lines), total


def action_lines(plan):
    """Returns the actions of each stage in order, neighbours of a microbatch in one line, and their number."""
    lines = []
    for action in plan["actions"]:
        times = f" and {action['microbatches'] - 1} more" if "microbatches" in action else ""
        head = f"stage {action['stage']} microbatch {action['microbatch']}{times}:"
        if lines and lines[-1][0] == head:
            lines[-1].append(action["text"])
        else:
            lines.append([head, action["text"]])
    return [" ".join(line) for line in lines], len(plan["actions"])


def checkpoint_lines(plan):
    """Returns the bytes that each rank writes and reads of a checkpoint, and the sum of those written."""
    written, read = {}, {}
    for group in plan["checkpoint"]:
        for rank in numbers_of(group["ranks"]):
            written[rank], read[rank] = group["written_bytes"], group["read_bytes"]
    return [f"written: {by_value(written)}", f"read: {by_value(read)}"], sum(written.values())


SECTIONS = {
    "setup": setup_lines,
    "calls": lambda plan: call_lines(plan, "calls"),
    "bytes": lambda plan: call_lines(plan, "payload_bytes"),
    "memory": memory_lines,
    "flops": flops_lines,
    "state": lambda plan: tensor_lines(plan, True),
    "activations": lambda plan: tensor_lines(plan, False),
    "elements": element_lines,
    "actions": action_lines,
    "checkpoint": checkpoint_lines,
}


def sections_of(plan):
    """Returns {section: (text, amount)} of a plan in JSON. A plan without checkpoints has no such section."""
    sections = {}
    for name, lines_of in SECTIONS.items():
        if name != "checkpoint" or plan["checkpoint"]:
            lines, amount = lines_of(plan)
            sections[name] = ("".join(line + "\n" for line in lines), amount)
    return sections


def digest_of(text, amount):
    number = f"{amount:.12g}" if isinstance(amount, float) else str(amount)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:12]} {number}"
