// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// How parameters, gradients and optimizer state lie on the axes that split the batch.
enum class Strategy : std::uint8_t {
  data,    ///< all replicated; gradients are all-reduced (DDP)
  zero1,   ///< moments sharded; gradients are reduce-scattered once per step
  zero2,   ///< moments and gradients sharded; reduce-scattered every microbatch
  fsdp,    ///< parameters, too, gathered unit by unit just before use (ZeRO-3)
  hybrid,  ///< fsdp over the axis `fsdp`, replicas over the axis `data`
  tensor,  ///< all batch axes have size 1: only the axis `model` does anything
};

/// What a strategy splits over the ranks that share one replica of the training state.
struct Sharding {
  bool moments = false;
  bool gradients = false;
  bool parameters = false;
  friend constexpr bool operator==(const Sharding&, const Sharding&) = default;
};

/// Everything that tells one strategy from another.
struct StrategyRow {
  std::string_view name;
  Sharding shards{};
  /// Axes of the mesh that studies take for a number of ranks, the first ones as near to the square
  /// root as the second ones allow.
  std::array<std::string_view, 2> usual_axes{"data"};
  bool over_fsdp_only = false;  ///< shards over `fsdp` and replicates over `data`; else over both
  bool splits_batch = true;     ///< false: `data` and `fsdp` must have size 1
};

/// In the order of the enumerators.
inline constexpr std::array<StrategyRow, 6> strategies{{
    {"data", {}},
    {"zero1", {.moments = true}},
    {"zero2", {.moments = true, .gradients = true}},
    {"fsdp", {.moments = true, .gradients = true, .parameters = true}, {"fsdp"}},
    {.name = "hybrid",
     .shards = {.moments = true, .gradients = true, .parameters = true},
     .usual_axes = {"data", "fsdp"},
     .over_fsdp_only = true},
    {.name = "tensor", .usual_axes = {"model"}, .splits_batch = false},
}};

template <>
inline constexpr auto names_of<Strategy> = [] {
  std::array<std::string_view, strategies.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = strategies[i].name;
  return names;
}();

constexpr const StrategyRow& row_of(Strategy strategy) {
  return strategies[static_cast<std::size_t>(strategy)];
}

/// The axes of `mesh` over which the batch is split, in mesh order.
std::vector<std::string> batch_axes(const MeshShape& mesh);
/// Those of them over which the strategy shards state: none, all of them, or `fsdp`.
std::vector<std::string> shard_axes(Strategy strategy, const MeshShape& mesh);
/// The others, along which state is replicated.
std::vector<std::string> replica_axes(Strategy strategy, const MeshShape& mesh);
/// What is really sharded: nothing where the shard axes have one rank together.
Sharding sharding_on(Strategy strategy, const MeshShape& mesh);

/// The mesh of a case that names ranks only: all of them along the axis that the strategy is for.
/// `hybrid` shards over the ranks of a node; on one node, or if the nodes are not known, over as
/// many ranks as it has replicas, or twice as many.
MeshShape usual_mesh(const std::string& strategy, const Topology& topology);

/// Every way to arrange `ranks` ranks along the axes, in their order; axes of size 1 are left out,
/// and the first one stands for a single rank.
std::vector<MeshShape> factorisations(Size ranks, const std::vector<std::string>& axes);
/// How many there are of them at most, without making them.
double most_factorisations(Size ranks, std::size_t axes);

}  // namespace tessera
