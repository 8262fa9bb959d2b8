# SPDX-License-Identifier: Apache-2.0
"""The parts of check.py. Each returns what the document keeps, or throws."""

import json
import re
import shutil
import textwrap
from typing import Callable, NamedTuple

GOLDEN = {"strict": (20.304867, 3.199371), "tf32": (20.304531, 3.199348)}
# cuBLAS promises neither that it rounds to TF32 nor how. An operand may be off by 2^-10, and a prediction follows from two products.
OF_TF32 = 2**-8
MODELS = ["tutorial", "residual", "vae", "fno", "pinn", "transformer"]
# A Llama of 8 billion parameters as torchtitan's users train it (bench/PUBLISHED.md), and a tiny one.
LLAMA = ["training.batch_size=256", "data.samples=768"]
SMALL_LLAMA = [f"model.transformer.{size}" for size in ("blocks=1", "width=64", "inner_width=64", "context=31", "vocabulary=64")]


class Ended(Exception):
    """A part has failed, is out of time ("timeout") or lacks what it needs ("skipped"). The document keeps `partial`."""

    def __init__(self, reason, partial=None, status="failed"):
        super().__init__(reason)
        self.partial, self.status = partial, status


def tests_in(said):
    """What GoogleTest has printed so far."""
    failed = set(re.findall(r"^\[  FAILED  \] ([\w./]+)(?:,| \()", said, re.M))
    return {"passed": len(re.findall(r"^\[       OK \]", said, re.M)), "failed": sorted(failed)}


def train(kit, model, name, *settings, **how):
    """Trains a model of inputs/ on one rank for one epoch of few samples, and returns the output and the document."""
    file = kit.out / f"{name}_{model}.json"
    one_rank = ["--strategy", "data", "--mesh", "data=1", "--set", "training.num_epochs=1", "--set", "data.samples=128"]
    changes = [word for setting in settings for word in ("--set", setting)]
    said = kit.mpi(1, "tessera", "run", kit.inputs / f"{model}.toml", *one_rank, *changes, "--json", file, **how)
    return said, json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def golden(kit):
    """The digits of the tutorial, beside those of a CPU."""
    losses = {"expected": GOLDEN}
    for precision, wanted in GOLDEN.items():
        settings = (f"model.matmul_precision={precision}", "training.num_epochs=20", "data.samples=256")
        results = train(kit, "tutorial", f"golden_{precision}", *settings)[1]
        losses[precision] = [results["initial_loss"], results["final_loss"]]
        is_rough = precision == "tf32" and kit.on_gpu
        if any(abs(a - b) > (OF_TF32 * b if is_rough else 2e-6) for a, b in zip(losses[precision], wanted)):
            raise Ended(f"{precision}: {losses[precision]} where {list(wanted)} is expected", losses)
    return losses


def once(kit):
    """A few steps of each model: calls, bytes and memory as planned."""
    for model in [*MODELS, "moe"]:
        train(kit, model, "once")


def tests(program, ranks, few, gpu=False):
    def work(kit):
        kit.needs(gpu=gpu)
        # The others read files of the source.
        chosen = few if kit.small or gpu else "-Inputs.*:Config*:MachineFile.*:OtherNames.*"
        counts = tests_in(kit.mpi(ranks, program, f"--gtest_filter={chosen}", allowed=(0, 1)))
        if counts["failed"] or not counts["passed"]:
            raise Ended(f"{len(counts['failed'])} tests failed: {counts['failed'][:5]}", counts)
        return counts

    return work


