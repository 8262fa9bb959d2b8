// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>

/// What a configuration may say about the mesh axes of parameters and batch. All throw ConfigError
/// that names the entry. That the spec of a bias agrees with its kernel's is for the plan to check.
namespace tessera {

/// Mesh axes, slowest first: the order in which a mesh made from sizes alone arranges them.
inline constexpr std::array<std::string_view, 4> known_axes{"pipeline", "data", "fsdp", "model"};

/// Rules that no mesh allows: unknown names, axes that do other work.
void check_mesh_rules(const std::string& key,
                      const std::map<std::string, std::vector<std::string>>& rules);

/// Specs that no model and mesh allow: not a PartitionSpec, other axes than `model`.
void check_parameter_specs(const std::string& key, const std::map<std::string, std::string>& specs);

/// Both against the model and its mesh.
void check_sharding(const Config& config, const MeshShape& mesh);

}  // namespace tessera
