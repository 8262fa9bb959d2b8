// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
std::vector<bool> same_along_model(const Plan& plan) {
  std::vector<bool> same;
  for (const ParameterPlan& parameter : plan.stages.front().parameters.parameters)
    same.push_back(parameter.along_model.is_replicate());
  return same;
}

Size checksum_bytes(const Plan& plan) {
  const Size tensors = static_cast<Size>(same_along_model(plan).size()) * (1 + plan.input.moments);
  return 3 * tensors * size_of(DType::int64);
}

std::vector<CheckCall> plan_replica_check(const Plan& plan) {
  const std::vector<bool> same = same_along_model(plan);
  const Size parameters = static_cast<Size>(same.size());
  const Size all = parameters * (1 + plan.input.moments);
  const Sharding sharding = sharding_on(plan.input.strategy, plan.input.mesh);
  // Moments alone may be sharded: the parameters are then the same on the ranks that share those.
  const Size first_sharded = sharding.parameters ? 0 : sharding.moments ? parameters : all;

  std::vector<CheckCall> calls;
  if (first_sharded < all)
    calls.push_back({RankSet::shard, false, {first_sharded, all - first_sharded}});
  if (first_sharded == parameters && sharding.moments)
    calls.push_back({RankSet::shard, true, {0, parameters}});
  else
    calls.push_back({RankSet::replica, true, {0, all}});
  if (std::find(same.begin(), same.end(), true) != same.end())
    calls.push_back({RankSet::model, true, {0, all}});
  std::erase_if(calls, [&](const CheckCall& call) {
    return plan.input.mesh.group_size(axes_of(call.ranks, plan.input)) == 1;
  });
  return calls;
}

}  // namespace tessera
