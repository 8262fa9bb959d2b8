// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "run/group.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

/// Makes the trials with these names, then the reference: {"document": what its file holds,
/// "made_trials": [what theirs hold]}. Throws Error (wrong_result) on all ranks where a trial's
/// losses differ, Error (timeout) where it takes longer than a case may. Collective over the
/// group, which has as many ranks as the plan.
nlohmann::json run_reference(const ReferencePlan& plan, const nlohmann::json& trials,
                             const Group& group, const Study& study);

}  // namespace tessera::bench
