# SPDX-License-Identifier: Apache-2.0
"""Measures our training step and those of other libraries in turn, on the same cores or GPUs. See README.md."""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# A setting of each tiny model.
SMALL = {"mlp": "model.widths=[16,32,16]", "transformer": "model.transformer.width=8", "llama": "model.transformer.width=16",
         "fno": "model.fno.width=4", "vae": "model.vae.hidden=[16,8]", "pinn": "model.pinn.width=8"}  # fmt: skip
# Relative differences from our losses that are rounding. The second step's loss also tests gradients and optimizer.
TOLERANCE = {"float32": 1e-5, "tf32": 2e-3, "bf16": 2e-2}


@dataclasses.dataclass(frozen=True)
class Row:
    """A library, its options, the model and the number of ranks for one measured step."""

    model: str
    name: str
    library: str
    ranks: int
    precision: str
    options: tuple = ()


# Library, name and options of each row: on one rank, and on several.
ROWS = (
    [("tessera", "Tessera", ("data",)), ("torch", "PyTorch eager", ()), ("torch", "PyTorch compiled", ("--compiled",)),
     ("jax", "JAX jit", ())],
    [("tessera", "Tessera data", ("data",)), ("tessera", "Tessera fsdp", ("fsdp",)),
     ("torch", "PyTorch DDP", ("--strategy", "ddp")), ("torch", "PyTorch FSDP2", ("--strategy", "fsdp2")),
     ("jax", "JAX sharded", ())],
)  # fmt: skip


def rows_of(model, ranks, precision):
    return [Row(model, name, library, ranks, precision, options) for library, name, options in ROWS[ranks > 1]]


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--tessera-bench", required=True, help="program to measure")
    parser.add_argument("--mpirun", help="launcher with its options (mpirun --bind-to core, with a core for each thread)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks (1 2)")
    parser.add_argument("--threads", type=int, default=1, help="of each rank (1)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: a GPU for each rank, without JAX (cpu)")
    parser.add_argument("--precision", nargs="+", choices=["float32", "tf32", "bf16"], help="tf32: on GPUs; all without this option")
    parser.add_argument("--models", nargs="+", choices=list(SMALL), default=["mlp"], help="models to train (mlp)")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="a setting of the model's file")
    parser.add_argument("--only", nargs="+", choices=["tessera", "torch", "jax"], help="these libraries; all without this option")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians over these rounds (3)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps in a round (5)")
    parser.add_argument("--small", action="store_true", help="tiny models, to see that everything runs")
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args(arguments)
    counts = {"--ranks": options.ranks, "--threads": [options.threads], "--rounds": [options.rounds], "--steps": [options.steps]}
    for name, values in counts.items():
        for value in values:
            if value < 1:
                raise SystemExit(f"error: {name} {value}: must be a positive number")
    options.mpirun = options.mpirun or f"mpirun --map-by slot:PE={options.threads} --bind-to core"
    on_gpus = ["tf32"] if options.device == "cuda" else []
    options.only = options.only or ["tessera", "torch"] + ([] if options.device == "cuda" else ["jax"])
    options.precision = options.precision or ["float32", *on_gpus, "bf16"]
    if "tf32" in options.precision and not on_gpus:
        raise SystemExit("error: --precision tf32: needs --device cuda")
    if "jax" in options.only and options.threads > 1 and max(options.ranks) > 1:
        raise SystemExit(f"error: --threads {options.threads}: several devices of JAX have one thread each; needs --ranks 1 or --only")
    if "jax" in options.only and on_gpus:
        raise SystemExit("error: --only jax: is measured on CPUs only")
    if options.json and os.path.exists(options.json) and not os.path.isfile(options.json):
        raise SystemExit(f"error: --json {options.json}: must be a regular file")
    for library in options.only:
        if library != "tessera" and not importlib.util.find_spec(library):
            raise SystemExit(f"error: {sys.executable} has no {library}: scripts/peers.sh installs it; --only measures without it")
    return options


