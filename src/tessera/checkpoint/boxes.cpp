// SPDX-License-Identifier: Apache-2.0
#include <tessera/checkpoint/boxes.hpp>

namespace tessera {
namespace {

/// Boxes of the elements from `begin` to `end` of the dimensions from `d` on; `box` holds indices
/// of the dimensions before.
void add_boxes(const Block& block, std::size_t d, Size begin, Size end, Hyperslab& box,
               std::vector<Hyperslab>& boxes) {
  if (begin == end) return;
  Size row = 1;  // elements behind one index of this dimension
  for (std::size_t inner = d + 1; inner < block.extent.size(); ++inner) row *= block.extent[inner];
  const auto set = [&](Size first, Size count) {
    box.first[d] = block.offset[d] + first;
    box.count[d] = count;
  };
  const auto part_of_row = [&](Size from, Size to) {
    set(from / row, 1);
    add_boxes(block, d + 1, from % row, from % row + (to - from), box, boxes);
  };
  const Size first_whole = (begin + row - 1) / row, end_whole = end / row;
  if (first_whole > end_whole) return part_of_row(begin, end);
  part_of_row(begin, first_whole * row);
  if (end_whole > first_whole) {
    set(first_whole, end_whole - first_whole);
    boxes.push_back(box);
    for (std::size_t inner = d + 1; inner < block.extent.size(); ++inner) {
      boxes.back().first[inner] = block.offset[inner];
      boxes.back().count[inner] = block.extent[inner];
    }
  }
  part_of_row(end_whole * row, end);
}

}  // namespace

std::vector<Hyperslab> boxes_of(const Block& block, Range elements) {
  std::vector<Hyperslab> boxes;
  Hyperslab box{block.offset, block.extent};
  add_boxes(block, 0, elements.begin, elements.end(), box, boxes);
  return boxes;
}

}  // namespace tessera
