// SPDX-License-Identifier: Apache-2.0
// Functions that both the text and the JSON document of a plan use.
#pragma once

#include <string>
#include <vector>

#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns the PartitionSpec of a tensor, with " of a sum" if ranks have terms of it.
std::string spec_of(const Plan& plan, const Slot& tensor);

/// Returns the axes over which buckets, or those of experts, are sharded.
std::string shares_over(const Plan& plan, bool of_experts);

/// Returns true if the calls along an axis are known to cross nodes.
bool crosses(const Plan& plan, const Topology& topology, const std::string& axis);

/// Calls, and the boxes of ranks that make them.
struct CallGroup {
  std::vector<CollectivePlan> calls;
  RankBoxes::Group ranks;
};
std::vector<CallGroup> group_calls(const Plan& plan, const AlikeRanks& alike);

/// Up to this number, repeated microbatches are listed one by one. Beyond it, the first one stands
/// for all.
inline constexpr Size most_listed = 64;

/// Calls write(action, times) for the actions of a step in order. The action stands for `times`
/// equal microbatches.
template <class Write>
void list_actions(const StagePlan& stage, const Write& write) {
  const Repetition& repeated = stage.repeated;
  const bool is_short = repeated.times > most_listed;
  const Size times = is_short ? repeated.times : 1;
  for_each_action(stage.actions, {repeated.actions, repeated.times / times, repeated.before},
                  [&](std::size_t number, Size microbatch) {
                    const auto at = static_cast<Size>(number);
                    write(ListedAction{stage.actions[number].action, microbatch},
                          at >= repeated.before && at < repeated.end() ? times : 1);
                  });
}

}  // namespace tessera
