// SPDX-License-Identifier: Apache-2.0
// The part of a tensor that a rank holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <Kokkos_Macros.hpp>

#include <tessera/base/split.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {

/// A part of a tensor: for each dimension, the first global index and the number of indices.
struct Piece {
  Shape offset;
  Shape extent;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// "[0:2, 0:64]"
std::string to_string(const Piece& piece);

/// One cut of a tensor: mesh axes split a dimension.
struct Cut {
  std::size_t dimension = 0;
  AxisSet axes{};  ///< several axes cut as one, row-major: the last varies fastest
  /// Consecutive indices that stay together, such as the columns of one expert. The number
  /// divides the extent that is cut.
  Size unit = 1;
  /// Number of dimensions, from `dimension` on, that are flattened before the cut: rows are samples
  /// and positions.
  std::size_t joined = 1;
  /// The rank holds the part of the rank `shift` places before it: tensors that go round a ring.
  Size shift = 0;
  Size repeats = 1;  ///< consecutive ranks that hold the same part (Placement::repeats)
  Size blocks = 0;   ///< Split::blocks
  Split
      positions{};  ///< of a sample, over `context`: blocks are those of the rows of all its ranks
  friend bool operator==(const Cut&, const Cut&) = default;
};

/// The cuts of a tensor, outermost first: each splits what earlier ones have left of its dimension.
using Cuts = std::vector<Cut>;

/// Returns one cut for each axis whose placement is Shard, in the order of the mesh.
Cuts cuts_of(const Placements& placements);
/// Returns the axes that cut a tensor.
AxisSet axes_of(const Cuts& cuts);

/// Returns the rows that a cut of rows in blocks finds on a rank (Cut::positions).
HeldRows held_rows(const Cut& cut, const MeshShape& mesh, Size rank);

/// Replaces a piece by the part that `rank` gets of it. Joined dimensions become one: the first has
/// the product of their extents, and the others have 1.
void apply(const Cut& cut, Piece& piece, const MeshShape& mesh, Size rank);

/// Returns the piece of a tensor of this global shape that `rank` holds. Extents may be 0. Takes
/// time in the number of cuts, for a mesh of any size.
Piece piece(const Shape& shape, const Cuts& cuts, const MeshShape& mesh, Size rank);

inline constexpr std::size_t max_tensor_rank = 4;

/// Maps a flat index in a rank's piece to the flat index in the whole tensor. Row-major, for at
/// most max_tensor_rank dimensions.
struct GlobalIndex {
  Size extent[max_tensor_rank];
  Size offset[max_tensor_rank];
  Size stride[max_tensor_rank];

  GlobalIndex(const Shape& global_shape, const Piece& piece);

  KOKKOS_INLINE_FUNCTION Size operator()(Size i) const {
    Size global = 0;
    for (int d = static_cast<int>(max_tensor_rank) - 1; d >= 0; --d) {
      const Size rest = i / extent[d];
      global += (offset[d] + i - rest * extent[d]) * stride[d];
      i = rest;
    }
    return global;
  }
};

}  // namespace tessera
