// SPDX-License-Identifier: Apache-2.0
#include <tessera/checkpoint/hyperslabs.hpp>

namespace tessera {
namespace {

/// Adds the hyperslabs of the elements from `begin` to `end` within the dimensions from `d` on.
/// `slab` holds the indices of the dimensions before `d`.
void add_hyperslabs(const Piece& block, std::size_t d, Size begin, Size end, Hyperslab& slab,
                    std::vector<Hyperslab>& slabs) {
  if (begin == end) return;
  Size row = 1;  // elements behind one index of this dimension
  for (std::size_t inner = d + 1; inner < block.extent.size(); ++inner) row *= block.extent[inner];
  const auto set = [&](Size first, Size count) {
    slab.first[d] = block.offset[d] + first;
    slab.count[d] = count;
  };
  const auto part_of_row = [&](Size from, Size to) {
    set(from / row, 1);
    add_hyperslabs(block, d + 1, from % row, from % row + (to - from), slab, slabs);
  };
  const Size first_whole = (begin + row - 1) / row, end_whole = end / row;
  if (first_whole > end_whole) return part_of_row(begin, end);
  part_of_row(begin, first_whole * row);
  if (end_whole > first_whole) {
    set(first_whole, end_whole - first_whole);
    slabs.push_back(slab);
    for (std::size_t inner = d + 1; inner < block.extent.size(); ++inner) {
      slabs.back().first[inner] = block.offset[inner];
      slabs.back().count[inner] = block.extent[inner];
    }
  }
  part_of_row(end_whole * row, end);
}

}  // namespace

std::vector<Hyperslab> hyperslabs_of(const Piece& block, Range elements) {
  std::vector<Hyperslab> slabs;
  Hyperslab slab{block.offset, block.extent};
  add_hyperslabs(block, 0, elements.begin, elements.end(), slab, slabs);
  return slabs;
}

}  // namespace tessera
