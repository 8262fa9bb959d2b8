// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results/reference.hpp"
#include "run/group.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

/// Runs the trials, then the reference. Throws Error (wrong_result) on all ranks if a trial's
/// losses differ, Error (timeout) if it takes longer than a case may. Collective over the group,
/// which has as many ranks as the plan.
Reference run_reference(const ReferencePlan& plan, const Group& group, const Study& study);

}  // namespace tessera::bench