def study(name, ranks):
    """Runs a study of inputs/: losses against one rank, calls and memory against the plan, and times."""

    def work(kit):
        shutil.rmtree(kit.out / name, ignore_errors=True)  # of an earlier run
        small = ["--small"] if kit.small else []
        kit.mpi(ranks, "tessera-bench", "run", kit.inputs / f"{name}.toml", "-o", kit.out / name, *small, allowed=(0, 2, 3, 4))
        kept = ("label", "status", "reason", "step_seconds_median", "product_share", "predicted_step_seconds")
        rows = json.loads((kit.out / name / "summary.json").read_text(encoding="utf-8"))["cases"]
        rows = [{key: row[key] for key in kept} for row in rows]
        bad = [f"{row['label']}: {row['status']}" for row in rows if row["status"] not in ("ok", "skipped")]
        if bad:
            raise Ended(f"{len(bad)} of {len(rows)} cases: {bad[:3]}", rows)
        return rows

    return work


def sanitizer(tool, *models):
    def work(kit):
        kit.needs("compute-sanitizer", gpu=True)
        before = ("compute-sanitizer", "--tool", tool, "--error-exitcode", 86)
        seen = {}
        for model in models:
            said = train(kit, model, tool, "data.validation_samples=0", before=before, allowed=(0, 86))[0]
            seen[model] = re.findall(r"SUMMARY: (.*)", said)
        # "5 hazards displayed (0 errors, 5 warnings)" are five too many.
        nothing = r"\b0 hazards" if tool == "racecheck" else r"\b0 errors"
        if not all(lines and re.search(nothing, lines[-1]) for lines in seen.values()):
            raise Ended(f"{tool} found {seen}", seen)
        return seen

    return work


def launches(kit):
    """What a step launches; the host must not wait in it. How long a step of the tutorial takes; the goal is 60 us."""
    found, waits = {}, {}
    for model in MODELS:
        file = kit.out / f"launches_{model}.txt"
        tool = {"KOKKOS_TOOLS_LIBS": str(kit.bin.parent / "lib/libtessera_launches.so"), "TESSERA_LAUNCHES": str(file)}
        train(kit, model, "counted", env=tool)
        one = json.loads(file.read_text(encoding="utf-8"))
        found[model] = {key: sum(one[key].values()) / one["steps"] for key in ("kernels", "products", "copies", "fences")}
        # Kokkos may allocate scratch memory in the first step.
        waits.update({f"{model}: {name}": number for name, number in one["fences"].items() if number >= one["steps"]})
    epochs = "training.num_epochs=2" if kit.small else "training.num_epochs=4000"
    found["tutorial_step_seconds"] = train(kit, "tutorial", "timed", epochs)[1]["seconds_per_step"]
    if waits:
        raise Ended(f"the host waits in steps: {waits}", found)
    return found


def peers(name, model, *settings):
    """The step of a model beside PyTorch's, eager and compiled, in float32, TF32 and bf16."""

    def work(kit):
        options = ["--models", model, "--device", "cuda" if kit.on_gpu else "cpu", "--steps", 20]
        options += ["--small"] if kit.small else [word for setting in settings for word in ("--set", setting)]
        options += [] if kit.has_torch() else ["--only", "tessera"]
        file = kit.out / f"{name}.json"
        kit.run("python3", "-B", kit.peers, "--tessera-bench", kit.bin / "tessera-bench", "--mpirun", "mpirun", "--ranks", 1, "--rounds", 1,
                "--json", file, *options)  # fmt: skip
        return json.loads(file.read_text(encoding="utf-8"))["peers"]

    return work


def transformer(width, heads):
    sizes = {"width": width, "heads": heads, "inner_width": 4 * width, "context": 511}
    return peers(f"transformer_{width}", "transformer", *(f"model.transformer.{key}={size}" for key, size in sizes.items()),
                 "training.batch_size=8")  # fmt: skip


def one_of_many(kit):
    """The time and the memory of one of 128 ranks that share the parameters of a large Llama."""
    file, many = kit.out / "one_of_many.json", ["--mesh", "fsdp=128", "--strategy", "fsdp", "--as-rank", 5]
    settings = [*LLAMA, *(SMALL_LLAMA if kit.small else []), "distributed.mixed_precision=bf16"]
    changes = [word for setting in settings for word in ("--set", setting)]
    kit.mpi(1, "tessera", "run", kit.inputs / "llama3_8b.toml", *many, *changes, "--json", file)
    found = json.loads(file.read_text(encoding="utf-8"))
    return {key: found[key] for key in ("seconds_per_step", "as_planned", "parameters", "measured")}


