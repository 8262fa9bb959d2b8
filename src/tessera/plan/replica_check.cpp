// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

/// Returns the number of parameters and moments of the rank's stage.
Size num_checksums(const Plan& plan, Size rank) {
  return static_cast<Size>(plan.stage(rank).parameters.parameters.size()) *
         (1 + plan.input.moments);
}

}  // namespace

Size checksum_bytes(const Plan& plan, Size rank) {
  return 3 * num_checksums(plan, rank) * size_of(DType::int64);
}

std::vector<CheckCall> plan_replica_check(const Plan& plan, Size rank) {
  const std::vector<ParameterPlan>& parameters = plan.stage(rank).parameters.parameters;
  const Size all = num_checksums(plan, rank), first_moment = static_cast<Size>(parameters.size());
  const Sharding sharding = sharding_on(plan.input.strategy, plan.input.mesh);
  std::vector<CheckCall> calls;
  if (sharding.moments && !sharding.parameters && !plan.input.has_copies())
    calls = {{RankSet::batch, {0, first_moment}},
             {RankSet::replica, {first_moment, all - first_moment}}};
  else
    calls = {{RankSet::replica, {0, all}}};
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const ParameterPlan& p) { return p.experts > 0; }))
    for (const CheckCall& call : std::vector(calls))
      calls.push_back({for_experts(call.ranks), call.checksums});
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const ParameterPlan& p) { return p.along_model.is_replicate(); }))
    calls.push_back({RankSet::model, {0, all}});
  std::erase_if(calls, [&](const CheckCall& call) {
    return call.checksums.count == 0 ||
           plan.input.mesh.group_size(axes_of(call.ranks, plan.input)) == 1;
  });
  return calls;
}

}  // namespace tessera
