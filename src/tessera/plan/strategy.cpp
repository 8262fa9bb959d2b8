// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/strategy.hpp>

namespace tessera {
namespace {

bool shards_over(Strategy strategy, const std::string& axis) {
  const StrategyRow& row = row_of(strategy);
  return row.shards.moments && (axis == "fsdp" || !row.over_fsdp_only);
}

}  // namespace

std::vector<std::string> batch_axes(const MeshShape& mesh) {
  std::vector<std::string> axes;
  for (const Axis& axis : mesh.axes())
    if (axis.name == "data" || axis.name == "fsdp") axes.push_back(axis.name);
  return axes;
}

std::vector<std::string> shard_axes(Strategy strategy, const MeshShape& mesh) {
  std::vector<std::string> axes = batch_axes(mesh);
  std::erase_if(axes, [&](const std::string& axis) { return !shards_over(strategy, axis); });
  return axes;
}

std::vector<std::string> replica_axes(Strategy strategy, const MeshShape& mesh) {
  std::vector<std::string> axes = batch_axes(mesh);
  std::erase_if(axes, [&](const std::string& axis) { return shards_over(strategy, axis); });
  return axes;
}

Sharding sharding_on(Strategy strategy, const MeshShape& mesh) {
  return mesh.group_size(shard_axes(strategy, mesh)) > 1 ? row_of(strategy).shards : Sharding{};
}

}  // namespace tessera
