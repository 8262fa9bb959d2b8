// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>

#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

/// Returns the number of parameters and moments of the rank's stage.
Size num_checksums(const Plan& plan, Size rank) {
  Size checksums = 0;
  for (const ParameterPlan& parameter : plan.stage(rank).parameters.parameters)
    checksums += parameter.is_matrix ? 2 : 1 + plan.input.moments;
  return checksums;
}

}  // namespace

Size checksum_bytes(const Plan& plan, Size rank) {
  return 3 * num_checksums(plan, rank) * size_of(DType::int64);
}

std::vector<CheckCall> plan_replica_check(const Plan& plan, Size rank) {
  const std::vector<ParameterPlan>& parameters = plan.stage(rank).parameters.parameters;
  const Size all = num_checksums(plan, rank), first_moment = static_cast<Size>(parameters.size());
  const Sharding sharding = sharding_on(plan.input.strategy, plan.input.mesh);
  const Held held = sharding.held_parameters(plan.input.has_copies());
  // The replicas of parameters and those of moments, by BucketPlan::sums, the largest first.
  std::map<AxisSet, std::pair<AxisSet, AxisSet>, std::greater<>> replicas;
  for (const BucketPlan& bucket : plan.stage(rank).parameters.buckets)
    replicas[bucket.sums] = {bucket.replicas(held), bucket.replicas(sharding.held_moments())};
  std::vector<CheckCall> calls;
  for (const auto& [sums, of] : replicas) {
    const Size first = of.first == of.second ? 0 : first_moment;
    if (first > 0) calls.push_back({of.first, {0, first_moment}});
    calls.push_back({of.second, {first, all - first}});
  }
  const AxisSet model = plan.input.mesh.axes_named({"model"});
  if (std::any_of(parameters.begin(), parameters.end(),
                  [&](const ParameterPlan& p) { return !(p.copies & model).empty(); }))
    calls.push_back({model, {0, all}});
  std::erase_if(calls, [&](const CheckCall& call) {
    return call.checksums.count == 0 || plan.input.mesh.group_size(call.ranks) == 1;
  });
  return calls;
}

}  // namespace tessera
