// SPDX-License-Identifier: Apache-2.0
// Checks a results directory against bench/RESULTS.md: documents have the keys of their types, and
// numbers have the stated relations. Usage: check_results DIRECTORY
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "results/summary.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;
using Json = nlohmann::json;

int failures = 0;
void expect(bool is_right, const std::string& where, const std::string& what) {
  if (is_right) return;
  std::printf("%s: %s\n", where.c_str(), what.c_str());
  ++failures;
}

bool is_near(double value, double expected, double tolerance = 1e-6) {
  return std::abs(value - expected) <= tolerance * std::abs(expected) + 1e-15;
}

void check_step(const CaseResult& r) {
  const StepTimes& step = *r.step_seconds;
  expect(step.min <= step.median && step.median <= step.p95 && step.p95 <= step.max, r.id,
         "step times are not in order: " + Json(step).dump());
  expect(!step.ci95_low || (*step.ci95_low <= step.median && step.median <= *step.ci95_high), r.id,
         "the median lies outside its confidence interval");
  expect(is_near(*r.samples_per_second, static_cast<double>(r.batch()) / step.median), r.id,
         "samples_per_second is not the batch over the median");
}

void check_breakdown(const CaseResult& r) {
  const Breakdown& b = *r.breakdown;
  double sum = 0;
  for (const Share& part : {b.compute, b.communication, b.idle, b.optimizer, b.other}) {
    sum += part.mean_rank_seconds;
    expect(part.max_rank_seconds >= part.mean_rank_seconds * (1 - 1e-9), r.id,
           "the mean of a part is above its maximum: " + Json(b).dump());
  }
  expect(is_near(sum, b.step_seconds, 0.01), r.id,
         "the parts of the step do not add up: " + Json(b).dump());
  expect(b.products.mean_rank_seconds > 0 &&
             b.products.mean_rank_seconds <= b.compute.mean_rank_seconds,
         r.id, "products are not a part of compute: " + Json(b).dump());
}

void check_traffic(const CaseResult& r) {
  double moved = 0;
  for (const TrafficRow& row : r.traffic->rows) {
    expect(row.planned_calls == row.measured_calls, r.id, "traffic: " + Json(row).dump());
    expect(!row.calls_per_step || row.seconds_per_step, r.id,
           "calls of a step took no time: " + Json(row).dump());
    moved += row.seconds_per_step.value_or(0);
  }
  expect(std::abs(moved - r.breakdown->communication.mean_rank_seconds) <=
             0.01 * r.breakdown->step_seconds,
         r.id, fmt::format("rows of traffic take {} s, unlike its communication", moved));
  expect(r.ranks() > 1 || r.traffic->rows.empty(), r.id, "one rank communicates with itself");
}

void check_memory(const CaseResult& r) {
  Size bytes = 0;
  for (const auto& [part, size] : r.memory->parts) bytes += size;
  expect(bytes == r.memory->planned_bytes && bytes > 0, r.id,
         fmt::format("the parts of its memory add up to {}", bytes));
}

void check_checkpoint(const CheckpointTimes& c, const std::string& id) {
  expect(0 < c.exposed_seconds && c.exposed_seconds <= c.write_seconds * (1 + 1e-9) &&
             c.async != (c.exposed_seconds == c.write_seconds),
         id, "checkpoint: " + Json(c).dump());
}

void check_launch(const Json& launch) {
  for (const char* key : {"/provenance/git_revision", "/provenance/mpi/library",
                          "/provenance/placement", "/machines/0/file", "/order", "/seed"})
    expect(launch.contains(Json::json_pointer(key)), "launch", std::string("lacks ") + key);
}

void check_ok(const CaseResult& r, const ResultsDirectory& directory, const Results& results) {
  if (!r.loss || !r.traffic || !r.breakdown || !r.memory || !r.compute ||
      !r.compute->flops_per_second || !r.prediction || r.rounds.empty() || r.started.empty())
    return expect(false, r.id, "lacks a part: " + Json(r).dump());
  check_step(r);
  check_breakdown(r);
  check_traffic(r);
  check_memory(r);
  if (r.checkpoint) check_checkpoint(*r.checkpoint, r.id);
  check_launch(directory.read("launches/" + r.launch + ".json")->json());
  const auto& blocks = results.steps.at(r.id);
  Size steps = 0;
  for (const std::vector<double>& block : blocks) steps += std::ssize(block);
  expect(steps == r.step_seconds->n && blocks.size() == r.rounds.size(), r.id,
         "not all step times are in the journals");
}

double cores_of(const CaseResult& r) {
  return static_cast<double>(r.ranks()) * r.factors.value("distributed.threads", 1.0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  const ResultsDirectory directory(argv[1]);
  const Results results = read_results(directory);
  for (const CaseResult& result : results.cases) {
    if (result.status == "pending") continue;
    const Json stored = directory.read("cases/" + result.id + "/result.json")->json();
    expect(stored == Json(result), result.id, "has other keys: " + stored.dump());
    expect(result.exit_code.has_value(), result.id, "lacks a key: " + stored.dump());
    expect(
        result.status == "skipped" || (!result.finished.empty() && result.facts.contains("dtype")),
        result.id, "lacks a key: " + stored.dump());
    expect(result.is_measured() || !result.reason.empty(), result.id, "has no reason");
    if (result.status == "ok") check_ok(result, directory, results);
  }
  const Summary summary = summarize_study(results);
  for (const SummaryRow& row : summary.cases) {
    if (row.result.status != "ok" || row.baseline.empty()) continue;
    const auto base =
        std::find_if(summary.cases.begin(), summary.cases.end(),
                     [&](const SummaryRow& other) { return other.result.id == row.baseline; });
    expect(is_near(*row.speedup, *row.result.samples_per_second / *base->result.samples_per_second),
           row.result.id, "speed-up is not the ratio of samples per second");
    expect(is_near(*row.speedup / *row.efficiency, cores_of(row.result) / cores_of(base->result)),
           row.result.id, "speed-up over efficiency is not the ratio of cores");
    expect(
        is_near(*row.mfu, *row.result.compute->flops_per_second / *row.gemm_peak_flops_per_second),
        row.result.id, "MFU is not the FLOP rate over the peak");
  }
  if (failures == 0) std::printf("%zu cases as described\n", results.cases.size());
  return failures == 0 ? 0 : 1;
}