def file_and_settings(model, options):
    file = HERE.parents[1] / "inputs" / f"{'large' if model == 'mlp' else model}.toml"
    text = [f"data.file={HERE / 'peers.py'}"] if model == "llama" else []
    settings = text + ([SMALL[model], "training.batch_size=4"] if options.small else []) + options.set
    # The data are one batch.
    return file, [*settings, f"data.samples={last_value('batch_size', file, settings)}"]


def last_value(key, file, settings):
    """Returns the value of a key of [training]: from the settings or, if they have none, from the file."""
    lines = "\n".join([file.read_text(encoding="utf-8"), *settings])
    return re.findall(rf"^(?:training\.)?{key} *= *([^\s#]+)", lines, re.M)[-1]


def make_case(model, options, folder):
    """Trains one step of ours with a learning rate of 0. Leaves its settings, its batch, its weights and the learning rate
    of the measured steps in the folder."""
    file, settings = file_and_settings(model, options)
    rate = last_value("learning_rate", HERE / "step.toml", settings)
    settings = [*settings, "data.validation_samples=0", "training.validate_every=1", "training.num_epochs=1",
                "training.learning_rate=0", f"checkpoint.directory={folder}/saves"]  # fmt: skip
    tessera = pathlib.Path(options.tessera_bench).with_name("tessera")
    run([tessera, "run", file, "--export", folder, *(word for one in settings for word in ("--set", one))])
    run([tessera, "checkpoint", "export", *folder.glob("saves/*/step_*"), "--names", "pytorch", "-o", folder / "weights"])
    (folder / "learning_rate").write_text(rate, encoding="utf-8")


class LibraryFailed(Exception):
    """Another library cannot make a step."""


def run(command, threads=1, failure=SystemExit):
    """Runs a command whose processes have so many threads each, and returns its standard output."""
    given = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **given})
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise failure(f"error: {' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
    return done.stdout


def our_step(row, options, file):
    """Returns what the programs of other libraries print."""
    mixed = "bf16" if row.precision == "bf16" else "no"
    products = "tf32" if row.precision == "tf32" else "strict"
    base, ours = file_and_settings(row.model, options)
    with tempfile.TemporaryDirectory() as results:
        run(
            [*options.mpirun.split(), "-n", str(row.ranks), options.tessera_bench, "run", HERE / "step.toml"]
            + [word for one in [*ours, f'study.base="{base}"'] for word in ("--set", one)]
            + ["--set", f'grid=[{{strategy=["{row.options[0]}"],mesh=["data={row.ranks}"]}}]']
            + ["--set", f"distributed.mixed_precision={mixed}", "--set", f"model.matmul_precision={products}"]
            + ["--set", f"measure.steps={options.steps}"]
            + ["-o", pathlib.Path(results) / "study"],
            options.threads,
        )
        (found,) = pathlib.Path(results).glob("study/cases/*/result.json")
        result = json.loads(found.read_text(encoding="utf-8"))
        (launch,) = pathlib.Path(results).glob("study/launches/*.json")
        provenance = json.loads(launch.read_text(encoding="utf-8"))["provenance"]
    backend, node = provenance["kokkos"]["backend"], provenance["placement"][0]
    if (backend == "Cuda") != (options.device == "cuda"):
        raise SystemExit(f"error: --device {options.device}: {options.tessera_bench} computes with {backend}")
    if result["status"] != "ok":
        raise SystemExit(f"error: {row.model}, {row.name}: {result['reason']}")
    products = result["case"]["short_products"]
    return {
        "library": f"Tessera {provenance['version']}" + (f", {products} products" if products else ""),
        "device": node["gpus"][0] or node["cpu_model"],
        "step_seconds": [result["step_seconds"]["median"]],
        "losses": result["loss"]["step_losses"],
    }


def their_step(row, options, file):
    step = ["--case", file, "--steps", str(options.steps), "--threads", str(options.threads), "--precision", row.precision]
    step += row.options
    command = [sys.executable, HERE / f"{row.library}_step.py"]
    if row.library == "jax":
        step += ["--devices", str(row.ranks)]
    else:
        step += ["--device", options.device]
        if row.ranks > 1:
            command[1:1] = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={row.ranks}"]
    # One core for each thread, as ours have.
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[: row.ranks * options.threads]))
    lines = run(["taskset", "-c", cores, *command, *step], options.threads, LibraryFailed).splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith("{")))


