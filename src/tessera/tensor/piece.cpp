// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

std::string to_string(const Piece& piece) {
  std::vector<std::string> ranges;
  for (std::size_t d = 0; d < piece.offset.size(); ++d)
    ranges.push_back(fmt::format("{}:{}", piece.offset[d], piece.offset[d] + piece.extent[d]));
  return fmt::format("[{}]", join(ranges));
}

Cuts cuts_of(const Placements& placements) {
  Cuts cuts;
  for (std::size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].is_shard())
      cuts.push_back({static_cast<std::size_t>(placements[axis].dim()), {axis}});
  return cuts;
}

Piece piece(const Shape& shape, const Cuts& cuts, const MeshShape& mesh, Size rank) {
  Piece piece{Shape(shape.size(), 0), shape};
  for (const Cut& cut : cuts) {
    const Range part = split_units(piece.extent.at(cut.dimension), cut.unit,
                                   mesh.group_size(cut.axes), mesh.coordinate(rank, cut.axes));
    piece.offset[cut.dimension] += part.begin;
    piece.extent[cut.dimension] = part.count;
  }
  return piece;
}

}  // namespace tessera
