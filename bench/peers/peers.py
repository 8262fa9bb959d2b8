# SPDX-License-Identifier: Apache-2.0
"""Measures our training step and those of other libraries in turn, on the same cores or GPUs. See README.md."""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WIDTHS, BATCH = [1024, 4096, 4096, 1024], 1024


@dataclasses.dataclass(frozen=True)
class Row:
    """A library, its options and the number of ranks for one measured step."""

    name: str
    library: str
    ranks: int
    precision: str
    options: tuple = ()


def rows_of(ranks, precision):
    if ranks == 1:
        return [
            Row("Tessera", "tessera", 1, precision, ("data",)),
            Row("PyTorch eager", "torch", 1, precision),
            Row("PyTorch compiled", "torch", 1, precision, ("--compiled",)),
            Row("JAX jit", "jax", 1, precision),
        ]
    return [
        Row("Tessera data", "tessera", ranks, precision, ("data",)),
        Row("Tessera fsdp", "tessera", ranks, precision, ("fsdp",)),
        Row("PyTorch DDP", "torch", ranks, precision, ("--strategy", "ddp")),
        Row("PyTorch FSDP2", "torch", ranks, precision, ("--strategy", "fsdp2")),
        Row("JAX sharded", "jax", ranks, precision),
    ]


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--tessera-bench", required=True, help="program to measure")
    parser.add_argument("--mpirun", default="mpirun --bind-to core", help="launcher with its options (mpirun --bind-to core)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks (1 2)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: a GPU for each rank, without JAX (cpu)")
    parser.add_argument("--precision", nargs="+", choices=["float32", "tf32", "bf16"], help="tf32: on GPUs; all without this option")
    parser.add_argument("--only", nargs="+", choices=["tessera", "torch", "jax"], help="these libraries; all without this option")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians over these rounds (3)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps in a round (5)")
    parser.add_argument("--small", action="store_true", help="a tiny model, to see that everything runs")
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args(arguments)
    counts = {"--ranks": options.ranks, "--rounds": [options.rounds], "--steps": [options.steps]}
    for name, values in counts.items():
        for value in values:
            if value < 1:
                raise SystemExit(f"error: {name} {value}: must be a positive number")
    on_gpus = ["tf32"] if options.device == "cuda" else []
    options.precision = options.precision or ["float32", *on_gpus, "bf16"]
    if "tf32" in options.precision and not on_gpus:
        raise SystemExit("error: --precision tf32: needs --device cuda")
    if "jax" in (options.only or []) and on_gpus:
        raise SystemExit("error: --only jax: is measured on CPUs only")
    if options.json and os.path.exists(options.json) and not os.path.isfile(options.json):
        raise SystemExit(f"error: --json {options.json}: must be a regular file")
    return options


def run(command):
    """Runs a command whose processes have one thread each, and returns its standard output."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise SystemExit(f"error: {' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
    return done.stdout


def our_seconds(row, options):
    mixed = "bf16" if row.precision == "bf16" else "no"
    products = "tf32" if row.precision == "tf32" else "strict"
    with tempfile.TemporaryDirectory() as results:
        run(
            [*options.mpirun.split(), "-n", str(row.ranks), options.tessera_bench, "run", HERE / "step.toml"]
            + (["--small"] if options.small else [])
            + ["--set", f'grid=[{{strategy=["{row.options[0]}"],mesh=["data={row.ranks}"]}}]']
            + ["--set", f"distributed.mixed_precision={mixed}", "--set", f"model.matmul_precision={products}"]
            + ["--set", f"measure.steps={options.steps}"]
            + ["-o", pathlib.Path(results) / "study"]
        )
        (case,) = pathlib.Path(results).glob("study/cases/*/result.json")
        result = json.loads(case.read_text(encoding="utf-8"))
        (launch,) = pathlib.Path(results).glob("study/launches/*.json")
        backend = json.loads(launch.read_text(encoding="utf-8"))["provenance"]["kokkos"]["backend"]
    if (backend == "Cuda") != (options.device == "cuda"):
        raise SystemExit(f"error: --device {options.device}: {options.tessera_bench} computes with {backend}")
    if result["status"] != "ok":
        raise SystemExit(f"error: {row.name}: {result['reason']}")
    products = result["case"]["short_products"]
    return "Tessera" + (f", {products} products" if products else ""), result["step_seconds"]["median"]


def their_seconds(row, options):
    widths, batch = ([16, 32, 16], 32) if options.small else (WIDTHS, BATCH)
    step = ["--widths", *map(str, widths), "--batch", str(batch), "--steps", str(options.steps)]
    step += ["--precision", row.precision, *row.options]
    command = [sys.executable, HERE / f"{row.library}_step.py"]
    if row.library == "jax":
        step += ["--devices", str(row.ranks)]
    else:
        step += ["--device", options.device]
        if row.ranks > 1:
            command[1:1] = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={row.ranks}"]
    # One core for each rank, as ours have.
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[: row.ranks]))
    lines = run(["taskset", "-c", cores, *command, *step]).splitlines()
    seen = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
    return seen["library"], statistics.median(seen["step_seconds"])


def measure(options):
    rows = [row for n in options.ranks for p in options.precision for row in rows_of(n, p)]
    libraries = options.only or ["tessera", "torch"] + (["jax"] if options.device == "cpu" else [])
    rows = [row for row in rows if row.library in libraries]
    figures = {row: {**dataclasses.asdict(row), "device": options.device, "rounds": []} for row in rows}
    for number in range(options.rounds):
        for row in rows:
            print(f"-- round {number + 1} of {options.rounds}: {row.name}, {row.ranks} ranks, {row.precision}", file=sys.stderr)
            version, seconds = (our_seconds if row.library == "tessera" else their_seconds)(row, options)
            figures[row]["version"] = version
            figures[row]["rounds"].append(seconds)
    for figure in figures.values():
        figure["step_seconds"] = statistics.median(figure["rounds"])
    return list(figures.values())


def add_ratios(figures):
    """Adds to each figure its ratio to our first one with as many ranks and the same precision."""
    ours = {}
    for figure in figures:
        if figure["library"] == "tessera":
            ours.setdefault((figure["ranks"], figure["precision"]), figure["step_seconds"])
    for figure in figures:
        base = ours.get((figure["ranks"], figure["precision"]))
        figure["ratio_to_tessera"] = figure["step_seconds"] / base if base else None


def table_text(figures):
    lines = [f"{'':<18} {'ranks':>5} {'type':<8} {'step':>10} {'over ours':>9}  version"]
    for figure in figures:
        ratio = figure["ratio_to_tessera"]
        lines.append(
            f"{figure['name']:<18} {figure['ranks']:>5} {figure['precision']:<8} "
            f"{1000 * figure['step_seconds']:>7.1f} ms {f'{ratio:.2f}' if ratio else '-':>9}  {figure['version']}"
        )
    return "\n".join(lines)


def main():
    options = parse()
    figures = measure(options)
    add_ratios(figures)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"schema_version": 1, "peers": figures}, indent=2) + "\n", encoding="utf-8")
    print(table_text(figures))


if __name__ == "__main__":
    main()
