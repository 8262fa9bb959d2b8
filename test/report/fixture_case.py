# SPDX-License-Identifier: Apache-2.0
"""The files of one made-up case, and those about all of them."""

import statistics
import zlib

import fixture_model as model

TOLERANCE = 1e-5
STEPS = 8


class FixtureCase:
    def __init__(self, strategy, mesh, batch, fate, noise):
        self.strategy, self.mesh, self.batch, self.noise = strategy, mesh, batch, noise
        self.status, self.reason, self.exit_code = fate
        self.ok, self.reached = self.status == "ok", self.status in ("ok", "invalid")
        self.text = ",".join(f"{name}={size}" for name, size in mesh)
        self.ranks = model.ranks_of(mesh)
        mark = zlib.crc32(f"{strategy} {self.text} {batch}".encode())
        self.id = f"{strategy}-{self.text.replace('=', '').replace(',', 'x')}-b{batch}-{mark:08x}"
        self.phases = model.breakdown(strategy, mesh, batch, noise)
        self.steps = model.step_times(sum(self.phases.values()) * 0.98, noise)
        self.median = statistics.median(self.steps)
        self.parts = model.memory(strategy, mesh, batch)
        self.factors = {"strategy": strategy, "mesh": self.text, "ranks": self.ranks, "global_batch": batch,
                        "microbatches": 1}  # fmt: skip

    def entry(self, skip):
        return {"id": self.id, "factors": self.factors, "skip_reason": skip}

    def ci(self):
        ordered = sorted(self.steps)
        return ordered[9], ordered[20]

    def step_seconds(self):
        low, high = self.ci()
        return {"median": self.median, "min": min(self.steps), "max": max(self.steps), "ci95_low": low,
                "ci95_high": high, "n": len(self.steps), "outliers": 0, "warm_up": 5}  # fmt: skip

    def rounds(self, launch):
        """Ten blocks of three steps."""
        return [{"launch": launch, "at": 60.0 * n, "seconds": statistics.median(self.steps[3 * n : 3 * n + 3]),
                 "machine": {"product_seconds": 1e-3, "memory_seconds": 4e-3}} for n in range(10)]  # fmt: skip

    def nodes(self):
        """Returns the nodes, of four ranks each."""
        axes = [name for name, size in self.mesh if size > 1]
        return {"count": max(1, self.ranks // 4), "across": axes[:1] if self.ranks > 4 else []}

    def loss(self):
        reference = model.losses(self.batch, STEPS)
        measured = [loss * (1 + self.noise.uniform(0.1, 6) * 1e-7) for loss in reference]
        verdict = "equal"
        difference = max(abs(a / b - 1) for a, b in zip(measured, reference))
        if self.status == "invalid" and "finite" in self.reason:
            measured[2:] = [None] * (STEPS - 2)
            verdict, difference = "not_finite", None
        elif self.status == "invalid":
            measured[3:] = [loss * (1 + 0.0018 * n) for n, loss in enumerate(measured[3:], 1)]
            verdict, difference = "different", 0.009
        return {"verdict": verdict, "tolerance": TOLERANCE, "largest_relative_difference": difference,
                "step_losses": measured, "reference_step_losses": reference}  # fmt: skip

    def traffic(self):
        rows = []
        for row in model.collectives(self.strategy, self.mesh, self.batch):
            axis, operation, n, calls, payload = row
            seconds = model.seconds_of(row) * self.noise.uniform(0.97, 1.05)
            rounds, share = model.wire(operation, n)
            rows.append({
                "axis": axis, "operation": operation, "group_size": n,
                "planned_calls": calls * STEPS, "measured_calls": calls * STEPS,
                "planned_payload_bytes": payload * STEPS, "measured_payload_bytes": payload * STEPS,
                "rounds_per_step": calls * rounds, "wire_bytes_per_step": share * payload,
                "seconds_per_step": seconds, "wait_seconds_per_step": 0.1 * seconds,
                "bus_bytes_per_second": payload / seconds * share,
            })  # fmt: skip
        return {"steps": STEPS, "epochs": 2, "as_planned": True, "rows": rows}

    def memory(self):
        planned = sum(self.parts.values())
        return {"as_planned": True if self.reached else None, "planned_bytes": planned, "parts": self.parts,
                "measured_bytes": planned if self.reached else None, "limit_bytes": model.MEMORY_LIMIT,
                "predicted_oom": self.status == "oom" and self.reason.startswith("needs")}  # fmt: skip

    def measured_parts(self, launch):
        """Returns all parts of an ok result, and of others those that were reached."""
        flops = model.flops(self.batch)
        peak = model.GEMM_PEAK * self.ranks
        compute = flops / self.ranks / (model.GEMM_PEAK * 0.6)
        exposed = 0.5 * sum(map(model.seconds_of, model.collectives(self.strategy, self.mesh, self.batch)))
        rate = flops / self.median if self.ok else None
        parts = {
            "loss": self.loss() if self.reached else None,
            "rounds": self.rounds(launch) if self.ok else None,
            "launches": 1,
            "step_seconds": self.step_seconds() if self.ok else None,
            "samples_per_second": self.batch / self.median if self.ok else None,
            "breakdown": self.breakdown() if self.ok else None,
            "traffic": self.traffic() if self.reached else None,
            "memory": self.memory(),
            "compute": {"flops_per_step": flops, "flops_per_second": rate, "gemm_peak_flops_per_second": peak,
                        "vendor_mfu": None},
            "prediction": {"machine": "measured", "step_seconds": compute + exposed, "idle_seconds": 0.0,
                           "communication_seconds": exposed, "oversubscribed": self.ranks == 8},
        }  # fmt: skip
        return parts if self.status != "skipped" else dict.fromkeys(parts)

    def breakdown(self):
        phases = {name: {"mean_rank_seconds": seconds} for name, seconds in self.phases.items()}
        products = {"mean_rank_seconds": 0.97 * self.phases["compute"]}
        return {"steps": 5, "step_seconds": sum(self.phases.values()), **phases, "products": products}

    def result(self, launch):
        return {"schema_version": 1, "id": self.id, "status": self.status, "reason": self.reason,
                "exit_code": self.exit_code, "crashes": 0, "launch": launch, "started": "2026-11-20T14:03:12Z",
                "wall_seconds": round(40 * self.median, 1),
                "factors": self.factors,
                "case": {"ranks": self.ranks, "nodes": self.nodes(), "batch_per_rank": self.batch // self.ranks},
                "config": {"model": {"kind": "mlp", "widths": list(model.WIDTHS)},
                           "training": {"batch_size": self.batch}},
                **self.measured_parts(launch)}  # fmt: skip


def study(entries):
    return {"schema_version": 1, "name": "fixture", "description": "Made-up numbers: every strategy, every status",
            "file": "inputs/fixture.toml", "small": False, "scaling": "strong",
            "measure": {"warm_up": 5, "rounds": 10, "instrumented_steps": 5, "gemm_size": 1024},
            "verify": {"enabled": True, "tolerance": TOLERANCE, "steps": None, "ranks": 1},
            "cases": entries}  # fmt: skip


def compared(slower, faster, name):
    """Returns how many times as long a case takes for a sample, and an interval."""
    (low, high), (fast_low, fast_high) = slower.ci(), faster.ci()
    return {name: slower.median / faster.median, f"{name}_low": low / fast_high, f"{name}_high": high / fast_low}


def summary_row(case, cases):
    row = {"id": case.id, "status": case.status, "crashes": int(case.strategy == "zero1" and case.status == "pending")}
    if not case.ok:
        return row
    same = [other for other in cases if other.ok and other.batch == case.batch]
    base = min(same, key=lambda other: (other.ranks, other.strategy != "data"))
    best = min(same, key=lambda other: other.median)
    speedup, rate = base.median / case.median, model.flops(case.batch) / case.median
    is_same = case.ranks == base.ranks == 1 and case is not base
    row.update({"same_program_as": base.id if is_same else None, "step_seconds_median": case.median, "baseline": base.id, "speedup": speedup,
                "efficiency": base.ranks / case.ranks * speedup, **compared(base, case, "corrected_speedup"),
                "gemm_peak_flops_per_second": model.GEMM_PEAK * case.ranks,
                "mfu": rate / (model.GEMM_PEAK * case.ranks)})  # fmt: skip
    on_ranks = min((other for other in same if other.ranks == case.ranks), key=lambda other: other.median)
    if case is not on_ranks:
        row.update(compared(case, on_ranks, "over_fastest_on_ranks"))
    if case is best:
        return {**row, "standing": "fastest"}
    behind = compared(case, best, "over_fastest")
    return {**row, "standing": "tied" if behind["over_fastest_low"] < 1.03 else None, **behind}


def summary(cases):
    return {"schema_version": 1, "study": "fixture", "result": "INVALID",
            "machine": {"drift": 0.04, "resolution": 0.03, "rounds": 10, "timing_reliable": True, "problem": None},
            "cases": [summary_row(case, cases) for case in cases]}  # fmt: skip