def check_losses(row, seen, ours):
    tolerance = TOLERANCE[row.precision]
    if not all(abs(a - b) <= tolerance * abs(b) for a, b in zip(seen["losses"], ours["losses"])):
        raise SystemExit(f"error: {row.model}, {row.name}, {row.precision}: has losses {seen['losses']}, ours {ours['losses']}"
                         f" (tolerance {tolerance:g})")  # fmt: skip


def measure(options, folder):
    rows = [row for m in options.models for n in options.ranks for p in options.precision for row in rows_of(m, n, p)]
    rows = [row for row in rows if row.library in options.only]
    figures = {row: {**dataclasses.asdict(row), "device": options.device, "rounds": []} for row in rows}
    for model in options.models if options.only != ["tessera"] else []:
        make_case(model, options, folder / model)
    device, left_out = None, []
    for number in range(options.rounds):
        first = {}
        for row in rows:
            title = f"{row.model}, {row.name}, {row.ranks} ranks, {row.precision}"
            print(f"-- round {number + 1} of {options.rounds}: {title}", file=sys.stderr)
            try:
                seen = (our_step if row.library == "tessera" else their_step)(row, options, folder / row.model)
            except LibraryFailed as failure:
                print(f"{failure}\nwarning: {title}: is left out", file=sys.stderr)
                rows = [other for other in rows if other != row]
                del figures[row]
                left_out.append(title)
                continue
            if "tessera" in options.only:
                check_losses(row, seen, first.setdefault(work_of(vars(row)), seen))
            figures[row].update(version=seen["library"], losses=seen["losses"])
            device = seen.get("device", device)
            figures[row]["rounds"].append(statistics.median(seen["step_seconds"]))
    for figure in figures.values():
        figure["step_seconds"] = statistics.median(figure["rounds"])
    return {"schema_version": 1, "device_name": device, "threads_per_rank": options.threads, "left_out": left_out,
            "peers": list(figures.values())}  # fmt: skip


def work_of(figure):
    return figure["model"], figure["ranks"], figure["precision"]


def add_ratios(figures):
    """Adds to each figure its ratio to our first one of the same work: median, least and largest over rounds."""
    ours = {}
    for figure in figures:
        if figure["library"] == "tessera":
            ours.setdefault(work_of(figure), figure["rounds"])
    for figure in figures:
        ratios = [a / b for a, b in zip(figure["rounds"], ours.get(work_of(figure), []))]
        figure["ratio_to_tessera"] = statistics.median(ratios) if ratios else None
        figure["ratio_in_rounds"] = [min(ratios), max(ratios)] if ratios else None


def table_text(figures):
    lines = [f"{'':<11} {'':<18} {'ranks':>5} {'type':<8} {'step':>11} {'over ours':>9} {'in rounds':>12}  version"]
    for figure in figures:
        ratio, ends = figure["ratio_to_tessera"], figure["ratio_in_rounds"]
        lines.append(
            f"{figure['model']:<11} {figure['name']:<18} {figure['ranks']:>5} {figure['precision']:<8} "
            f"{1000 * figure['step_seconds']:>8.2f} ms {f'{ratio:.2f}' if ratio else '-':>9} "
            f"{f'{ends[0]:.2f} - {ends[1]:.2f}' if ends else '-':>12}  {figure['version']}"
        )
    return "\n".join(lines)


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, pathlib.Path(folder))
    add_ratios(found["peers"])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(table_text(found["peers"]))
    if found["left_out"]:
        raise SystemExit("error: failed: " + "; ".join(found["left_out"]))


if __name__ == "__main__":
    main()
