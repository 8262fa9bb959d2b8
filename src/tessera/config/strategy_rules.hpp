// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/plan/strategy.hpp>

namespace tessera {

/// `config.strategy` is that of an available strategy, which check_settings() sees to.
Strategy strategy_of(const DistributedConfig& config);

/// Throws ConfigError unless the mesh has what the strategy needs.
void check_mesh_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

/// Throws ConfigError for an option that the strategy, on this mesh, would not look at.
void check_options_of_strategy(const DistributedConfig& config, const MeshShape& mesh);

}  // namespace tessera
