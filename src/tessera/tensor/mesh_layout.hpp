// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <tessera/tensor/placement.hpp>

namespace tessera {

/// Return the sizes and the names as Python tuples: "(2, 4)" and "('data', 'model')", "('data',)".
std::string shape_text(const MeshShape& mesh);
std::string names_text(const MeshShape& mesh);

/// Returns the ranks as grids: the last axis across, the axis before it down, and one grid for each
/// coordinate of the other axes. "..." replaces the middle of long directions. Ends with a line
/// break.
std::string layout_text(const MeshShape& mesh);

/// Returns shape, axis names and layout of the ranks as text.
std::string visualize_mesh(const MeshShape& mesh);

/// Returns "Nodes: 2 with 4 ranks each; fsdp stays inside a node, data crosses nodes" and a line
/// break, or "" if the nodes are not known.
std::string nodes_line(const Topology& topology, const MeshShape& mesh);

/// Returns {"count": 2, "ranks_each": "4", "inside": ["fsdp"], "across": ["data"]} with the axes
/// larger than 1, or null if the nodes are not known.
nlohmann::json nodes_json(const Topology& topology, const MeshShape& mesh);

/// Returns {"shape": [2, 4], "axis_names": ["data", "model"], "num_ranks": 8, "spec":
/// "data=2,model=4"}
nlohmann::json mesh_info(const MeshShape& mesh);

/// Returns the sharding of a tensor as text: its shape, its PartitionSpec (its placements if it is
/// Partial), and the global indices of every distinct piece with the ranks that hold it. Lists at
/// most 16 pieces.
std::string inspect_sharding(std::string_view name, const Shape& global_shape,
                             const Placements& placements, const MeshShape& mesh);

/// The same for a sharded tensor. No communication.
template <class Tensor>
std::string inspect_sharding(const Tensor& tensor, std::string_view name = "array") {
  return inspect_sharding(name, tensor.global_shape(), tensor.placements(), tensor.mesh().shape());
}

}  // namespace tessera
