#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured cases of a study for Thicket: one file in Caliper's JSON-split format for each case."""

import argparse
import json
import pathlib
import sys

# The names are Hatchet's, which wants the order of nodes first. True for values; the others are indices of nodes.
COLUMNS = {"Node order": False, "path": False, "time": True, "time (inc)": True, "time of slowest rank": True,
           "calls": True, "payload bytes": True}  # fmt: skip


def regions(result):
    """Yields (region, its parent, inclusive seconds, seconds on the slowest rank, calls, payload bytes)."""
    parts = result["breakdown"] or {"step_seconds": result["step_seconds"]["median"]}
    yield "step", None, parts["step_seconds"], None, None, None
    for name, part in parts.items():
        if isinstance(part, dict):
            parent = "compute" if name == "products" else "step"
            yield name, parent, part["mean_rank_seconds"], part["max_rank_seconds"], None, None
    for row in (result["traffic"] or {}).get("rows", ()):
        if "communication" in parts and row["seconds_per_step"] is not None:
            what, seconds = f"{row['operation']}({row['axis']})", row["seconds_per_step"]
            yield what, "communication", seconds, None, row["calls_per_step"], row["payload_bytes_per_step"]


def profile(result, row, machine):
    """Returns Caliper's document: a row for each region, and as metadata the factors, the columns of cases.csv, of which
    `nodes` has a meaning in Caliper, and whether times may be compared."""
    found = list(regions(result))
    places = {name: place for place, (name, *_) in enumerate(found)}
    nodes = [{"label": name, "column": "path"} | ({"parent": places[parent]} if parent else {})
             for name, parent, *_ in found]  # fmt: skip
    own = [inclusive - sum(one[2] for one in found if one[1] == name) for name, _, inclusive, *_ in found]
    data = [[place, place, max(0, own[place]), *values] for place, (_, _, *values) in enumerate(found)]
    metadata = {"study": result["study"], **result["factors"], **row, "num_nodes": row["nodes"]}
    metadata["timing_reliable"] = machine["timing_reliable"]
    del metadata["factors"]
    kinds = [{"is_value": one} for one in COLUMNS.values()]
    return {**metadata, "data": data, "columns": list(COLUMNS), "column_metadata": kinds, "nodes": nodes}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path, help="output directory of tessera-bench")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="default: RESULTS/thicket")
    options = parser.parse_args()
    output = options.output or options.results / "thicket"
    try:
        summary = json.loads((options.results / "summary.json").read_bytes())
        output.mkdir(parents=True, exist_ok=True)
        for row in [row for row in summary["cases"] if row["step_seconds_median"]]:
            result = json.loads((options.results / "cases" / row["id"] / "result.json").read_bytes())
            (output / f"{row['id']}.json").write_text(json.dumps(profile(result, row, summary["machine"])))
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"error: {options.results}: {error}")


if __name__ == "__main__":
    main()
