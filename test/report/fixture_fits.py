# SPDX-License-Identifier: Apache-2.0
"""Least squares for the fixture: Amdahl's law of a series, and latency and inverse bandwidth of an axis."""

import fixture_model as model


def _two_columns(first, second, values):
    """The pair (a, b) that makes a * first + b * second nearest to values."""
    aa = sum(x * x for x in first)
    bb = sum(x * x for x in second)
    ab = sum(x * y for x, y in zip(first, second))
    av = sum(x * y for x, y in zip(first, values))
    bv = sum(x * y for x, y in zip(second, values))
    determinant = aa * bb - ab * ab
    return (av * bb - bv * ab) / determinant, (bv * aa - av * ab) / determinant


def _r_squared(values, fitted):
    mean = sum(values) / len(values)
    off = sum((v - f) ** 2 for v, f in zip(values, fitted))
    return 1 - off / sum((v - mean) ** 2 for v in values)


def amdahl(cases):
    fits = []
    for batch in sorted({case.batch for case in cases}):
        for strategy in ("data", "zero1", "zero2", "fsdp", "tensor"):
            series = [case for case in cases
                      if case.ok and (case.strategy, case.batch) == (strategy, batch)]  # fmt: skip
            if len(series) < 3:
                continue
            ranks = [case.ranks for case in series]
            seconds = [case.median for case in series]
            serial, parallel = _two_columns([1.0] * len(ranks), [1 / n for n in ranks], seconds)
            fitted = [serial + parallel / n for n in ranks]
            fits.append({
                "strategy": strategy, "axis": series[-1].mesh[0][0], "global_batch": batch,
                "microbatches": 1, "cases": [case.id for case in series], "ranks": ranks,
                "step_seconds": seconds, "fitted_seconds": fitted,
                "residual_seconds": [s - f for s, f in zip(seconds, fitted)],
                "serial_fraction": serial / (serial + parallel),
                "one_rank_seconds": serial + parallel, "r_squared": _r_squared(seconds, fitted),
            })  # fmt: skip
    return fits


def alpha_beta(cases):
    fits = []
    for axis in ("data", "fsdp", "model"):
        points = []
        for case in cases:
            for row in case.traffic["rows"] if case.ok else []:
                if row["axis"] != axis:
                    continue
                rounds, share = model.wire(row["operation"], row["group_size"])
                points.append({"case": case.id, "operation": row["operation"],
                               "group_size": row["group_size"],
                               "rounds_per_step": rounds * row["calls_per_step"],
                               "wire_bytes_per_step": share * row["payload_bytes_per_step"],
                               "seconds_per_step": row["seconds_per_step"]})  # fmt: skip
        if len(points) < 3:
            continue
        rounds = [point["rounds_per_step"] for point in points]
        wire = [point["wire_bytes_per_step"] for point in points]
        seconds = [point["seconds_per_step"] for point in points]
        alpha, beta = _two_columns(rounds, wire, seconds)
        for point, r, w in zip(points, rounds, wire):
            point["fitted_seconds"] = alpha * r + beta * w
            point["residual_seconds"] = point["seconds_per_step"] - point["fitted_seconds"]
        fitted = [point["fitted_seconds"] for point in points]
        fits.append({"axis": axis, "alpha_seconds": alpha, "beta_seconds_per_byte": beta,
                     "r_squared": _r_squared(seconds, fitted), "points": points})  # fmt: skip
    return fits
