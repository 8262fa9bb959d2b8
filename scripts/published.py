#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts steps that others measured and published, and prints each ratio of the predicted to the published time.
inputs/published has the rows, a study for each table, and the machines."""

import argparse
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).resolve().parent.parent / "inputs/published"
RATE = re.compile(r"^(b?float16 = )(\S+)", re.M)
PEAKS = "[machine.peak_flops_per_second]"  # after the rates that calibration scales
MEGATRON = "korthikanti2022", "narayanan2021"
COLOURS = {"korthikanti2022": "#0527a8", "narayanan2021": "#14aa99", "mpt_a100": "#8f5ace", "mpt_h100": "#d5820d",
           "torchtitan2024": "#b3235f"}  # fmt: skip


def simulate(program, inputs, study, machine, *options):
    """Returns (result, reason) for each case of a study in the order of its grids; without a prediction there is a reason."""
    with tempfile.TemporaryDirectory() as place:
        results = pathlib.Path(place, "results")
        files = [inputs / f"{study}.toml", "--machine", inputs / f"{machine}.toml", "-o", results]
        done = subprocess.run([program, "simulate", *files, *options], capture_output=True, text=True, check=False)
        if not (results / "summary.json").exists():
            sys.exit(f"error: {study} on {machine}: {done.stderr.strip()}")
        found = []
        for case in json.loads((results / "study.json").read_text())["cases"]:
            path = results / "cases" / case["id"] / "result.json"
            result = json.loads(path.read_text()) if path.exists() else {"status": "skipped"}
            reason = case["skip_reason"] or result.get("reason") or result["status"]
            found.append((result, None if result["status"] == "ok" else reason))
        return found


def published_seconds(row, result):
    """Returns the published time of a step. Rates are those of one GPU, in tokens/s or in the TFLOP/s that equation 3 of
    Narayanan et al. (2021) counts."""
    value, config = float(row["value"]), result["config"]
    if row["unit"] == "s":
        return value
    positions, vocabulary, width, blocks = (
        config["model"][f"transformer.{key}"] for key in ("context", "vocabulary", "width", "blocks")
    )
    tokens = config["training"]["batch_size"] * positions / result["case"]["ranks"]
    if row["unit"] == "tokens/s":
        return tokens / value
    flops = 96 * blocks * width**2 * (1 + positions / (6 * width) + vocabulary / (16 * blocks * width))
    return tokens * flops / (1e12 * value)


def compare(program, inputs):
    """Returns the rows of published.csv, each with its seconds and ratio, or with the reason why it has none."""
    with open(inputs / "published.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    runs = {run: simulate(program, inputs, *run) for run in {(row["study"], row["machine"]) for row in rows}}
    for row in rows:
        result, row["reason"] = runs[row["study"], row["machine"]][int(row["grid"]) - 1]
        if not row["reason"]:
            row["published"], row["predicted"] = published_seconds(row, result), result["step_seconds"]["median"]
            row["ratio"] = row["predicted"] / row["published"]
    return rows


def calibrate(program, inputs):
    """Scales the rates of all machines by the one factor with which the first row, the small variant of its study, is exact."""
    with open(inputs / "published.csv", newline="") as lines:
        row = next(csv.DictReader(lines))
    files = {path: path.read_text() for path in inputs.glob("*.toml") if RATE.search(path.read_text())}
    points, scale = [], 1.0
    while len(points) < 5:
        for path, text in files.items():
            rates, mark, rest = text.partition(PEAKS)
            rates = RATE.sub(lambda rate: f"{rate[1]}{float(rate[2]) * scale:.5g}", rates)  # noqa: B023
            path.write_text(rates + mark + rest)
        [(result, reason)] = simulate(program, inputs, row["study"], row["machine"], "--small")
        if reason:
            sys.exit(f"error: {row['row']}: {reason}")
        points.append((1 / scale, result["step_seconds"]["median"] / published_seconds(row, result)))
        (x, y), (u, v) = points[-1], points[-2] if len(points) > 1 else (0, 0)
        if abs(y - 1) < 2e-4:
            break
        scale = 1 / (x + (1 - y) * (x - u) / (y - v))  # the time is nearly linear in 1 / rate


def leave_out(program, inputs, key):
    """Returns the rows without a key, or a table, of studies and machines, with the rates calibrated anew."""
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(shutil.copytree(inputs.parent, pathlib.Path(place, "inputs")), inputs.name)
        found = 0
        for path in copy.glob("*.toml"):
            lines = rf"^(([\w.]*\.)?{key} = .*\n|\[([\w.]*\.)?{key}\].*\n([^\n\[].*\n)*)"
            text, number = re.subn(lines, "", path.read_text(), flags=re.M)
            path.write_text(re.sub(r"^\[[\w.]+\]( +#.*)?\n(?=\n|\Z)", "", text, flags=re.M))  # without empty tables
            found += number
        if not found:
            sys.exit(f"error: --without {key}: no study and no machine has it")
        calibrate(program, copy)
        return compare(program, copy)


def mean_error(rows):
    """Returns the mean of |ratio - 1| over the rows that have a prediction, and their number."""
    errors = [abs(row["ratio"] - 1) for row in rows if not row["reason"]]
    return sum(errors) / max(len(errors), 1), len(errors)


def summary(rows):
    """Returns the mean errors of all rows but the calibrated one. A row without prediction stands beside them."""
    groups = {"Megatron": [row for row in rows[1:] if row["study"] in MEGATRON]}
    groups |= {study: [row for row in rows[1:] if row["study"] == study] for study in COLOURS}
    lines = ["| rows | number | mean error |", "|---|---|---|"]
    for name, some in {**groups, "all": rows[1:]}.items():
        error, number = mean_error(some)
        lines.append(f"| {name} | {number} of {len(some)} | {100 * error:.1f} % |")
    return lines + [f"without {row['paper']}, {row['row']}: {row['reason']}" for row in rows if row["reason"]]


def draw(rows, path):
    """Draws the ratio of each row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(11, 4.6), layout="constrained")
    axes.axhspan(0.9, 1.1, color="#e8ebee", zorder=0)
    axes.axhline(1, color="#5c646e", linewidth=1, zorder=1)
    for study, colour in COLOURS.items():
        points = [(place, row["ratio"]) for place, row in enumerate(rows) if row["study"] == study and not row["reason"]]
        machine = next(row["machine"] for row in rows if row["study"] == study)
        axes.scatter(*zip(*points), color=colour, s=34, zorder=2, label=f"{study} ({machine})")
    axes.set_xticks(range(len(rows)), [row["row"] for row in rows], rotation=90, fontsize=8)
    axes.set(xlim=(-0.8, len(rows) - 0.2), ylabel="predicted / published time of a step")
    axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
    axes.legend(ncols=len(COLOURS), fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="tessera-bench", help="default: tessera-bench")
    parser.add_argument("--inputs", type=pathlib.Path, default=INPUTS, help="folder of published.csv, default: %(default)s")
    parser.add_argument("--calibrate", action="store_true", help="first rewrite the rates of the machine files of this folder")
    parser.add_argument("--figure", type=pathlib.Path, help="PNG to draw; needs matplotlib")
    parser.add_argument("--without", metavar="KEY", help="leave a key or table of studies and machines out and calibrate anew")
    options = parser.parse_args()
    if options.calibrate:
        calibrate(options.program, options.inputs)
    task = options.program, options.inputs
    rows = leave_out(*task, options.without) if options.without else compare(*task)
    print("| paper | row | published (s) | predicted (s) | ratio |\n|---|---|---|---|---|")
    for row in rows:
        if not row["reason"]:
            print("| {paper} | {row} | {published:.4g} | {predicted:.4g} | {ratio:.3f} |".format(**row))
    print("", *summary(rows), sep="\n")
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
