// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/comm/operation.hpp>
#include <tessera/mesh/placement.hpp>

namespace tessera {

/// What turns one placement into another along one mesh axis.
enum class Transition : std::uint8_t {
  keep,            ///< nothing to do
  all_reduce,      ///< Partial -> Replicate
  reduce_scatter,  ///< Partial -> Shard
  all_gather,      ///< Shard -> Replicate
  all_to_all,      ///< Shard(i) -> Shard(j)
  slice,           ///< Replicate -> Shard: cut out the own part, local
  mask,            ///< Replicate -> Partial: zeros except on coordinate 0, local
  embed,           ///< Shard -> Partial: the own part amid zeros, local
};
template <>
inline constexpr std::array<std::string_view, 8> names_of<Transition>{
    "keep", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "slice", "mask", "embed"};

constexpr Transition transition(Placement from, Placement to) {
  if (from == to) return Transition::keep;
  if (from.is_partial()) return to.is_shard() ? Transition::reduce_scatter : Transition::all_reduce;
  if (from.is_replicate()) return to.is_shard() ? Transition::slice : Transition::mask;
  if (to.is_replicate()) return Transition::all_gather;
  return to.is_shard() ? Transition::all_to_all : Transition::embed;
}

/// The call of the communicator; none for local transitions.
constexpr std::optional<Operation> operation_of(Transition t) {
  switch (t) {
    case Transition::all_reduce:
      return Operation::all_reduce;
    case Transition::reduce_scatter:
      return Operation::reduce_scatter;
    case Transition::all_gather:
      return Operation::all_gather;
    case Transition::all_to_all:
      return Operation::all_to_all;
    default:
      return std::nullopt;
  }
}

constexpr bool is_collective(Transition t) { return operation_of(t).has_value(); }

/// One transition along one axis of a mesh.
struct RedistributeStep {
  std::size_t axis = 0;
  Placement from, to;
  Transition transition = Transition::keep;
  /// Elements of the full logical buffer of the collective as `rank` sees it: the block of its
  /// group along the axis. 0 for local steps.
  Size payload_elements = 0;
  friend bool operator==(const RedistributeStep&, const RedistributeStep&) = default;
};

/// The steps that take a tensor from one set of placements to another, as `rank` sees them; every
/// rank gets the same steps, only payloads differ, where blocks are uneven.
///
/// An axis goes to its new placement directly or by way of Replicate. A step that touches dimension
/// d needs that no later axis shards d, because the later axis splits the parts of the earlier. Of
/// all orders that satisfy this the cheapest is taken: fewest elements sent by a ring (ALGORITHMS
/// §1), then fewest calls. So slices come before reductions, and reductions before gathers.
/// Axes of size 1 take no step.
std::vector<RedistributeStep> plan_redistribute(const Shape& global_shape, const Placements& from,
                                                const Placements& to, const MeshShape& mesh,
                                                Size rank);

/// What does not lie one behind the other as messages carry it is packed: elements of the memory
/// for it, of what is sent before what is received.
Size packed_elements(Placement before, Placement after, const Shape& group, Size ranks, Size rank);

}  // namespace tessera
