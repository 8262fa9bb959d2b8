// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// The mesh of a case that names ranks only: all of them along the axis that the strategy is for.
/// `hybrid` shards over the ranks of a node; on one node, or if the nodes are not known, over as
/// many ranks as it has replicas, or twice as many.
MeshShape usual_mesh(const std::string& strategy, const Topology& topology);

/// Every way to arrange `ranks` ranks along the axes, in their order; axes of size 1 are left out,
/// and the first one stands for a single rank.
std::vector<MeshShape> factorisations(Size ranks, const std::vector<std::string>& axes);

}  // namespace tessera
