// SPDX-License-Identifier: Apache-2.0
// The sections of a case's result that follow from its plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/predict/machine.hpp>
#include <tessera/predict/simulate.hpp>

#include "measure/case_run.hpp"
#include "results/case_result.hpp"

namespace tessera::bench {

/// Returns the result of a case before it runs.
CaseResult new_result(const Study& study, const Case& point);

/// Returns true if a rank may use so many bytes.
bool fits(Size bytes, const Limits& limits);

/// Sets "memory" and "pipeline". Returns false, and ends the case as "oom", if the plan does not
/// fit into memory.
bool add_plan(CaseResult& result, const Plan& plan, const Limits& limits);

/// Returns the FLOP rates of a step of this length, and their shares of the peaks of a rank:
/// `gemm_peak` as measured, `vendor_peak` as the vendor states.
ComputeResult flop_rates(const Plan& plan, double gemm_peak, std::optional<double> vendor_peak,
                         std::optional<double> seconds);

Prediction prediction_of(const SimulatedStep& step, const std::string& machine,
                         bool oversubscribed);

/// The machine as documents of launches have it: its name and the text of its file.
nlohmann::json machine_json(const Machine& machine);

/// Returns planned and measured traffic of the rank that sends most, and whether they agree on
/// every rank. Collective.
Traffic verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                         const Verification& verification);

/// Returns the planned traffic of a step on rank 0.
Traffic planned_traffic(const Plan& plan);

/// Adds the values per step to each row: planned calls and bytes, measured seconds, bandwidths.
void add_call_times(Traffic& traffic, const Plan& plan, const Breakdown& breakdown);

}  // namespace tessera::bench
