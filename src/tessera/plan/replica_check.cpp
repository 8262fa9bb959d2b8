// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

/// The ranks of `model` reduce their gradients apart.
bool adds_in_one_order(const Plan& plan) {
  const MeshShape& mesh = plan.input.mesh;
  if (mesh.group_size(batch_axes(mesh)) <= 2) return true;
  const ModelSpec largest = plan.layouts.local_model(plan.input.model, 0);
  const ModelSpec smallest = plan.layouts.local_model(plan.input.model, mesh.size_of("model") - 1);
  for (std::size_t l = 0; l < largest.layers.size(); ++l)
    if (largest.layers[l].num_parameters() != smallest.layers[l].num_parameters()) return false;
  return true;
}

}  // namespace

std::vector<bool> same_along_model(const Plan& plan) {
  const bool in_one_order = adds_in_one_order(plan);
  std::vector<bool> same;
  for (const ParameterSpec& parameter : plan.input.model.parameters()) {
    const LayerLayout& layout = plan.layouts[parameter.layer];
    const bool kernel = parameter.shape.size() == 2;
    same.push_back(in_one_order && (kernel ? layout.kernel : layout.bias()).is_replicate());
  }
  return same;
}

Size checksum_bytes(const Plan& plan) {
  const Size tensors =
      static_cast<Size>(plan.input.model.parameters().size()) * (1 + plan.input.moments);
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
    calls.push_back({Group::shard, false, {first_sharded, all - first_sharded}});
  if (first_sharded == parameters && sharding.moments)
    calls.push_back({Group::shard, true, {0, parameters}});
  else
    calls.push_back({Group::replica, true, {0, all}});
  if (std::find(same.begin(), same.end(), true) != same.end())
    calls.push_back({Group::model, true, {0, all}});
  std::erase_if(calls, [&](const CheckCall& call) {
    return plan.input.mesh.group_size(axes_of(call.group, plan.input)) == 1;
  });
  return calls;
}

}  // namespace tessera
