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

// The sections of a result. Their fields make the tables of bench/RESULTS.md.

struct LossResult {
  std::string verdict;
  double tolerance = 0;
  std::optional<double> largest_relative_difference;
  std::optional<Size> largest_at_step;
  Size epochs = 0, steps = 0;
  std::vector<double> step_losses, epoch_losses, validation_losses;
  std::vector<std::size_t> validated_at_steps;
  std::optional<std::vector<double>> reference_step_losses, reference_epoch_losses,
      reference_validation_losses;
  std::string reference, reference_mesh, problem;

  static void fields(auto& f, auto& v) {
    f("verdict", v.verdict, "equal, different, not_finite, no_reference; null: not reached");
    f("tolerance", v.tolerance, "allowed relative difference of a loss");
    f("largest_relative_difference", v.largest_relative_difference, "to the reference's loss");
    f("largest_at_step", v.largest_at_step, "counted from 1");
    f("epochs", v.epochs, "completed");
    f("steps", v.steps, "made");
    f("step_losses", v.step_losses, "of each step");
    f("epoch_losses", v.epoch_losses, "mean of each epoch");
    f("validation_losses", v.validation_losses, "of data.validation_samples unseen samples");
    f("validated_at_steps", v.validated_at_steps, "steps before each validation");
    f("reference_step_losses", v.reference_step_losses, "the reference's; it may have more steps");
    f("reference_epoch_losses", v.reference_epoch_losses);
    f("reference_validation_losses", v.reference_validation_losses);
    f("reference", v.reference, "its name in the journals");
    f("reference_mesh", v.reference_mesh, "of the ranks that computed it: data=1");
    f("problem", v.problem, "why there is no reference");
  }
};

/// Median and interval of the rounds' medians; all others are over all steps.
struct StepTimes : Statistics {
  Size warm_up = 0;

  static void fields(auto& f, auto& v) {
    f("median", v.median, "of the medians of the rounds", positive);
    f("mad", v.mad, "median distance of all steps from their median");
    f("min", v.min, "of all steps");
    f("p95", v.p95, "95th percentile of all steps");
    f("max", v.max, "of all steps");
    f("ci95_low", v.ci95_low, "95 % interval of the median");
    f("ci95_high", v.ci95_high);
    f("ci95_problem", v.ci95_problem, "why there is no interval");
    f("n", v.n, "number of steps");
    f("outliers", v.outliers, "steps further than 5 · 1.4826 · mad from the median");
    f("warm_up", v.warm_up, "steps before each first round");
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

  static void fields(auto& f, auto& v) {
    f("axis", v.axis, "mesh axis, several joined by +");
    f("operation", v.operation);
    f("group_size", v.group_size, "ranks of a call");
    f("planned_calls", v.planned_calls, "of the verification, as all until measured_payload_bytes");
    f("planned_payload_bytes", v.planned_payload_bytes);
    f("measured_calls", v.measured_calls);
    f("measured_payload_bytes", v.measured_payload_bytes);
    f("calls_per_step", v.calls_per_step, "of instrumented steps; null: once per epoch");
    f("payload_bytes_per_step", v.payload_bytes_per_step);
    f("rounds_per_step", v.rounds_per_step, "of messages, by ring and tree algorithms: a model");
    f("wire_bytes_per_step", v.wire_bytes_per_step, "that a rank sends, by the same model");
    f("seconds_per_step", v.seconds_per_step, "without the wait for late ranks");
    f("wait_seconds_per_step", v.wait_seconds_per_step, "for late ranks");
    f("algorithm_bytes_per_second", v.algorithm_bytes_per_second, "payload over seconds");
    f("bus_bytes_per_second", v.bus_bytes_per_second, "that times the bus factor of comm");
  }
};

struct Traffic {
  Size steps = 0, epochs = 0;
  std::optional<bool> as_planned;
  std::vector<TrafficRow> rows;

  static void fields(auto& f, auto& v) {
    f("steps", v.steps, "of the verification");
    f("epochs", v.epochs);
    f("as_planned", v.as_planned, "on every rank");
    f("rows", v.rows, "by axis and operation, of the rank that sends most");
  }
};

struct MemoryResult {
  std::optional<bool> as_planned;
  Size planned_bytes = 0;
  std::optional<Size> measured_bytes;
  std::map<std::string, Size> parts;
  std::optional<Size> limit_bytes;
  bool predicted_oom = false;

