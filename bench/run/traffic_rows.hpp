// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>
#include <tessera/plan/plan.hpp>

#include "measure/breakdown.hpp"
#include "measure/case_run.hpp"

namespace tessera::bench {

/// Returns "traffic" of a result: planned and measured traffic of the rank that sends most, and
/// whether they agree on every rank. Collective.
nlohmann::json verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                                const Verification& verification);

/// Returns the planned traffic of a step on rank 0.
nlohmann::json planned_traffic(const Plan& plan);

/// Adds the values per step to each row: planned calls and bytes, measured seconds, bandwidths.
void add_call_times(nlohmann::json& traffic, const Plan& plan, const Breakdown& breakdown);

}  // namespace tessera::bench
