// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array/sharded_tensor.hpp>
#include <tessera/mesh/partition_spec.hpp>

namespace tessera {

/// A full array, the same on every rank: flat row-major values and their shape.
template <class T>
struct Array {
  Vector<T> values;
  Shape shape;
};

/// Full arrays and sharded tensors by path, as "layer1/kernel".
template <class T>
using ArrayState = std::map<std::string, Array<T>>;
template <class T>
using ShardedState = std::map<std::string, ShardedTensor<T>>;

/// Where arrays go: a mesh and the spec of an array on it.
struct NamedSharding {
  Mesh mesh;
  PartitionSpec spec;
};

/// A mesh over all ranks of `world`: {{"data", 2}, {"model", 4}}; one size may be -1, the rest of
/// the ranks. Collective. ConfigError for the key "mesh".
Mesh create_device_mesh(const Communicator& world, std::vector<Axis> axes);
/// All ranks along one axis. Collective.
Mesh create_data_parallel_mesh(const Communicator& world, std::string_view data_axis = "data");
/// Dimension 0 over the data axis. ConfigError if the mesh does not have it.
NamedSharding create_data_parallel_sharding(const Mesh& mesh, std::string_view data_axis = "data");

/// This rank's block of the array. No communication; an alias of the array where the block is
/// contiguous in it. The state forms do the same to every array.
template <class T>
ShardedTensor<T> shard_array(const Array<T>& array, const NamedSharding& sharding);
template <class T>
ShardedTensor<T> shard_array(const Array<T>& array, const Mesh& mesh, const PartitionSpec& spec);

/// The whole array on every rank: an alias.
template <class T>
ShardedTensor<T> replicate(const Array<T>& array, const Mesh& mesh);
template <class T>
ShardedState<T> replicate(const ArrayState<T>& arrays, const Mesh& mesh);

/// The rows of a batch, split over the axes that split data (`data` and `fsdp`, those that the mesh
/// has), or as the sharding says. Batches that the ranks do not divide, or that are smaller, work.
template <class T>
ShardedTensor<T> shard_batch(const Array<T>& batch, const Mesh& mesh);
template <class T>
ShardedTensor<T> shard_batch(const Array<T>& batch, const NamedSharding& sharding);
template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const Mesh& mesh);
template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const NamedSharding& sharding);

/// Parameters over a mesh. `param_sharding`: "replicate" keeps them whole; "shard" splits the
/// largest dimension (the first of equals) over `fsdp`, or over `data` where the mesh has no fsdp
/// axis; a map gives the spec of each path, and paths that it does not have stay whole. ConfigError
/// for another word, for a mesh with neither axis, and for a path that the state does not have
/// (with the nearest one that it has).
template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  std::string_view param_sharding = "replicate");
template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  const std::map<std::string, PartitionSpec>& param_sharding);

/// Gradients that are terms of a sum along `axis` (Partial) become their sum, or that divided by
/// the size of the axis ("mean": right where every rank's gradient is a mean over equally many
/// samples). One all-reduce per tensor, in place where nothing else refers to its memory.
/// ConfigError for another `reduce_type` or an axis that the mesh does not have; Error for a
/// gradient that is not Partial along the axis. Collective over the mesh. Defined for float and
/// double.
template <class T>
ShardedState<T> all_reduce_gradients(ShardedState<T> gradients,
                                     std::string_view reduce_type = "mean",
                                     std::string_view axis = "data");

}  // namespace tessera
