// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/text.hpp>
#include <tessera/tensor/redistribute.hpp>
#include <tessera/tensor/rules.hpp>
#include <tessera/tensor/verbs.hpp>

namespace tessera {
namespace {

/// Shards each array by the spec of its path and shape.
template <class T, class SpecOf>
ShardedState<T> shard_each(const ArrayState<T>& arrays, const Mesh& mesh, SpecOf spec_of) {
  ShardedState<T> state;
  for (const auto& [path, array] : arrays) {
    state.emplace(path, shard_array<T>(array, {mesh, spec_of(path, array.shape)}));
  }
  return state;
}

std::string parameter_axis(const MeshShape& mesh) {
  for (const char* name : {"fsdp", "data"}) {
    if (mesh.find(name)) return name;
  }
  throw ConfigError("param_sharding", "shard",
                    "needs a mesh with an axis fsdp or data; the mesh is {}", mesh.to_string());
}

PartitionSpec largest_dimension_over(const std::string& axis, const Shape& shape) {
  PartitionSpec spec;
  if (shape.empty()) return spec;
  spec.dims.resize(shape.size());
  spec.dims[static_cast<std::size_t>(std::max_element(shape.begin(), shape.end()) -
                                     shape.begin())] = {axis};
  return spec;
}

template <class T>
struct Divide {
  Vector<T> values;
  T divisor;
  KOKKOS_FUNCTION void operator()(Size i) const { values(i) /= divisor; }
};

template <class T>
void divide(const Vector<T>& values, Size divisor) {
  for_each("tessera::mean", values.extent(0), Divide<T>{values, static_cast<T>(divisor)});
}

}  // namespace

Mesh create_device_mesh(const Communicator& world, std::vector<Axis> axes) {
  return Mesh(world, MeshShape::fit(std::move(axes), world.size()));
}

Mesh create_data_parallel_mesh(const Communicator& world, std::string_view data_axis) {
  return create_device_mesh(world, {{std::string(data_axis), -1}});
}

NamedSharding create_data_parallel_sharding(const Mesh& mesh, std::string_view data_axis) {
  mesh.shape().require(data_axis, "data_axis");
  return {mesh, {{std::string(data_axis)}}};
}

template <class T>
ShardedTensor<T> shard_array(const Array<T>& array, const NamedSharding& sharding) {
  const auto& [mesh, spec] = sharding;
  return from_global(mesh, array.shape, to_placements(spec, mesh.shape(), array.shape.size()),
                     array.values);
}

template <class T>
ShardedState<T> replicate(const ArrayState<T>& arrays, const Mesh& mesh) {
  return shard_each(arrays, mesh, [](const auto&, const auto&) { return PartitionSpec(); });
}

template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const Mesh& mesh) {
  return shard_batch(batch,
                     {mesh, partition_spec_for_names({"batch"}, default_rules(), mesh.shape())});
}

template <class T>
ShardedState<T> shard_batch(const ArrayState<T>& batch, const NamedSharding& sharding) {
  return shard_each(batch, sharding.mesh, [&](const auto&, const auto&) { return sharding.spec; });
}

template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  std::string_view param_sharding) {
  if (param_sharding == "replicate") return replicate(state, mesh);
  if (param_sharding != "shard") {
    throw ConfigError("param_sharding", param_sharding,
                      "must be replicate, shard or a map from paths to specs");
  }
  const std::string axis = parameter_axis(mesh.shape());
  return shard_each(state, mesh, [&](const auto&, const Shape& shape) {
    return largest_dimension_over(axis, shape);
  });
}

template <class T>
ShardedState<T> shard_model_state(const ArrayState<T>& state, const Mesh& mesh,
                                  const std::map<std::string, PartitionSpec>& param_sharding) {
  std::vector<std::string> paths;
  for (const auto& [path, array] : state) paths.push_back(path);
  for (const auto& [path, spec] : param_sharding) {
    if (state.count(path) > 0) continue;
    const auto nearest = suggest_nearest(path, paths);
    throw ConfigError("param_sharding", path, "must be the path of a parameter{}",
                      nearest ? fmt::format(" (nearest: {})", *nearest) : "");
  }
  return shard_each(state, mesh, [&](const std::string& path, const auto&) {
    const auto found = param_sharding.find(path);
    return found == param_sharding.end() ? PartitionSpec() : found->second;
  });
}

template <class T>
ShardedState<T> all_reduce_gradients(ShardedState<T> gradients, std::string_view reduce_type,
                                     std::string_view axis) {
  if (reduce_type != "mean" && reduce_type != "sum") {
    throw ConfigError("reduce_type", reduce_type, "must be one of mean, sum");
  }
  ShardedState<T> reduced;
  for (auto& [path, gradient] : gradients) {
    const MeshShape& mesh = gradient.mesh().shape();
    const std::size_t a = mesh.require(axis);
    Placements to = gradient.placements();
    if (!to[a].is_partial()) {
      throw Error(ExitCode::usage,
                  "gradient {}: must be Partial along '{}', but its placements are {}", path, axis,
                  to_string(to, mesh));
    }
    to[a] = Placement::replicate();
    const auto sum = reduced.emplace(path, redistribute(std::move(gradient), to)).first;
    const Size ranks = mesh.axes()[a].size;
    if (reduce_type == "mean" && ranks > 1) divide(sum->second.local(), ranks);
  }
  return reduced;
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template ShardedTensor<T> shard_array(const Array<T>&, const NamedSharding&);                    \
  template ShardedState<T> replicate(const ArrayState<T>&, const Mesh&);                           \
  template ShardedState<T> shard_batch(const ArrayState<T>&, const Mesh&);                         \
  template ShardedState<T> shard_batch(const ArrayState<T>&, const NamedSharding&);                \
  template ShardedState<T> shard_model_state(const ArrayState<T>&, const Mesh&, std::string_view); \
  template ShardedState<T> shard_model_state(const ArrayState<T>&, const Mesh&,                    \
                                             const std::map<std::string, PartitionSpec>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
TESSERA_INSTANTIATE(std::int32_t)
TESSERA_INSTANTIATE(std::int64_t)
#undef TESSERA_INSTANTIATE

template ShardedState<float> all_reduce_gradients(ShardedState<float>, std::string_view,
                                                  std::string_view);
template ShardedState<double> all_reduce_gradients(ShardedState<double>, std::string_view,
                                                   std::string_view);

}  // namespace tessera
