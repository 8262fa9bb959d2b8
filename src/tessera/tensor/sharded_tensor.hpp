// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/view.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// A tensor of rank 0 to 4 over a mesh: the rank's piece as flat row-major memory, the global
/// shape, and one placement per mesh axis. A handle like a View: copies share the memory. Defined
/// for float, double, int32 and int64.
template <class T>
class ShardedTensor {
 public:
  /// Uses the memory of `local`. Throws Error (usage) if its extent is not that of piece().
  ShardedTensor(Mesh mesh, Shape global_shape, Placements placements, Vector<T> local);
  /// Allocates the piece and fills it with zeros.
  ShardedTensor(Mesh mesh, Shape global_shape, Placements placements);

  const Mesh& mesh() const { return mesh_; }
  const Shape& global_shape() const { return global_shape_; }
  const Placements& placements() const { return placements_; }
  /// Offset and extent of the piece in the tensor.
  const Piece& piece() const { return piece_; }

  /// The piece, flat.
  const Vector<T>& local() const { return local_; }
  /// Returns the piece of a tensor of rank 2, or of rank 1 as one row, as an alias. Throws Error
  /// (usage) for other ranks.
  Matrix<T> local_matrix() const;

 private:
  Mesh mesh_;
  Shape global_shape_;
  Placements placements_;
  Piece piece_;
  Vector<T> local_;
};

}  // namespace tessera
