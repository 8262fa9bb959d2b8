// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/tensor/mesh_shape.hpp>

/// Checks the mesh axes of parameters and batch. All functions throw ConfigError with the entry.
/// The plan checks that a bias fits its kernel.
namespace tessera {

/// Mesh axes, slowest first. A mesh made from sizes arranges them in this order.
inline constexpr std::array<std::string_view, 6> known_axes{"pipeline", "data",    "fsdp",
                                                            "expert",   "context", "model"};

/// Rejects rules that no mesh allows: unknown names, and axes that a name cannot use.
void check_mesh_rules(const std::string& key,
                      const std::map<std::string, std::vector<std::string>>& rules);

/// Rejects text that is not a PartitionSpec.
void check_parameter_specs(const std::string& key, const std::map<std::string, std::string>& specs);

/// Checks the rules against the model and its mesh.
void check_sharding(const Config& config, const MeshShape& mesh);

}  // namespace tessera
