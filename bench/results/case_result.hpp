// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>

#include "document/document.hpp"
#include "measure/case_run.hpp"
#include "measure/statistics.hpp"
#include "study/study.hpp"

namespace tessera::bench {

inline constexpr std::array<std::string_view, 8> statuses{
    "ok", "unverified", "invalid", "oom", "timeout", "failed", "skipped", "pending"};

// The sections of a result. Their members have the names of the keys (bench/RESULTS.md).

struct LossResult {
  std::string verdict;
  double tolerance = 0;
  std::optional<double> largest_relative_difference;
  std::optional<Size> largest_at_step;  ///< counted from 1
  Size epochs = 0, steps = 0;
  std::vector<double> step_losses, epoch_losses, validation_losses;
  std::vector<std::size_t> validated_at_steps;
  std::optional<std::vector<double>> reference_step_losses, reference_epoch_losses,
      reference_validation_losses;
  std::string reference;
  std::string reference_mesh;
  std::string problem;

  TESSERA_FIELDS(verdict, tolerance, largest_relative_difference, largest_at_step, epochs, steps,
                 step_losses, epoch_losses, validation_losses, validated_at_steps,
                 reference_step_losses, reference_epoch_losses, reference_validation_losses,
                 reference, reference_mesh, problem);
};

/// Median and interval of the rounds' medians; all others are over all steps.
struct StepTimes : Statistics {
  Size warm_up = 0;

  static void fields(auto& f, auto& v) {
    f("median", positive(v.median), "mad", v.mad, "min", v.min, "p95", v.p95, "max", v.max,
      "ci95_low", v.ci95_low, "ci95_high", v.ci95_high, "ci95_problem", v.ci95_problem, "n", v.n,
      "outliers", v.outliers, "warm_up", v.warm_up);
  }
};

/// The traffic of one operation over one axis.
struct TrafficRow {
  std::string axis, operation;
  Size group_size = 1;
  Size planned_calls = 0, planned_payload_bytes = 0;
  std::optional<Size> measured_calls, measured_payload_bytes;
  std::optional<Size> calls_per_step, payload_bytes_per_step;
  std::optional<double> rounds_per_step, wire_bytes_per_step, seconds_per_step,
      wait_seconds_per_step, algorithm_bytes_per_second, bus_bytes_per_second;

  TESSERA_FIELDS(axis, operation, group_size, planned_calls, planned_payload_bytes, measured_calls,
                 measured_payload_bytes, calls_per_step, payload_bytes_per_step, rounds_per_step,
                 wire_bytes_per_step, seconds_per_step, wait_seconds_per_step,
                 algorithm_bytes_per_second, bus_bytes_per_second);
};

struct Traffic {
  Size steps = 0, epochs = 0;
  std::optional<bool> as_planned;
  std::vector<TrafficRow> rows;

  TESSERA_FIELDS(steps, epochs, as_planned, rows);
};

struct MemoryResult {
  std::optional<bool> as_planned;
  Size planned_bytes = 0;
  std::optional<Size> measured_bytes;
  std::map<std::string, Size> parts;
  std::optional<Size> limit_bytes;
  bool predicted_oom = false;

  TESSERA_FIELDS(as_planned, planned_bytes, measured_bytes, parts, limit_bytes, predicted_oom);
};

/// FLOP rates of a step; unknown ones have no value.
struct ComputeResult {
  double flops_per_step = 0, gemm_peak_flops_per_second = 0;
  std::optional<double> flops_per_second, flops_per_second_per_rank, vendor_peak_flops_per_second,
      vendor_mfu;

  /// Sets the rates of a step of this length.
  void set_step(double seconds, Size ranks);

  TESSERA_FIELDS(flops_per_step, gemm_peak_flops_per_second, flops_per_second,
                 flops_per_second_per_rank, vendor_peak_flops_per_second, vendor_mfu);
};

struct Prediction {
  std::string machine;
  double step_seconds = 0, product_seconds = 0, kernel_seconds = 0, optimizer_seconds = 0,
         communication_seconds = 0, idle_seconds = 0;
  std::optional<double> launch_seconds{};  ///< of kernels; unknown in older results
  bool oversubscribed = false;  ///< ranks share processors, so that the prediction is coarse

  TESSERA_FIELDS(machine, step_seconds, product_seconds, kernel_seconds, optimizer_seconds,
                 communication_seconds, idle_seconds, launch_seconds, oversubscribed);
};

/// The time of one kind of work in a step, as predicted and as measured.
struct ExplanationLine {
  std::string part;
  double predicted_seconds = 0, measured_seconds = 0;
  std::optional<Size> calls, payload_bytes;  ///< of communication

  TESSERA_FIELDS(part, predicted_seconds, measured_seconds, calls, payload_bytes);
};

/// The result of a case: cases/<id>/result.json. Members that only the report reads are JSON.
struct CaseResult {
  std::string id, study, label;
  nlohmann::json factors = nlohmann::json::object();
  nlohmann::json facts;  ///< "case" in the file
  nlohmann::json config = nlohmann::json::object();

  std::string status = "pending";
  std::string reason;
  std::optional<int> exit_code;
  Size crashes = 0;       ///< launches that ended during it
  Size launches = 0;      ///< launches that finished measuring it
  std::string launch;     ///< the latest launch with a result
  std::string simulated;  ///< the machine of a simulated result
  std::string started, finished;
  std::optional<double> wall_seconds;

  std::optional<LossResult> loss;
  std::vector<Round> rounds;
  std::optional<StepTimes> step_seconds;
  std::optional<double> samples_per_second;
  std::optional<Breakdown> breakdown;
  std::optional<Traffic> traffic;
  std::optional<MemoryResult> memory;
  nlohmann::json pipeline;
  std::optional<ComputeResult> compute;
  std::optional<Prediction> prediction;
  std::vector<ExplanationLine> explanation;
  std::optional<CheckpointTimes> checkpoint;

  static void fields(auto& f, auto& v) {
    f("schema_version", written(1), "id", required(v.id), "study", v.study, "label",
      required(v.label), "factors", checked_factors(v.factors), "case", v.facts, "config", v.config,
      "status", one_of(v.status, statuses), "reason", v.reason, "exit_code",
      in_range(v.exit_code, 0, 255), "crashes", v.crashes, "launches", v.launches, "launch",
      v.launch, "simulated", v.simulated, "started", v.started, "finished", v.finished,
      "wall_seconds", v.wall_seconds, "loss", v.loss, "rounds", ListOrNull{v.rounds},
      "step_seconds", v.step_seconds, "samples_per_second", positive(v.samples_per_second),
      "breakdown", v.breakdown, "traffic", v.traffic, "memory", v.memory, "pipeline", v.pipeline,
      "compute", v.compute, "prediction", v.prediction, "explanation", ListOrNull{v.explanation},
      "checkpoint", v.checkpoint);
  }

  /// Returns true for "ok" and for "unverified", which has a speed but no reference.
  bool is_measured() const { return status == "ok" || status == "unverified"; }
  /// Sets status, reason and exit code of a case that ended with this error.
  void end(ExitCode code, const std::string& why);
  bool is_predicted_oom() const { return memory && memory->predicted_oom; }
  Size ranks() const { return factors.at("ranks"); }
  Size batch() const { return factors.at("global_batch"); }
};

/// The status of a case that ended with this code.
const char* status_for(ExitCode code);

}  // namespace tessera::bench
