// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// Its sizes and names as Python writes tuples: "(2, 4)", "('data', 'model')", "('data',)".
std::string shape_text(const MeshShape& mesh);
std::string names_text(const MeshShape& mesh);

/// The ranks as a grid: the last axis across, the one before it down, one grid for each coordinate
/// of the axes before those. Long directions are cut with "...". Ends with a line break.
std::string layout_text(const MeshShape& mesh);

/// Shape, axis names and layout of the ranks as text.
std::string visualize_mesh(const MeshShape& mesh);

/// "Nodes: 2 with 4 ranks each; fsdp stays inside a node, data crosses nodes" and a line break; ""
/// if the nodes are not known.
std::string nodes_line(const Topology& topology, const MeshShape& mesh);

/// {"count": 2, "ranks_each": "4", "inside": ["fsdp"], "across": ["data"]}, the axes larger than 1;
/// null if the nodes are not known.
nlohmann::json nodes_json(const Topology& topology, const MeshShape& mesh);

/// {"shape": [2, 4], "axis_names": ["data", "model"], "num_ranks": 8, "spec": "data=2,model=4"}
nlohmann::json mesh_info(const MeshShape& mesh);

}  // namespace tessera
