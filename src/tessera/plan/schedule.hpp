// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/action.hpp>
#include <tessera/plan/pass.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/plan/units.hpp>

namespace tessera {

/// The actions of one step: the pass of each microbatch, with gathers before a unit is used and
/// reductions behind the last backward of a bucket, then clipping, update and what follows it.
std::vector<Action> make_schedule(const PlanInput& input, const PassPlan& pass,
                                  const ParameterLayout& parameters);

}  // namespace tessera
