#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: chakra_test.py PROGRAM INPUTS

Reads the execution traces of `tessera plan --chakra` and compares them with the plan: every call and byte of every rank,
the order of the schedule, FLOPs and times. Then it executes the traces of all ranks, as a simulator does.
"""
import collections
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROGRAM, INPUTS = sys.argv[1], pathlib.Path(sys.argv[2])
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7  # of the enum NodeType
OPERATIONS = {0: "all_reduce", 2: "all_gather", 6: "all_to_all", 7: "reduce_scatter"}  # of CollectiveCommType
# The fields that are written, as name: number, type. A type in capitals is a message; "*" marks a list.
SCHEMA = {
    "ATTRIBUTE": {"name": (1, "string"), "int32_val": (7, "int32"), "int64_val": (9, "int64"), "uint64_val": (13, "uint64"),
                  "bool_val": (27, "bool"), "string_val": (29, "string")},
    "METADATA": {"version": (1, "string"), "attr": (2, "*ATTRIBUTE")},
    "NODE": {"id": (1, "uint64"), "name": (2, "string"), "type": (3, "int32"), "data_deps": (5, "*uint64"),
             "duration_micros": (7, "uint64"), "attr": (10, "*ATTRIBUTE")},
}


def message_types():
    file = descriptor_pb2.FileDescriptorProto(name="chakra.proto", package="read", syntax="proto3")
    for message, fields in SCHEMA.items():
        described = file.message_type.add(name=message)
        if message == "ATTRIBUTE":
            described.oneof_decl.add(name="value")
        for name, (number, kind) in fields.items():
            base = kind.lstrip("*")
            field = described.field.add(name=name, number=number, label=3 if kind[0] == "*" else 1)
            if base.isupper():
                field.type, field.type_name = field.TYPE_MESSAGE, f".read.{base}"
            else:
                field.type = getattr(field, f"TYPE_{base.upper()}")
            if name.endswith("_val"):
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    get = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: get(pool.FindMessageTypeByName(f"read.{name}")) for name in SCHEMA}


TYPES = message_types()


def attributes(message):
    values = {one.name: getattr(one, one.WhichOneof("value")) for one in message.attr}
    assert len(values) == len(message.attr), f"an attribute occurs twice: {message}"
    return values


def read_trace(path):
    """Returns the metadata and the nodes, which must consist of the fields of SCHEMA alone."""
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        size, shift = 0, 0
        while True:
            size |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        message = TYPES["NODE" if messages else "METADATA"].FromString(data[at : at + size])
        known = message.SerializeToString()
        message.DiscardUnknownFields()
        assert message.SerializeToString() == known, f"{path}: unknown fields in {message}"
        messages.append(message)
        at += size
    assert at == len(data), f"{path} ends within a message"
    return messages[0], messages[1:]


def is_in(rank, ranges):
    """Returns whether a text such as "0-2,5" has the rank."""
    bounds = [[int(end) for end in part.split("-")] for part in ranges.split(",")]
    return any(one[0] <= rank <= one[-1] for one in bounds)


def tessera(*arguments):
    return subprocess.run([PROGRAM, "plan", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


class Case:
    """A plan and its traces, in a directory that is removed afterwards."""

    def __init__(self, directory, name, options):
        self.name = name
        done = tessera(str(INPUTS / f"{name}.toml"), *options.split(), "--calls", "--schedule", "--json", f"{directory}/plan.json",
                       "--chakra", f"{directory}/traces")
        assert done.returncode == 0, done.stderr
        self.output, self.warnings = done.stdout, done.stderr
        self.plan = json.loads(pathlib.Path(directory, "plan.json").read_text())
        traces = pathlib.Path(directory, "traces")
        self.groups = {name: ranks for name, ranks in json.loads((traces / f"{name}.groups.json").read_text()).items()}
        self.ranks = range(self.plan["num_ranks"])
        assert {path.name for path in traces.iterdir()} == {f"{name}.{rank}.et" for rank in self.ranks} | {f"{name}.groups.json"}
        self.metadata, self.nodes = zip(*(read_trace(traces / f"{name}.{rank}.et") for rank in self.ranks))
        self.attributes = [{node.id: attributes(node) for node in nodes} for nodes in self.nodes]

    def coordinate(self, rank, axis):
        names, shape = self.plan["mesh"]["axis_names"], self.plan["mesh"]["shape"]
        for name, size in reversed(list(zip(names, shape))):
            if name == axis:
                return rank % size
            rank //= size
        return 0

    def check_rank(self, rank):
        nodes, values = self.nodes[rank], self.attributes[rank]
        assert attributes(self.metadata[rank]) == {"mesh": self.plan["mesh"]["spec"]}
        assert [node.id for node in nodes] == list(range(1, len(nodes) + 1))
        counted = collections.Counter()
        for node in nodes:
            of = values[node.id]
            assert of["is_cpu_op"] is False and all(before < node.id for before in node.data_deps), node
            if node.type == COMPUTE:
                assert of["num_ops"] >= 1 and of["tensor_size"] >= 0, node
                continue
            if node.type == COLLECTIVE:
                operation, payload = OPERATIONS[of["comm_type"]], of["payload_bytes"]
                group = self.groups[of["pg_name"]]
                axes = of["axis"].split("+")
                assert rank in group and group == sorted(set(group)) and len(group) > 1, (node, group)
                others = [axis for axis in self.plan["mesh"]["axis_names"] if axis not in axes]
                assert len({tuple(self.coordinate(one, axis) for axis in others) for one in group}) == 1, (node, group)
                if operation in ("all_reduce", "reduce_scatter"):
                    assert of["comm_size"] == payload, node
                elif operation == "all_gather":
                    assert of["comm_size"] == -(-payload // len(group)), node
                else:
                    assert of["comm_size"] == payload or of["uneven_shares"], node
            else:
                operation, payload = "send" if node.type == SEND else "receive", of["comm_size"]
                assert of["comm_src" if node.type == SEND else "comm_dst"] == rank, node
            counted[of["axis"], operation, of["what"], "calls"] += 1
            counted[of["axis"], operation, of["what"], "payload_bytes"] += payload
        planned = collections.Counter()
        for call in self.plan["collectives"]:
            if call["cadence"] == "step" and is_in(rank, call["ranks"]):
                for count in ("calls", "payload_bytes"):
                    planned[call["axis"], call["operation"], call["what"], count] += call[count]
        assert +counted == +planned, f"rank {rank} has {counted}, planned are {planned}"
        self.check_order(rank)

    def check_order(self, rank):
        """The nodes come in the order of the schedule, and what follows the finish of a call depends on it."""
        stage = self.coordinate(rank, "pipeline")
        schedule = iter([action["text"] for action in self.plan["actions"] if action["stage"] == stage])
        text, started, finished, before = None, {}, 0, {0: 0}  # sets of nodes are bits of a number
        for node in self.nodes[rank]:
            while text != node.name:
                text = next(schedule)
                if text.startswith("finish_"):
                    finished |= started.pop(text.replace("finish_", "start_"))
            before[node.id] = 0
            for one in node.data_deps:
                before[node.id] |= before[one] | 1 << one
            assert finished & ~before[node.id] == 0, f"{node} does not depend on all calls that are finished"
            if text.startswith("start_"):
                started[text] = 1 << node.id

    def hidden(self, rank):
        """Returns how many kernels do not depend on a call that starts before them."""
        before, calls, count = {}, set(), 0
        for node in self.nodes[rank]:
            before[node.id] = frozenset(node.data_deps).union(*(before[one] for one in node.data_deps))
            count += node.type == COMPUTE and not calls <= before[node.id]
            if node.type == COLLECTIVE:
                calls.add(node.id)
        return count

    def execute(self):
        """Executes the traces: ranks of a group call in one order with equal sizes, and every message is received."""
        done, next_call, met, sent, progress = [set() for _ in self.ranks], {}, {}, collections.Counter(), True
        waiting = [list(nodes) for nodes in self.nodes]
        while progress:
            progress = False
            for rank in self.ranks:
                left = []
                for node in waiting[rank]:
                    of = self.attributes[rank][node.id]
                    ready = done[rank].issuperset(node.data_deps)
                    if ready and node.type == COLLECTIVE:
                        group = of["pg_name"]
                        number = next_call.setdefault((rank, node.id), sum(1 for key in met if key[0] == group and rank in met[key]))
                        members = met.setdefault((group, number), {})
                        members[rank] = (of["comm_type"], of["comm_size"])
                        assert len(set(members.values())) == 1, f"group {group} calls {members}"
                        ready = len(members) == len(self.groups[group])
                    elif ready and node.type != COMPUTE:
                        message = tuple(of[f"comm_{key}"] for key in ("src", "dst", "tag", "size"))
                        ready = node.type == SEND or sent[message] > 0
                        sent[message] += (1 if node.type == SEND else -1) if ready else 0
                    if ready:
                        done[rank].add(node.id)
                        progress = True
                    else:
                        left.append(node)
                waiting[rank] = left
        assert not any(waiting), f"stops before {[left[0].name for left in waiting if left]}"
        assert not +sent, f"nobody receives {+sent}"

    def check(self):
        for rank in self.ranks:
            self.check_rank(rank)
        flops = collections.Counter()
        for nodes, values in zip(self.nodes, self.attributes):
            for node in nodes:
                if node.type == COMPUTE and values[node.id]["num_ops"] > 1:
                    flops[node.name.split("(")[0].split("_")[0]] += values[node.id]["num_ops"]
        assert flops["forward"] == self.plan["flops"]["forward"] + self.plan["flops"]["recomputed"], (flops, self.plan["flops"])
        assert flops["backward"] >= self.plan["flops"]["backward"], (flops, self.plan["flops"])
        self.execute()


@contextlib.contextmanager
def case(name, options):
    with tempfile.TemporaryDirectory() as directory:
        one = Case(directory, name, options)
        one.check()
        yield one


def main():
    machine = f"--machine {INPUTS}/machines/gpu_cluster.toml"
    with case("tutorial", f"--mesh data=4 --strategy data {machine}") as one:
        predicted = one.plan["predicted"]
        seconds = sum(predicted[key] for key in ("product_seconds", "kernel_seconds", "optimizer_seconds", "launch_seconds"))
        for nodes in one.nodes:
            assert abs(sum(node.duration_micros for node in nodes) - 1e6 * seconds) <= 1, seconds
        assert "Execution traces of 4 ranks in " in one.output and "--chakra" not in one.warnings
    with case("fsdp", "--mesh fsdp=4") as one:
        assert one.hidden(0) > 0 and not any(node.duration_micros for node in one.nodes[0])
    with case("fsdp", "--mesh fsdp=4 --set distributed.overlap=false --set distributed.prefetch=false") as one:
        assert one.hidden(0) == 0
    with case("fsdp", "--mesh fsdp=3") as one:
        assert "shares of unequal sizes" in one.warnings
    for name, options in (
        ("tutorial", "--mesh data=3"),
        ("tensor", "--mesh model=3"),
        ("hybrid", "--mesh data=2,fsdp=2"),
        ("transformer", "--mesh data=2,model=2 --set distributed.sequence_parallel=true"),
        ("transformer", "--mesh pipeline=4,data=2 --set training.microbatches=4 --set model.transformer.tied=true"),
        ("transformer", "--mesh pipeline=2,model=2 --set training.microbatches=4 --set distributed.schedule=zero_bubble"),
        ("transformer", "--mesh data=2 --set numerics.reproducible=true"),
        ("transformer", "--mesh data=2 --set training.activation_checkpointing=full"),
        ("long_context", "--mesh context=4 --set distributed.context_attention=ring"),
        ("long_context", "--mesh context=4 --set distributed.context_attention=all_to_all"),
        ("moe", "--mesh fsdp=2,expert=2"),
    ):
        with case(name, options):
            pass
    tutorial = str(INPUTS / "tutorial.toml")
    # Traces of some ranks are those of all ranks.
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for ranks in ([], ["--chakra-ranks", "3,1"]):
            traces = pathlib.Path(directory, f"of{len(ranks)}")
            assert tessera(str(INPUTS / "hybrid.toml"), "--mesh", "data=2,fsdp=2", "--chakra", str(traces), *ranks).returncode == 0
            files.append({path.name: path.read_bytes() for path in traces.glob("*.et")})
        assert sorted(files[1]) == ["hybrid.1.et", "hybrid.3.et"] and files[1].items() <= files[0].items()
    for arguments, message in (
        (("--mesh", "data=8", "--chakra", "t", "--chakra-ranks", "5,8"), "--chakra-ranks = 8: must be 0 to 7"),
        (("--mesh", "data=8", "--chakra", "t", "--chakra-ranks", "a"), "--chakra-ranks"),
        (("--mesh", "data=2000", "--set", "training.batch_size=4000", "--set", "data.samples=4000", "--chakra", "t"), "--chakra-ranks = all: would be 2,000 files"),
        (("--chakra-ranks", "0",), "--chakra-ranks requires --chakra"),
        (("--chakra", tutorial), "--chakra = " + tutorial),
        (("--chakra", ".", "--json", "./tutorial.7.et"), "must be another file than"),
        (("--chakra", "t", "--advise"), "--advise compares plans and takes no"),
    ):
        done = tessera(tutorial, *arguments)
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, (arguments, done)
    assert not pathlib.Path("t").exists()


main()
