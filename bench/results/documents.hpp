// SPDX-License-Identifier: Apache-2.0
// Parts of the documents of a results directory (bench/RESULTS.md).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>
#include <tessera/predict/machine.hpp>

#include "measure/checkpoint_times.hpp"
#include "measure/statistics.hpp"
#include "results/case_result.hpp"
#include "study/case.hpp"

namespace tessera::bench {

nlohmann::json study_document(const Study& study, const std::vector<Case>& cases);

/// Returns the result of a case before it runs.
CaseResult new_result(const Study& study, const Case& point);

nlohmann::json statistics_json(const Statistics& statistics, const MeasureRules& rules);

/// Device memory of the rank that uses most.
struct LargestMemory {
  Size rank = 0;
  MemoryPlan memory;
};
LargestMemory largest_memory(const Plan& plan);
/// Returns the FLOP rates of a step of this length, and their shares of the peaks of a rank:
/// `gemm_peak` as measured, `vendor_peak` as the vendor states. Unknown rates are null.
nlohmann::json compute_json(const Plan& plan, double gemm_peak, std::optional<double> vendor_peak,
                            std::optional<double> seconds);

/// The machine as documents of launches have it: its name and the text of its file.
nlohmann::json machine_json(const Machine& machine);

nlohmann::json checkpoint_json(const CheckpointConfig& config, const CheckpointTimes& times);

/// Returns "pipeline" of a result; null for one stage. `bubble` is that of the schedule if a
/// backward pass takes twice as long as a forward pass and messages take no time.
nlohmann::json pipeline_json(const Plan& plan);

nlohmann::json memory_json(const MemoryPlan& memory, const Limits& limits);
/// Returns true if a rank may use so many bytes.
bool fits(Size bytes, const Limits& limits);
/// Returns the message for a plan that does not fit.
std::string too_large(Size bytes, const Limits& limits);

/// Returns null for a number that is not finite, which JSON cannot hold.
nlohmann::json finite(double value);
nlohmann::json numbers_json(const std::vector<double>& values);

}  // namespace tessera::bench