  static void fields(auto& f, auto& v) {
    f("as_planned", v.as_planned, "on every rank");
    f("planned_bytes", v.planned_bytes, "of the rank that uses most");
    f("measured_bytes", v.measured_bytes, "of this rank");
    f("parts", v.parts, "by role; they add up to planned_bytes");
    f("limit_bytes", v.limit_bytes, "limits.memory_bytes");
    f("predicted_oom", v.predicted_oom, "the plan exceeds the limit, so the case did not run");
  }
};

/// FLOP rates of a step; unknown ones have no value.
struct ComputeResult {
  double flops_per_step = 0, gemm_peak_flops_per_second = 0;
  std::optional<double> flops_per_second, flops_per_second_per_rank, vendor_peak_flops_per_second,
      vendor_mfu;

  /// Sets the rates of a step of this length.
  void set_step(double seconds, Size ranks);

  static void fields(auto& f, auto& v) {
    f("flops_per_step", v.flops_per_step, "on all ranks, as all but those of a rank");
    f("gemm_peak_flops_per_second", v.gemm_peak_flops_per_second,
      "best square product next to the case");
    f("flops_per_second", v.flops_per_second);
    f("flops_per_second_per_rank", v.flops_per_second_per_rank);
    f("vendor_peak_flops_per_second", v.vendor_peak_flops_per_second, "from limits");
    f("vendor_mfu", v.vendor_mfu, "rate over the vendor's peak");
  }
};

struct Prediction {
  std::string machine;
  double step_seconds = 0, product_seconds = 0, kernel_seconds = 0, optimizer_seconds = 0,
         communication_seconds = 0, idle_seconds = 0;
  std::optional<double> launch_seconds{};
  bool oversubscribed = false;

  static void fields(auto& f, auto& v) {
    f("machine", v.machine, "its name");
    f("step_seconds", v.step_seconds, "as simulated");
    f("product_seconds", v.product_seconds, "parts of the step, as in `breakdown`");
    f("kernel_seconds", v.kernel_seconds, "compute without products");
    f("optimizer_seconds", v.optimizer_seconds);
    f("communication_seconds", v.communication_seconds);
    f("idle_seconds", v.idle_seconds);
    f("launch_seconds", v.launch_seconds, "launches of kernels");
    f("oversubscribed", v.oversubscribed, "ranks share processors, so this is coarse");
  }
};

/// The result of a case: cases/<id>/result.json. Members that only the report reads are JSON.
struct CaseResult {
  std::string id, study, label;
  nlohmann::json factors = nlohmann::json::object();
  nlohmann::json facts;  ///< "case" in the file
  nlohmann::json config = nlohmann::json::object();

  std::string status = "pending", reason;
  std::optional<int> exit_code;
  Size crashes = 0, launches = 0;
  std::string launch, simulated, started, finished;
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
  std::optional<CheckpointTimes> checkpoint;

  static void fields(auto& f, auto& v) {
    f("schema_version", written(1));
    f("id", v.id, "as in study.json", required);
    f("study", v.study, "its name");
    f("label", v.label, "its factors in words", required);
    f("factors", v.factors, "as in study.json", check_factors);
    f("case", v.facts, "what it is: mesh, nodes and the axes across them, types, parameters");
    f("config", v.config, "its whole configuration");
    f("status", v.status, "", one_of(statuses));
    f("reason", v.reason, "why it has no times");
    f("exit_code", v.exit_code, "", in_range(0, 255));
    f("crashes", v.crashes, "rounds that began and did not end");
    f("launches", v.launches, "that finished measuring it; 0: --resume continues");
    f("launch", v.launch, "the latest with a result");
    f("simulated", v.simulated, "the machine of `simulate`; its times are predicted");
    f("started", v.started, "UTC");
    f("finished", v.finished, "UTC");
    f("wall_seconds", v.wall_seconds, "in the latest launch");
    f("loss", v.loss, "losses beside those of the reference");
    f("rounds", v.rounds, "blocks of steps, of all launches");
    f("step_seconds", v.step_seconds, "on the slowest rank, with one fence at the end of a step");
    f("samples_per_second", v.samples_per_second, "global batch over the median", positive);
    f("breakdown", v.breakdown, "of instrumented steps; the means of five parts add up to a step");
    f("traffic", v.traffic, "planned and measured calls");
    f("memory", v.memory, "of the device");
    f("pipeline", v.pipeline, "schedule, stages, bubble (by the schedule alone), microbatches");
    f("compute", v.compute, "FLOP rates");
    f("prediction", v.prediction, "null for a case that sets threads, with --machine");
    f("checkpoint", v.checkpoint, "null without checkpoint.directory");
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
