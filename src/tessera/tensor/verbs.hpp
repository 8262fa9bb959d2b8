// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tensor/partition_spec.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

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

/// A mesh and the spec of arrays on it.
struct NamedSharding {
  Mesh mesh;
  PartitionSpec spec;
};

/// Returns a mesh over all ranks of `world`, as {{"data", 2}, {"model", 4}}. One size may be -1:
/// the remaining ranks. Collective. Throws ConfigError for the key "mesh".
Mesh create_device_mesh(const Communicator& world, std::vector<Axis> axes);
/// Returns a mesh with all ranks along one axis. Collective.
Mesh create_data_parallel_mesh(const Communicator& world, std::string_view data_axis = "data");
/// Returns the sharding of dimension 0 over the data axis. Throws ConfigError if the mesh lacks it.
NamedSharding create_data_parallel_sharding(const Mesh& mesh, std::string_view data_axis = "data");

/// Returns the rank's piece of the array: an alias if the piece is contiguous in it. No
/// communication.
template <class T>
ShardedTensor<T> shard_array(const Array<T>& array, const NamedSharding& sharding);

/// Returns the whole arrays on every rank, as aliases.
template <class T>
ShardedState<T> replicate(const ArrayState<T>& arrays, const Mesh& mesh);

/// Returns the rank's rows of a batch, split over the axes `data` and `fsdp` of the mesh, or as the
/// sharding says. Any number of rows works; a rank may get none.
template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const Mesh& mesh);
template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const NamedSharding& sharding);

/// Returns parameters over a mesh. `param_sharding`: "replicate" keeps them whole. "shard" splits
/// the largest dimension (the first, if several are) over `fsdp`, or over `data` if the mesh has no
/// axis fsdp. A map gives the spec of each path; the other paths stay whole. Throws ConfigError for
/// another word, for a mesh with neither axis, and for an unknown path, with the nearest known one.
template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  std::string_view param_sharding = "replicate");
template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  const std::map<std::string, PartitionSpec>& param_sharding);

/// Returns the sums of gradients that are Partial along `axis`, with one all-reduce per tensor, in
/// place if nothing else refers to its memory. "mean" divides by the size of the axis, which is
/// right if every rank's gradient is a mean over equally many samples. Throws ConfigError for
/// another `reduce_type` or an unknown axis, and Error (usage) for a gradient that is not Partial
/// along the axis. Collective over the mesh. Defined for float and double.
template <class T>
ShardedState<T> all_reduce_gradients(ShardedState<T> gradients,
                                     std::string_view reduce_type = "mean",
                                     std::string_view axis = "data");

}  // namespace tessera
