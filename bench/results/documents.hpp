// SPDX-License-Identifier: Apache-2.0
// The parts of result documents (bench/RESULTS.md) that are known before anything runs.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>
#include <tessera/predict/machine.hpp>

#include "measure/checkpoint_times.hpp"
#include "measure/statistics.hpp"
#include "study/case.hpp"

namespace tessera::bench {

nlohmann::json study_document(const Study& study, const std::vector<Case>& cases);

/// A result of a case with what is known without running it; the rest is null.
nlohmann::json result_skeleton(const Study& study, const Case& point);

nlohmann::json statistics_json(const Statistics& statistics, const MeasureRules& rules);

/// Device memory of the rank with the most.
struct LargestMemory {
  Size rank = 0;
  MemoryPlan memory;
};
LargestMemory largest_memory(const Plan& plan);
/// FLOPs of a step of this length, as rates, and as shares of what products of a rank can reach:
/// `gemm_peak` as measured, `vendor_peak` as its vendor says; null where that is not known.
nlohmann::json compute_json(const Plan& plan, double gemm_peak, std::optional<double> vendor_peak,
                            std::optional<double> seconds);

/// The machine as documents of launches have it: its name and the text of its file.
nlohmann::json machine_json(const Machine& machine);

nlohmann::json checkpoint_json(const CheckpointConfig& config, const CheckpointTimes& times);

nlohmann::json memory_json(const MemoryPlan& memory, const Limits& limits);
/// Whether a rank may use as many bytes.
bool fits(Size bytes, const Limits& limits);
/// Why it may not, where it does not fit.
std::string too_large(Size bytes, const Limits& limits);

/// null where the number is not finite, as JSON has no other way to say so.
nlohmann::json finite(double value);

}  // namespace tessera::bench