def calibrate(kit):
    """The machine file of this GPU, for predictions; two ranks share the GPU."""
    file = kit.out / "machine.toml"
    kit.mpi(2, "tessera-bench", "calibrate", "-o", file, "--gemm-size", 64 if kit.small else 4096)
    return file.read_text(encoding="utf-8").splitlines()


def cublas(kit):
    """FLOP/s of the products of the large step in cuBLAS by itself, and bytes/s of a copy, both through PyTorch."""
    kit.needs(gpu=True)
    if not kit.has_torch():
        raise Ended("python3 has no PyTorch that sees a GPU", status="skipped")
    program = """
        import json, torch
        def seconds(f):
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            [f() for _ in range(5)]; a.record(); [f() for _ in range(20)]; b.record(); b.synchronize()
            return a.elapsed_time(b) / 20e3
        v = torch.empty(1 << 28, device="cuda"); u = torch.empty_like(v)
        found = {"copy": 8 * v.numel() / seconds(lambda: u.copy_(v))}
        for name, dtype in (("float32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
            torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
            for k, n in ((1024, 4096), (4096, 4096), (4096, 1024)):
                x, w, y = (torch.randn(s, device="cuda", dtype=dtype) for s in ((1024, k), (k, n), (1024, n)))
                for label, f in (("forward", lambda: x @ w), ("input", lambda: y @ w.T), ("weight", lambda: x.T @ y)):
                    found[f"{name}/{label}/k:{k}/n:{n}"] = 2048 * k * n / seconds(f)
        print(json.dumps(found))"""
    return json.loads(kit.run("python3", "-c", textwrap.dedent(program)).splitlines()[-1])


def micro(kit):
    """Rates of our products, kernels and layers."""
    file = kit.out / "micro.json"
    small = ["--iterations", 1, "--widths", "8,16,4", "--batch", 4] if kit.small else []
    kit.mpi(1, "tessera-micro", f"--benchmark_out={file}", "--benchmark_out_format=json", *small)
    return json.loads(file.read_text(encoding="utf-8"))["benchmarks"]


class Part(NamedTuple):
    name: str
    seconds: float  # limit
    work: Callable
    measures: bool = False  # alone on the GPU, after all other parts, which run at once
    is_first: bool = False  # of --first


PARTS = [
    Part("machine", 60, lambda kit: kit.describe(), True, True),
    Part("golden", 80, golden, is_first=True),
    Part("once", 80, once, is_first=True),
    Part("memcheck", 80, sanitizer("memcheck", "tutorial"), is_first=True),
    Part("nccl", 60, tests("tessera_mpi_tests", 1, "NcclAlone*", gpu=True)),
    Part("models", 180, study("every_model", 2)),
    Part("tests", 180, tests("tessera_serial_tests", 1, "Gemm*")),
    Part("tests_1", 180, tests("tessera_mpi_tests", 1, "Golden.*")),
    Part("tests_2", 180, tests("tessera_mpi_tests", 2, "Golden.*")),
    Part("memcheck_2", 150, sanitizer("memcheck", "transformer", "fno")),
    Part("racecheck", 150, sanitizer("racecheck", "tutorial", "transformer", "fno")),
    Part("launches", 60, launches, True),
    Part("large", 150, peers("large", "mlp"), True),
    Part("transformer_1024", 90, transformer(1024, 16), True),
    Part("transformer_4096", 120, transformer(4096, 32), True),
    Part("llama", 60, peers("llama", "llama"), True),
    Part("fno", 60, peers("fno", "fno"), True),
    Part("steps", 90, study("gpu_steps", 1), True),
    Part("cublas", 40, cublas, True),
    Part("micro", 60, micro, True),
    Part("one_of_many", 120, one_of_many, True),
    Part("calibrate", 150, calibrate, True),
]
