// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace {

const Shape& checked(const Shape& shape) {
  if (shape.size() > max_tensor_rank) {
    throw Error(ExitCode::usage, "shape {}: a tensor has at most {} dimensions", to_string(shape),
                max_tensor_rank);
  }
  for (const Size extent : shape) {
    if (extent < 0) {
      throw Error(ExitCode::usage, "shape {}: extents must not be negative", to_string(shape));
    }
  }
  return shape;
}

Piece piece_of(const Mesh& mesh, const Shape& shape, const Placements& placements) {
  check_placements(placements, mesh.shape(), checked(shape).size());
  return piece(shape, cuts_of(placements), mesh.shape(), mesh.rank());
}

}  // namespace

template <class T>
ShardedTensor<T>::ShardedTensor(Mesh mesh, Shape global_shape, Placements placements,
                                Vector<T> local)
    : mesh_(std::move(mesh)),
      global_shape_(std::move(global_shape)),
      placements_(std::move(placements)),
      piece_(piece_of(mesh_, global_shape_, placements_)),
      local_(std::move(local)) {
  if (static_cast<Size>(local_.extent(0)) != num_elements(piece_.extent)) {
    throw Error(ExitCode::usage, "the piece {} of a tensor {} has {} elements, but the View has {}",
                to_string(piece_.extent), to_string(global_shape_), num_elements(piece_.extent),
                local_.extent(0));
  }
}

template <class T>
ShardedTensor<T>::ShardedTensor(Mesh mesh, Shape global_shape, Placements placements)
    : mesh_(std::move(mesh)),
      global_shape_(std::move(global_shape)),
      placements_(std::move(placements)),
      piece_(piece_of(mesh_, global_shape_, placements_)),
      local_("tessera::sharded_tensor", static_cast<std::size_t>(num_elements(piece_.extent))) {}

template <class T>
Matrix<T> ShardedTensor<T>::local_matrix() const {
  const Shape& extent = piece_.extent;
  if (extent.size() != 1 && extent.size() != 2) {
    throw Error(ExitCode::usage, "a tensor {} is not a matrix", to_string(global_shape_));
  }
  return Matrix<T>(local_.data(), static_cast<std::size_t>(extent.size() == 2 ? extent[0] : 1),
                   static_cast<std::size_t>(extent.back()));
}

template class ShardedTensor<float>;
template class ShardedTensor<double>;
template class ShardedTensor<std::int32_t>;
template class ShardedTensor<std::int64_t>;

}  // namespace tessera
