// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <tessera/base/split.hpp>

namespace tessera {

/// Sums whose order does not depend on who adds: a binary tree over the places 0 to 2^n - 1, which
/// adds neighbours first. A node is a run of 2^k places that begins at a multiple of 2^k. The sum
/// over any run of places is kept as its largest nodes, one row for each, in the order of places.
/// The rows are a stack: a new node lies on top, and joins those below that it completes.

constexpr bool is_power_of_two(Size n) {
  return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
}
/// Returns the smallest n for which 2^n is at least this number of places. The stack of all places
/// has at most n + 1 rows.
constexpr Size tree_levels(Size places) {
  return std::bit_width(static_cast<std::uint64_t>(places > 1 ? places - 1 : 0));
}

/// Returns the number of the largest nodes of a run of places. The node that begins at place m of a
/// run from a on is pushed to row nodes_in({a, m - a}).
constexpr Size nodes_in(Range places) {
  Size nodes = 0;
  // Goes up the levels: an odd end has a node that no larger one of the run contains.
  for (Size a = places.begin, b = places.end(); a < b; a = (a + 1) / 2, b /= 2)
    nodes += a % 2 + b % 2;
  return nodes;
}

/// Calls join(lower, upper) for the rows that are added, lower += upper, once `node` has been
/// pushed to the stack of the run of places from `begin` on.
template <class Join>
void join_rows(Size begin, Range node, const Join& join) {
  const Size left = nodes_in({begin, node.end() - begin});
  for (Size top = nodes_in({begin, node.begin - begin}); top >= left; --top) join(top - 1, top);
}

/// Pushes a node to a stack whose nodes need not be neighbours. Returns how many nodes it joins.
inline Size push_node(std::vector<Range>& stack, Range node) {
  Size joins = 0;
  while (!stack.empty() && stack.back().end() == node.begin && stack.back().count == node.count &&
         stack.back().begin % (2 * node.count) == 0) {
    node = {stack.back().begin, 2 * node.count};
    stack.pop_back();
    ++joins;
  }
  stack.push_back(node);
  return joins;
}

/// Returns the largest nodes of a run of places.
inline std::vector<Range> largest_nodes(Range places) {
  std::vector<Range> nodes;
  for (Size place = places.begin; place < places.end(); ++place) push_node(nodes, {place, 1});
  return nodes;
}

/// Returns the items of a run of blocks, if n items are split into `blocks` balanced blocks.
constexpr Range items_of(Size n, Size blocks, Range run) {
  const Size begin = balanced_split(n, blocks, run.begin).begin;
  return {begin, balanced_split(n, blocks, run.end()).begin - begin};
}

/// Returns the number of blocks, at most `most`, into which nested_split() splits n items.
constexpr Size nested_blocks(Size n, Size most) {
  return static_cast<Size>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<Size>(n, 1, most))));
}

}  // namespace tessera
