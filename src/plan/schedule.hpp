// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/action.hpp>
#include <tessera/plan/buckets.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The actions of one step in the order in which every rank takes them: for each microbatch all
/// forwards, the loss and all backwards; reductions once, in the last microbatch; then the update.
/// With `overlap` a bucket starts right behind the backward of its first layer.
std::vector<Action> make_schedule(const PlanInput& input, const std::vector<Bucket>& buckets);

}  // namespace tessera
