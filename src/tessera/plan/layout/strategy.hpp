// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

struct StrategyOptions;

/// Placement of parameters, gradients and optimizer state along the axes that split the batch.
enum class Strategy : std::uint8_t {
  data,    ///< all replicated; gradients are all-reduced (DDP)
  zero1,   ///< moments sharded; gradients are reduce-scattered once per step
  zero2,   ///< moments and gradients sharded; reduce-scattered every microbatch
  fsdp,    ///< parameters sharded as well; each unit is gathered just before use (ZeRO-3)
  hybrid,  ///< fsdp over the axis `fsdp`, replicas over the axis `data`
  tensor,  ///< batch axes have size 1; only `model` splits the step
};

/// The part of a bucket that a rank keeps: all, its share, or what it updates of the share.
enum class Held : std::uint8_t { whole, share, owned };

/// The parts of the training state that a strategy shards.
struct Sharding {
  bool moments = false;
  bool gradients = false;
  bool parameters = false;
  constexpr Held held_moments() const { return moments ? Held::owned : Held::whole; }
  constexpr Held held_gradients() const { return gradients ? Held::share : Held::whole; }
  /// If layers read copies in the compute type, only the optimizer reads the parameters themselves,
  /// so they are sharded like the moments.
  constexpr Held held_parameters(bool has_copies) const {
    return has_copies ? held_moments() : parameters ? Held::share : Held::whole;
  }
  friend constexpr bool operator==(const Sharding&, const Sharding&) = default;
};

/// The properties of a strategy.
struct StrategyRow {
  std::string_view name;
  Sharding shards{};
  /// Axes of the mesh that usual_mesh() makes of a number of ranks.
  std::array<std::string_view, 2> usual_axes{"data"};
  /// Shards over `fsdp` and replicates over `data`. If false, shards over both.
  bool over_fsdp_only = false;
  bool splits_batch = true;  ///< false: `data` and `fsdp` must have size 1
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

/// Returns the axes that split the samples of a batch.
AxisSet batch_axes(const MeshShape& mesh);
/// Returns the axes over which gradients of parameters are summed, because the ranks along them use
/// the same parameters for different rows: the batch axes and `context`.
AxisSet replicating_axes(const MeshShape& mesh);
/// Returns the batch axes over which the strategy shards state: none, all of them, or `fsdp`.
AxisSet shard_axes(Strategy strategy, const MeshShape& mesh);
/// Returns those over which moments are sharded (StrategyOptions::shard_moments_over).
AxisSet moment_axes(const StrategyOptions& options, const MeshShape& mesh);
/// Returns the axes whose ranks together hold the state of each parameter once.
AxisSet state_axes(const StrategyOptions& options, const MeshShape& mesh);
/// Returns the axes whose ranks have terms of the loss.
AxisSet loss_axes(const MeshShape& mesh);
/// Returns the parts that are sharded on this mesh; none if one rank holds the whole replica.
Sharding sharding_on(Strategy strategy, const MeshShape& mesh);

/// Returns the mesh for a strategy and a number of ranks if no mesh is given: all ranks lie along
/// the usual axis of the strategy. With two usual axes (`hybrid`), the first has one rank per node,
/// and the second the ranks of a node. If the nodes are not known, or there is only one, the first
/// has the largest divisor of the number of ranks up to its square root.
MeshShape usual_mesh(const std::string& strategy, const Topology& topology);

/// Returns every mesh of `ranks` ranks with some of these axes, in the given order. Axes of size 1
/// are left out; a single rank lies on the first axis.
std::vector<MeshShape> factorisations(Size ranks, const std::vector<std::string>& axes);
/// Returns the number of these meshes without making them.
double most_factorisations(Size ranks, std::size_t axes);

}  // namespace tessera
