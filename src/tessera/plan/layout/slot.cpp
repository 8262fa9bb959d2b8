// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/plan/layout/slot.hpp>

namespace tessera {

namespace {

Piece local_piece(const Slot& slot, Size samples, const MeshShape& mesh, Size rank,
                  std::optional<std::size_t> whole_along = {}) {
  Piece piece{Shape(slot.shape.size(), 0), slot.shape};
  piece.extent[0] = samples;
  const AxisSet whole = whole_along ? AxisSet{*whole_along} : AxisSet();
  for (const Cut& cut : slot.cuts)
    if ((cut.axes & (slot.sample_axes | whole)).empty()) apply(cut, piece, mesh, rank);
  return piece;
}

}  // namespace

Shape local_shape(const Slot& slot, Size samples, const MeshShape& mesh, Size rank,
                  std::optional<std::size_t> whole_along) {
  return local_piece(slot, samples, mesh, rank, whole_along).extent;
}

Size offset_in_whole(const Slot& slot, Size samples, const MeshShape& mesh, Size rank) {
  if (slot.piece_of == no_slot) return 0;
  const Piece piece = local_piece(slot, samples, mesh, rank);
  return piece.offset.front() * piece.extent.back();
}

MovedBlock moved_block(const Slot& from, const Slot& to, std::size_t axis, Size samples,
                       Size filled, const MeshShape& mesh, Size rank) {
  const Shape all = local_shape(from, samples, mesh, rank, axis);
  const std::size_t columns = all.size() - 1;
  Shape shape{all[0], columns == 2 ? all[1] : 1, all[columns], 1};
  for (const Slot* slot : {&from, &to})
    for (const Cut& cut : slot->cuts) {
      if (!cut.axes.contains(axis)) continue;
      if (cut.dimension == columns)
        shape[2] /= cut.unit, shape[3] = cut.unit;
      else if (cut.joined > 1)
        shape[0] *= std::exchange(shape[1], 1);
      else if (cut.dimension == 1)
        std::swap(shape[0], shape[1]);
    }
  const auto in_block = [&](const Slot& slot) {
    const Placement placement = slot.placements[axis];
    if (!placement.is_shard()) return placement;
    const auto cut = std::find_if(slot.cuts.begin(), slot.cuts.end(),
                                  [&](const Cut& of) { return of.axes.contains(axis); });
    return Placement::shard(placement.is_shard(static_cast<int>(columns)) ? 2 : 0)
        .in_blocks(placement.blocks(), slot.sample_axes.contains(axis) ? filled : 0,
                   held_rows(*cut, mesh, rank));
  };
  return {in_block(from), in_block(to), std::move(shape)};
}

}  // namespace tessera
