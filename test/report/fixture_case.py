# SPDX-License-Identifier: Apache-2.0
"""The files of one made-up case, and those that tell of all of them."""

import statistics
import zlib

import fixture_model as model

TOLERANCE = 1e-5
STEPS = 8


class FixtureCase:
    def __init__(self, strategy, mesh, batch, fate, noise):
        self.strategy, self.mesh, self.batch, self.noise = strategy, mesh, batch, noise
        self.status, self.reason, self.exit_code = fate
        self.text = ",".join(f"{name}={size}" for name, size in mesh)
        self.ranks = model.ranks_of(mesh)
        mark = zlib.crc32(f"{strategy} {self.text} {batch}".encode())
        self.id = f"{strategy}-{self.text.replace('=', '').replace(',', 'x')}-b{batch}-{mark:08x}"
        self.phases = model.breakdown(strategy, mesh, batch, noise)
        self.steps = model.step_times(sum(self.phases.values()) * 0.98, noise)
        self.median = statistics.median(self.steps)
        self.attempt = 2 if (strategy, batch, self.ranks) == ("hybrid", 2048, 4) else 1
        self.parts = model.memory(strategy, mesh, batch)
        self.planned_bytes = sum(self.parts.values())
        self.traffic = self._traffic()
        self.loss = self._loss()

    @property
    def ok(self):
        return self.status == "ok"

    def factors(self):
        return {"strategy": self.strategy, "mesh": self.text, "ranks": self.ranks,
                "global_batch": self.batch, "microbatches": 1}  # fmt: skip

    @property
    def label(self):
        return " ".join(f"{key}={value}" for key, value in self.factors().items() if key != "ranks")

    def entry(self, skip):
        return {"id": self.id, "label": self.label, "factors": self.factors(), "skip_reason": skip}

    def ci(self):
        ordered = sorted(self.steps)
        return ordered[9], ordered[20]

    def step_seconds(self):
        mad = statistics.median(abs(second - self.median) for second in self.steps)
        ordered = sorted(self.steps)
        low, high = self.ci()
        outliers = sum(abs(second - self.median) > 5 * 1.4826 * mad for second in self.steps)
        return {"median": self.median, "mad": mad, "min": ordered[0], "p95": ordered[28],
                "max": ordered[-1], "ci95_low": low, "ci95_high": high, "n": len(ordered),
                "outliers": outliers, "warm_up": 5}  # fmt: skip

    def rounds(self, launch):
        """Ten blocks of three steps; the machine is slower in the middle of the launch."""
        return [{"launch": launch, "at": 60.0 * n + self.noise.uniform(0, 50),
                 "seconds": statistics.median(self.steps[3 * n : 3 * n + 3]),
                 "machine": {"product_seconds": 1e-3 * slow, "memory_seconds": 4e-3 * slow}}
                for n in range(10) for slow in [1.3 if 4 <= n < 7 else self.noise.uniform(1, 1.02)]]  # fmt: skip

    def nodes(self):
        """Of four ranks each."""
        count = max(1, self.ranks // 4)
        axes = [name for name, size in self.mesh if size > 1]
        cut = 1 if count > 1 else 0
        return {"count": count, "ranks_each": str(min(4, self.ranks)),
                "inside": axes[cut:], "across": axes[:cut]}  # fmt: skip

    def _loss(self):
        reference = model.losses(self.batch, STEPS)
        measured = [
            loss * (1 + self.noise.choice((0, 1, 1, 1)) * self.noise.uniform(0.1, 6) * 1e-7)
            for loss in reference
        ]
        verdict = "equal"
        difference = max(abs(a / b - 1) for a, b in zip(measured, reference))
        if self.status == "invalid" and "finite" in self.reason:
            measured[2:] = [None] * (STEPS - 2)
            verdict, difference = "not_finite", None
        elif self.status == "invalid":
            measured[3:] = [loss * (1 + 0.0018 * n) for n, loss in enumerate(measured[3:], 1)]
            verdict, difference = "different", 0.009
        halves = [None if None in part else statistics.fmean(part)
                  for part in (measured[:4], measured[4:])]  # fmt: skip
        return {"verdict": verdict, "tolerance": TOLERANCE,
                "largest_relative_difference": difference, "largest_at_step": 3,
                "problem": None, "epochs": 2, "steps": STEPS,
                "epoch_losses": halves,
                "reference_epoch_losses": [statistics.fmean(reference[:4]),
                                           statistics.fmean(reference[4:])],
                "step_losses": measured, "reference_step_losses": reference,
                "validation_losses": [loss and 1.1 * loss for loss in measured[3::4]],
                "reference_validation_losses": [1.1 * loss for loss in reference[3::4]],
                "validated_at_steps": [4, 8],
                "reference": f"references/{self.batch:08x}.json"}  # fmt: skip

    def _traffic(self):
        rows = []
        for row in model.collectives(self.strategy, self.mesh, self.batch):
            axis, operation, n, calls, payload = row
            seconds = model.seconds_of(row) * self.noise.uniform(0.97, 1.05)
            rounds, share = model.wire(operation, n)
            rows.append({
                "axis": axis, "operation": operation, "group_size": n,
                "planned_calls": calls * STEPS, "measured_calls": calls * STEPS,
                "planned_payload_bytes": payload * STEPS,
                "measured_payload_bytes": payload * STEPS,
                "calls_per_step": calls, "payload_bytes_per_step": payload,
                "rounds_per_step": calls * rounds, "wire_bytes_per_step": share * payload,
                "seconds_per_step": seconds, "wait_seconds_per_step": 0.1 * seconds,
                "algorithm_bytes_per_second": payload / seconds,
                "bus_bytes_per_second": payload / seconds * share,
            })  # fmt: skip
        return {"steps": STEPS, "epochs": 2, "as_planned": True, "rows": rows}

    def memory(self):
        predicted = self.status == "oom" and self.reason.startswith("needs")
        reached = self.status in ("ok", "invalid")
        return {"as_planned": True if reached else None, "planned_bytes": self.planned_bytes,
                "measured_bytes": self.planned_bytes if reached else None, "parts": self.parts,
                "limit_bytes": model.MEMORY_LIMIT, "predicted_oom": predicted}  # fmt: skip

    def measured_parts(self, launch):
        """The parts of an ok result; of the others what was reached."""
        flops = model.flops(self.batch)
        peak = model.GEMM_PEAK * self.ranks
        compute = flops / self.ranks / (model.GEMM_PEAK * 0.6)
        exposed = sum(model.seconds_of(row)
                      for row in model.collectives(self.strategy, self.mesh, self.batch))  # fmt: skip
        rate = flops / self.median if self.ok else None
        parts = {
            "loss": self.loss if self.status in ("ok", "invalid") else None,
            "rounds": self.rounds(launch) if self.ok else None,
            "launches": 1,
            "step_seconds": self.step_seconds() if self.ok else None,
            "samples_per_second": self.batch / self.median if self.ok else None,
            "breakdown": self.breakdown() if self.ok else None,
            "traffic": self.traffic if self.status in ("ok", "invalid") else None,
            "memory": self.memory(),
            "compute": {"flops_per_step": flops, "flops_per_second": rate,
                        "gemm_peak_flops_per_second": peak,
                        "flops_per_second_per_rank": rate / self.ranks if rate else None,
                        "mfu": rate / peak if rate else None,
                        "vendor_peak_flops_per_second": None, "vendor_mfu": None},
            "prediction": {"step_seconds": compute + 0.5 * exposed, "product_seconds": compute,
                           "kernel_seconds": 0.0, "optimizer_seconds": 0.0, "idle_seconds": 0.0,
                           "communication_seconds": 0.5 * exposed, "oversubscribed": self.ranks == 8},
            "explanation": self.explanation() if self.ok else None,
        }  # fmt: skip
        return parts if self.status not in ("skipped", "running") else dict.fromkeys(parts)

    def explanation(self):
        parts = [{"part": f"{row['operation']} on {row['axis']}", "predicted_seconds": 1e-3,
                  "measured_seconds": row["seconds_per_step"], "calls": row["calls_per_step"],
                  "payload_bytes": row["payload_bytes_per_step"]} for row in self.traffic["rows"]]
        products = {"part": "products", "predicted_seconds": 0.2, "measured_seconds": 0.19}
        return sorted([products, *parts], reverse=True,
                      key=lambda one: abs(one["measured_seconds"] - one["predicted_seconds"]))  # fmt: skip

    def breakdown(self):
        late = {"compute": 1.03, "idle": 1.6}
        phases = {name: {"max_rank_seconds": seconds * late.get(name, 1.01),
                         "mean_rank_seconds": seconds}
                  for name, seconds in self.phases.items()}  # fmt: skip
        phases["products"] = {name: 0.97 * seconds for name, seconds in phases["compute"].items()}
        return {"steps": 5, "step_seconds": sum(self.phases.values()), **phases}

    def result(self, launch):
        running = self.status == "running"
        case = {"strategy": self.strategy,
                "mesh": [{"name": name, "size": size} for name, size in self.mesh],
                "ranks": self.ranks, "nodes": self.nodes(), "global_batch": self.batch,
                "batch_per_rank": self.batch // self.ranks, "microbatches": 1, "dtype": "float32",
                "matmul_precision": "strict", "samples": 4 * self.batch,
                "parameters": model.PARAMETERS}  # fmt: skip
        config = {"model": {"kind": "mlp", "widths": list(model.WIDTHS)},
                  "training": {"batch_size": self.batch, "optimizer": "adam"}}  # fmt: skip
        return {"schema_version": 1, "id": self.id, "study": "fixture", "label": self.label,
                "status": self.status, "reason": self.reason, "exit_code": self.exit_code,
                "attempt": self.attempt, "launch": launch,
                "started": "2026-11-20T14:03:12Z",
                "finished": None if running else "2026-11-20T14:03:40Z",
                "wall_seconds": None if running else round(40 * self.median, 1),
                "factors": self.factors(), "case": case, "config": config,
                **self.measured_parts(launch)}  # fmt: skip


def study(entries):
    return {"schema_version": 1, "name": "fixture",
            "description": "Made-up numbers: every strategy, every status",
            "file": "inputs/fixture.toml", "small": False, "scaling": "strong",
            "baseline": {"ranks": None, "strategy": "data"},
            "measure": {"warm_up": 5, "steps": 30, "max_steps": 1000, "rounds": 10,
                        "instrumented_steps": 5, "gemm_size": 1024},
            "limits": {"case_seconds": 60.0, "memory_bytes": model.MEMORY_LIMIT,
                       "vendor_peak_flops_per_second": None},
            "verify": {"enabled": True, "tolerance": TOLERANCE, "steps": None, "ranks": 1},
            "cases": entries,
            "strategies": ["data", "zero1", "zero2", "fsdp", "hybrid", "tensor"]}  # fmt: skip


def baseline_of(case, cases):
    same = [other for other in cases if other.ok and other.batch == case.batch]
    return min(same, key=lambda other: (other.ranks, other.strategy != "data"))


def summary_row(case, cases):
    row = {"id": case.id, "label": case.label,
           "status": "pending" if case.status == "running" else case.status,
           "reason": case.reason, "strategy": case.strategy, "mesh": case.text,
           "ranks": case.ranks, "global_batch": case.batch, "microbatches": 1,
           "batch_per_rank": case.batch // case.ranks, "factors": {}}  # fmt: skip
    if not case.ok:
        return row
    base = baseline_of(case, cases)
    (low, high), (base_low, base_high) = case.ci(), base.ci()
    share = base.ranks / case.ranks
    ratios = {"speedup": base.median / case.median, "speedup_low": base_low / high,
              "speedup_high": base_high / low}  # fmt: skip
    for name, value in list(ratios.items()):
        ratios[name.replace("speedup", "efficiency")] = share * value
    return {**row, "step_seconds_median": case.median, "step_seconds_ci95_low": low,
            "step_seconds_ci95_high": high, "samples_per_second": case.batch / case.median,
            "baseline": base.id, "baseline_ranks": base.ranks,
            "baseline_step_seconds": base.median, "scaling": "strong", **ratios}  # fmt: skip


def summary(cases):
    rows = [summary_row(case, cases) for case in cases]
    statuses = [row["status"] for row in rows]
    names = ("ok", "invalid", "oom", "timeout", "failed", "skipped", "pending")
    best = max((case for case in cases if case.ok), key=lambda case: case.batch / case.median)
    ties = [case.id for case in cases if case.ok and case.id != best.id and case.batch == best.batch
            and case.median < 1.03 * best.median]  # fmt: skip
    return {"schema_version": 1, "study": "fixture", "result": "INVALID", "ties": ties,
            "machine": {"drift": 0.04, "resolution": 0.03, "rounds": 10},
            "counts": {name: statuses.count(name) for name in names}, "best": best.id,
            "cases": rows}  # fmt: skip
