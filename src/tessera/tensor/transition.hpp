// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/placement.hpp>
#include <tessera/base/split.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// The operation that turns one placement into another along one mesh axis.
enum class Transition : std::uint8_t {
  keep,            ///< nothing to do
  all_reduce,      ///< Partial -> Replicate
  reduce_scatter,  ///< Partial -> Shard
  all_gather,      ///< Shard -> Replicate
  all_to_all,      ///< Shard(i) -> Shard(j)
  slice,           ///< Replicate -> Shard: keeps the rank's part; local
};
template <>
inline constexpr std::array<std::string_view, 6> names_of<Transition>{
    "keep", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "slice"};

/// `to` may be Partial only if `from` is.
constexpr Transition transition(Placement from, Placement to) {
  if (from == to) return Transition::keep;
  if (from.is_partial()) return to.is_shard() ? Transition::reduce_scatter : Transition::all_reduce;
  if (from.is_replicate()) return Transition::slice;
  return to.is_replicate() ? Transition::all_gather : Transition::all_to_all;
}

/// Returns the communicator's operation; none for local transitions.
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
    case Transition::keep:
    case Transition::slice:
      return std::nullopt;
  }
  return std::nullopt;
}

constexpr bool is_collective(Transition t) { return operation_of(t).has_value(); }

/// Returns the split of a block's extent along the dimension of a Shard into `parts` parts.
Split split_of(const Shape& block, Placement shard, Size parts);
/// Returns the extents of part number `part` of them.
Shape part_of(Shape block, Placement shard, Size parts, Size part);

/// Returns true if the parts of a row-major block along dimension `dim` are contiguous: no earlier
/// dimension has several elements.
bool has_contiguous_parts(const Shape& block, int dim);

/// Returns the elements of scratch memory in which redistribute_along() packs messages on rank
/// `rank` of `ranks`: outgoing ones, then incoming ones; 0 if they are contiguous in the tensor.
/// `group` is the block that the ranks hold together.
Size packed_elements(Placement before, Placement after, const Shape& group, Size ranks, Size rank);

}  // namespace tessera
