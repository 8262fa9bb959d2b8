// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <tessera/base/split.hpp>

namespace tessera {

/// Sums whose order does not depend on who adds: a binary tree over the places 0 to 2^n - 1. Node p
/// sums the places from p on that share p's bits above its lowest set bit; node 0 sums all. A node
/// is complete once its last place is, and then joins the node at p without its lowest set bit.

/// Returns the lowest set bit of a place p > 0: the number of places that node p sums.
constexpr Size places_of_node(Size p) { return p & -p; }
/// Returns the number n of a node of 2^n places, p > 0. Open nodes of a tree differ in it, so it
/// numbers the buffers that hold them.
constexpr Size level_of_node(Size p) { return std::countr_zero(static_cast<std::uint64_t>(p)); }
/// Returns the smallest n for which 2^n is at least this number of places.
constexpr Size tree_levels(Size places) {
  return std::bit_width(static_cast<std::uint64_t>(places > 1 ? places - 1 : 0));
}
constexpr bool is_power_of_two(Size n) {
  return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
}

/// Calls join(to, from) for the nodes that join others once the places `done` are complete, in the
/// order of the additions. Places come in ascending order, in runs that are nodes themselves.
template <class Join>
void join_complete_nodes(Range done, const Join& join) {
  for (Size node = done.begin; node > 0 && node + places_of_node(node) == done.end();) {
    const Size next = node - places_of_node(node);
    join(next, node);
    node = next;
  }
}

/// Splits n items into `grains` balanced grains, and these into `parts` runs of equally many
/// grains; `parts` divides `grains`. Returns the items of run `part`.
constexpr Range split_in_grains(Size n, Size grains, Size parts, Size part) {
  const Size each = grains / parts;
  const Size begin = balanced_split(n, grains, part * each).begin;
  return {begin, balanced_split(n, grains, (part + 1) * each - 1).end() - begin};
}

/// Returns the number of blocks, at most `most`, into which nested_split() splits n items.
constexpr Size nested_blocks(Size n, Size most) {
  return static_cast<Size>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<Size>(n, 1, most))));
}

}  // namespace tessera
