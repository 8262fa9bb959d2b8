// SPDX-License-Identifier: Apache-2.0
#include <utility>

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

AxisSet axes_of(const Cuts& cuts) {
  AxisSet axes;
  for (const Cut& cut : cuts) axes = axes | cut.axes;
  return axes;
}

HeldRows held_rows(const Cut& cut, const MeshShape& mesh, Size rank) {
  if (cut.positions.units == 0) return {};
  return SplitPart{cut.positions, mesh.coordinate(rank, "context")}.rows();
}

void apply(const Cut& cut, Piece& piece, const MeshShape& mesh, Size rank) {
  Size& offset = piece.offset.at(cut.dimension);
  Size& extent = piece.extent.at(cut.dimension);
  for (std::size_t d = cut.dimension + 1; d < cut.dimension + cut.joined; ++d) {
    offset *= piece.extent[d];
    extent *= std::exchange(piece.extent[d], 1);
  }
  const Size parts = mesh.group_size(cut.axes) / cut.repeats,
             number = (mesh.coordinate(rank, cut.axes) / cut.repeats + parts - cut.shift) % parts;
  const Range part =
      Split{extent / cut.unit, parts, cut.unit, false, cut.blocks, 0, held_rows(cut, mesh, rank)}
          .place(number);
  offset += part.begin;
  extent = part.count;
}

Piece piece(const Shape& shape, const Cuts& cuts, const MeshShape& mesh, Size rank) {
  Piece piece{Shape(shape.size(), 0), shape};
  for (const Cut& cut : cuts) apply(cut, piece, mesh, rank);
  return piece;
}

GlobalIndex::GlobalIndex(const Shape& global_shape, const Piece& piece) {
  const std::size_t pad = max_tensor_rank - global_shape.size();
  Size running = 1;
  for (std::size_t d = max_tensor_rank; d-- > 0;) {
    extent[d] = d < pad ? 1 : piece.extent[d - pad];
    offset[d] = d < pad ? 0 : piece.offset[d - pad];
    stride[d] = running;
    running *= d < pad ? 1 : global_shape[d - pad];
  }
}

}  // namespace tessera
