// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// One placement per mesh axis, in the order of the mesh. Where several axes shard one dimension,
/// the earlier axis makes the outer split and the later one splits its parts again.
using Placements = std::vector<Placement>;

/// "Replicate", "Shard(0)", "Partial"
std::string to_string(const Placement& placement);
/// "data: Shard(0), model: Partial"
std::string to_string(const Placements& placements, const MeshShape& mesh);
/// "(4, 64)", "(7,)", "()"
std::string to_string(const Shape& shape);

/// Returns Replicate for every axis.
Placements replicated(const MeshShape& mesh);
/// Returns the placement along the axis of this name; Replicate if the mesh has no such axis.
Placement placement_along(std::string_view axis, const Placements& placements,
                          const MeshShape& mesh);

/// Throws Error (usage) unless there is one placement per axis and every sharded dimension exists.
void check_placements(const Placements& placements, const MeshShape& mesh, std::size_t tensor_rank);

}  // namespace tessera
