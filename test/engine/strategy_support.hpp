// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/plan/strategy.hpp>

#include "engine/training_support.hpp"

namespace tessera::train_test {

using Axes = std::vector<Axis>;

/// Meshes of a launch, of one axis and of several, in more than one order.
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
  if (strategy == "hybrid") return mesh.find("fsdp").has_value();
  if (strategy == "tensor") return mesh.size_of("data") * mesh.size_of("fsdp") == 1;
  return true;
}

inline Experiment on_mesh(Experiment setup, const Axes& axes, std::string_view strategy) {
  DistributedConfig& distributed = setup.training.distributed;
  for (const Axis& axis : axes) {
    distributed.mesh_axis_names.push_back(axis.name);
    distributed.mesh_shape.push_back(axis.size);
  }
  distributed.strategy = strategy;
  return setup;
}

/// The same with units of one size on all ranks of `model` where several batches' gradients are
/// added: what is whole there is then the same to the bit.
inline Experiment with_even_units(Experiment setup) {
  const DistributedConfig& distributed = setup.training.distributed;
  Size batch_ranks = 1;
  bool splits_layers = false;
  for (std::size_t a = 0; a < distributed.mesh_shape.size(); ++a) {
    if (distributed.mesh_axis_names[a] != "model")
      batch_ranks *= distributed.mesh_shape[a];
    else
      splits_layers = distributed.mesh_shape[a] > 1;
  }
  if (splits_layers && batch_ranks > 2) setup.model.mlp.widths = {4, 12, 14, 8, 6, 2};
  return setup;
}

/// Calls f(setup, what) for every strategy on every mesh of this launch.
template <class F>
void for_strategies(const Experiment& base, const F& f) {
  for (const Axes& axes : meshes(Communicator::world().size()))
    for (const std::string_view strategy : strategy_names) {
      const MeshShape mesh(axes);
      if (suits(strategy, mesh))
        f(on_mesh(base, axes, strategy), std::string(strategy) + " on " + mesh.to_string());
    }
}

}  // namespace tessera::train_test
