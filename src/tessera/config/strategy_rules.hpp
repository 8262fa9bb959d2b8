// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/plan/layout/strategy.hpp>

namespace tessera {

/// `config.strategy` is that of an available strategy, which check_settings() sees to.
Strategy strategy_of(const DistributedConfig& config);

/// Throws ConfigError unless the mesh has what the strategy needs.
void check_mesh_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

/// What an option acts on.
enum class Applies : std::uint8_t {
  gathering,         ///< strategies that gather parameters
  bucketing,         ///< strategies that reduce gradients of several units in one call
  splitting_batch,   ///< gradients that are reduced
  splitting_layers,  ///< meshes with an axis `model`
  staging,           ///< meshes with an axis `pipeline`
};

/// The options that do not act under every strategy and on every mesh.
struct StrategyOption {
  std::string_view key;
  Applies applies;
};
const std::vector<StrategyOption>& strategy_options();

/// Whether an option acts under a strategy on some mesh, and whether it does on this one.
bool can_apply(Applies applies, Strategy strategy);
bool applies_on(Applies applies, Strategy strategy, const MeshShape& mesh);

/// Throws ConfigError for an option that the strategy would not look at.
void check_options_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

}  // namespace tessera
