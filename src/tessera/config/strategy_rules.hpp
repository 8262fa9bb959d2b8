// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/tensor/mesh_axes.hpp>
#include <tessera/tensor/mesh_shape.hpp>

/// Rules between strategy, mesh axes, parameters and batch. All functions that check throw
/// ConfigError with the key or the entry of a table. The plan checks that a bias fits its kernel.
namespace tessera {

/// Rejects rules that no mesh allows: unknown names, and axes that a name cannot use.
void check_mesh_rules(const std::string& key,
                      const std::map<std::string, std::vector<std::string>>& rules);

/// Rejects text that is not a PartitionSpec.
void check_parameter_specs(const std::string& key, const std::map<std::string, std::string>& specs);

/// Checks mesh_rules against the model and its mesh.
void check_sharding(const Config& config, const MeshShape& mesh, const ModelSpec& model);

/// Rejects a mesh that lacks an axis that the strategy needs, or has one that it cannot use.
void check_mesh_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

/// The strategies or meshes that use an option.
enum class Applies : std::uint8_t {
  gathering,            ///< strategies that gather parameters
  replicating_shares,   ///< strategies with replicas of shares along `data`
  bucketing,            ///< strategies that reduce gradients of several units in one call
  splitting_batch,      ///< gradients that are reduced
  splitting_layers,     ///< meshes with an axis `model`
  splitting_positions,  ///< meshes with an axis `context`
  staging,              ///< meshes with an axis `pipeline`
};

/// An option that only some strategies or meshes use.
struct StrategyOption {
  std::string_view key;
  Applies applies;
};
const std::vector<StrategyOption>& strategy_options();

/// Returns true if the strategy uses the option on some mesh.
bool can_apply(Applies applies, Strategy strategy);
/// Returns true if the strategy uses the option on this mesh.
bool applies_on(Applies applies, Strategy strategy, const MeshShape& mesh);

/// Rejects an option that the strategy does not use and that differs from its default.
void check_options_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

}  // namespace tessera
