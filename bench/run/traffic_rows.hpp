// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>
#include <tessera/plan/plan.hpp>

#include "measure/breakdown.hpp"
#include "measure/case_run.hpp"

namespace tessera::bench {

/// The traffic part of a result: planned beside measured, of the rank that sends most, and whether
/// they agree on every rank. Collective.
nlohmann::json verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                                const Verification& verification);

/// The same of a step that nobody has made: what is planned of rank 0.
nlohmann::json planned_traffic(const Plan& plan);

/// Adds to each row what a step makes of it: calls and bytes by the plan, seconds as measured, and
/// the bandwidths that follow.
void add_call_times(nlohmann::json& traffic, const Plan& plan, const Breakdown& breakdown);

}  // namespace tessera::bench
