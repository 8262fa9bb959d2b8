// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/config/strategy_rules.hpp>

#include "engine/training_support.hpp"

namespace tessera::train_test {

using Axes = std::vector<Axis>;

/// Returns meshes of a launch, with one axis and with several in different orders.
inline std::vector<Axes> meshes(Size ranks) {
  switch (ranks) {
    case 1:
      return {{{"data", 1}, {"fsdp", 1}, {"model", 1}}};
    case 4:
      return {{{"data", 4}},
              {{"model", 4}},
              {{"data", 2}, {"fsdp", 2}},
              {{"fsdp", 2}, {"data", 2}},
              {{"fsdp", 2}, {"model", 2}},
              {{"model", 2}, {"data", 2}}};
    case 6:
      return {{{"data", 3}, {"fsdp", 2}}, {{"fsdp", 2}, {"model", 3}}, {{"data", 6}}};
    case 8:
      return {{{"data", 2}, {"fsdp", 4}},
              {{"data", 2}, {"fsdp", 2}, {"model", 2}},
              {{"model", 8}},
              {{"fsdp", 8}}};
    default:
      return {{{"data", ranks}}, {{"fsdp", ranks}}, {{"model", ranks}}};
  }
}

inline bool suits(std::string_view strategy, const MeshShape& mesh) {
  for (const StrategyRow& row : strategies)
    if (row.name == strategy)
      return (!row.over_fsdp_only || mesh.find("fsdp")) &&
             (row.splits_batch || mesh.group_size(batch_axes(mesh)) == 1);
  return false;
}

/// Lets the axes that replicate shares of parameters shard moments, where there are such axes.
inline void shard_moments_wider(DistributedConfig& config, const MeshShape& mesh) {
  if (!row_of(config.strategy).over_fsdp_only || mesh.size_of("fsdp") == 1 || !mesh.find("data"))
    return;
  for (const std::size_t axis : batch_axes(mesh))
    config.shard_moments_over.push_back(mesh.axes()[axis].name);
}

inline Experiment on_mesh(Experiment setup, const Axes& axes, std::string_view strategy) {
  DistributedConfig& distributed = setup.training.distributed;
  for (const Axis& axis : axes) {
    distributed.mesh_axis_names.push_back(axis.name);
    distributed.mesh_shape.push_back(axis.size);
  }
  distributed.strategy = value_named<Strategy>(strategy).value();
  return setup;
}

/// Resets the options that have no effect under the setup's strategy, because they are rejected.
inline Experiment with_options_that_act(Experiment setup) {
  DistributedConfig& distributed = setup.training.distributed;
  const Strategy strategy = distributed.strategy;
  if (!can_apply(Applies::splitting_batch, strategy)) distributed.overlap = false;
  if (!can_apply(Applies::bucketing, strategy))
    distributed.bucket_bytes = DistributedConfig{}.bucket_bytes;
  return setup;
}

/// Calls f(setup, what) for every strategy on every mesh of this launch.
template <class F>
void for_strategies(const Experiment& base, const F& f) {
  for (const Axes& axes : meshes(Communicator::world().size()))
    for (const std::string_view strategy : names_of<Strategy>) {
      const MeshShape mesh(axes);
      if (suits(strategy, mesh))
        f(with_options_that_act(on_mesh(base, axes, strategy)),
          std::string(strategy) + " on " + mesh.to_string());
    }
}

}  // namespace tessera::train_test
