// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// Every rule that a configuration must satisfy on this number of ranks, each setting alone and all
/// of them together. Throws ConfigError naming the key, its value and what is allowed.
void validate(const Config& config, Size ranks);

/// The mesh of a run on `ranks` ranks: the named one with -1 filled in, or one made from the
/// parallel sizes. Checks the rules of [distributed] that concern the mesh. Needs no MPI.
MeshShape resolve_mesh(const Config& config, Size ranks);

/// Throws ConfigError unless num_nodes and num_processes_per_node, where they are given, are those
/// of the launch: `ranks_by_node` has the number of processes on each of its nodes.
void check_nodes(const DistributedConfig& config, const std::vector<Size>& ranks_by_node);

/// Throws ConfigError unless `threads`, which a rank of this launch has, are those of the
/// configuration, if it has some.
void check_threads(const DistributedConfig& config, Size threads);

/// The number of ranks that the configuration itself asks for: world_size, or the nodes times their
/// processes, or what the mesh needs at least. For planning without a launch.
Size planned_ranks(const Config& config);

/// A valid configuration with everything that was left to the launch filled in; resolving that
/// again on the same ranks changes nothing.
Config resolve(const Config& config, Size ranks);

}  // namespace tessera
