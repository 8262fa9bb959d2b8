// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/config/config.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// Checks every setting alone and all of them together. Throws ConfigError with the key, its value
/// and the allowed values.
void validate(const Config& config, const Topology& topology);

/// Replaces data.samples = "all" by the number of samples in the files, less those for validation.
/// Throws ConfigError if none are left.
void count_samples(Config& config);

/// Returns the mesh of a run on these ranks: the named mesh with the sizes of the launch, or a mesh
/// made from the parallel sizes. Without names, `hybrid` shards inside nodes if they are known.
/// Throws ConfigError for a mesh that does not fit the launch or the strategy. Needs no MPI.
MeshShape resolve_mesh(const Config& config, const Topology& topology);

/// Throws ConfigError if num_nodes or num_processes_per_node differ from the launch, whose nodes
/// must be known.
void check_nodes(const DistributedConfig& config, const Topology& launch);

/// Throws ConfigError if the configuration sets another number of threads per rank.
void check_threads(const DistributedConfig& config, Size threads);

/// Returns the number of ranks that the configuration asks for: world_size, nodes times processes,
/// or the fewest that the mesh needs. For planning without a launch.
Size planned_ranks(const Config& config);

/// Returns planned_ranks(), on nodes if num_nodes or num_processes_per_node is set.
Topology planned_topology(const Config& config);

/// Sets all keys that describe the mesh and the number of ranks.
void set_mesh(DistributedConfig& config, const MeshShape& mesh);

/// Validates a configuration and returns it with all sizes of the launch filled in. Resolving the
/// result again on the same ranks changes nothing.
Config resolve(const Config& config, const Topology& topology);

}  // namespace tessera
