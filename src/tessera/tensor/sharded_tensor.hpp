// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/for_each.hpp>
#include <tessera/base/view.hpp>
#include <tessera/tensor/global_index.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/tensor/placement.hpp>

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

namespace detail {

template <class T, class F>
struct FillFromFunction {
  Vector<T> local;
  GlobalIndex global_index;
  F function;
  KOKKOS_FUNCTION void operator()(Size i) const { local(i) = function(global_index(i)); }
};

}  // namespace detail

/// Returns a tensor whose element i (flat, row-major, in the whole tensor) is function(i), a device
/// callable. Each rank computes its own piece. Along Partial axes the rank with coordinate 0 holds
/// the values and the others hold zeros. No communication.
template <class T, class F>
ShardedTensor<T> from_function(const Mesh& mesh, const Shape& global_shape,
                               const Placements& placements, const F& function) {
  ShardedTensor<T> tensor(mesh, global_shape, placements);
  for (std::size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].is_partial() && mesh.coordinates()[a] != 0) return tensor;
  }
  for_each("tessera::from_function", tensor.local().extent(0),
           detail::FillFromFunction<T, F>{tensor.local(), GlobalIndex(global_shape, tensor.piece()),
                                          function});
  return tensor;
}

}  // namespace tessera
