// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/redistribution.hpp>
#include <tessera/mesh/parts.hpp>

namespace tessera {
namespace {

/// All elements in the order of memory.
template <class T>
Vector<T> flat(const Matrix<T>& matrix) {
  return alias_vector(matrix.data(), static_cast<Size>(matrix.extent(0) * matrix.extent(1)));
}

template <class T>
Parts parts_of(const Matrix<T>& whole, int dim, const Communicator& ranks) {
  return Parts({static_cast<Size>(whole.extent(0)), static_cast<Size>(whole.extent(1))}, dim,
               ranks.size());
}

}  // namespace

template <class T>
void Redistribution<T>::all_gather(const Matrix<T>& part, int dim, const Matrix<T>& packed,
                                   const Matrix<T>& whole) const {
  const Parts parts = parts_of(whole, dim, ranks_);
  const Vector<T> arrived = flat(dim == 0 ? whole : packed);
  ranks_.all_gather(flat(part), arrived, parts.part_counts());
  if (dim != 0) unpack(arrived, parts, flat(whole));
}

template <class T>
void Redistribution<T>::reduce_scatter(const Matrix<T>& whole, int dim, const Matrix<T>& packed,
                                       const Matrix<T>& part) const {
  const Parts parts = parts_of(whole, dim, ranks_);
  const Vector<T> leaving = flat(dim == 0 ? whole : packed);
  if (dim != 0) pack(flat(whole), parts, leaving);
  ranks_.reduce_scatter(leaving, flat(part), parts.part_counts());
}

template <class T>
void Redistribution<T>::all_reduce(const Matrix<T>& whole) const {
  ranks_.all_reduce(flat(whole));
}

template <class T>
void Redistribution<T>::slice(const Matrix<const T>& whole, int dim, const Matrix<T>& part) const {
  // Only read, but Views of one type go both ways in packing.
  const Matrix<T> read(const_cast<T*>(whole.data()), whole.extent(0), whole.extent(1));
  copy_part(flat(read), parts_of(read, dim, ranks_), ranks_.rank(), flat(part));
}

template class Redistribution<float>;
template class Redistribution<double>;

}  // namespace tessera
