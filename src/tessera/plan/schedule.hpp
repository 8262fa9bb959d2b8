// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/action.hpp>
#include <tessera/plan/buckets.hpp>
#include <tessera/plan/layers.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The actions of one step in the order in which every rank takes them.
///
/// For each microbatch all forwards, the loss and all backwards. Sharded parameters are gathered
/// just before a layer, with `prefetch` started one layer ahead. Sharded gradients are
/// reduce-scattered behind each backward, with `overlap` while the next one goes on; if only
/// moments are sharded, in the last microbatch only. Replicas are reduced once, behind the last
/// microbatch, with `overlap` as soon as a bucket is ready. Then the update, and what it changed is
/// gathered where parameters are whole.
std::vector<Action> make_schedule(const PlanInput& input, const Layouts& layouts,
                                  const std::vector<Bucket>& buckets);

}  // namespace tessera
