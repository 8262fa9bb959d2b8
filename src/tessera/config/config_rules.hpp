// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// Every rule that a configuration must satisfy on these ranks, each setting alone and all of them
/// together. Throws ConfigError naming the key, its value and what is allowed.
void validate(const Config& config, const Topology& topology);

/// The mesh of a run on these ranks: the named one with the launch's sizes filled in, or one made
/// from the parallel sizes, in which hybrid shards inside nodes if they are known. Checks the rules
/// of [distributed] that concern the mesh. Needs no MPI.
MeshShape resolve_mesh(const Config& config, const Topology& topology);

/// Throws ConfigError unless num_nodes and num_processes_per_node, where they are given, are those
/// of the launch, whose nodes must be known.
void check_nodes(const DistributedConfig& config, const Topology& launch);

/// Throws ConfigError unless `threads`, which a rank of this launch has, are those of the
/// configuration, if it has some.
void check_threads(const DistributedConfig& config, Size threads);

/// The number of ranks that the configuration itself asks for: world_size, or the nodes times their
/// processes, or what the mesh needs at least. For planning without a launch.
Size planned_ranks(const Config& config);

/// These ranks, on the nodes that num_nodes or num_processes_per_node give.
Topology planned_topology(const Config& config);

/// A mesh that says all, number of ranks included.
void set_mesh(DistributedConfig& config, const MeshShape& mesh);

/// A valid configuration with everything that was left to the launch filled in; resolving that
/// again on the same ranks changes nothing.
Config resolve(const Config& config, const Topology& topology);

}  // namespace tessera
