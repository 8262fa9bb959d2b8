// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

#include "run/reference_plan.hpp"

namespace tessera::bench {

/// Makes the trials with these names, then the reference: {"document": what its file holds,
/// "made_trials": [what theirs hold]}. Throws Error (wrong_result) on all ranks where a trial's
/// losses differ, Error (timeout) where it takes longer than a case may. Collective over `ranks`,
/// as many as the plan has.
nlohmann::json run_reference(const ReferencePlan& plan, const nlohmann::json& trials,
                             const Communicator& ranks, const Study& study);

}  // namespace tessera::bench
