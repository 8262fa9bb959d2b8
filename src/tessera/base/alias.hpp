// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <tessera/base/huge_pages.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// Views of memory that the caller owns and keeps alive.
template <class T>
Vector<T> alias_vector(T* data, Size n) {
  return Vector<T>(data, static_cast<std::size_t>(n));
}
template <class T>
Matrix<T> alias_matrix(T* data, Size rows, Size cols) {
  return Matrix<T>(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
}

namespace detail {
/// Call it before the memory of the View is touched.
template <class V>
V in_huge_pages(const V& view) {
  if constexpr (std::is_same_v<MemSpace, Kokkos::HostSpace>)
    advise_huge_pages(view.data(), static_cast<Size>(view.span() * sizeof(typename V::value_type)));
  return view;
}
}  // namespace detail

/// Allocates memory without initializing it, in huge pages if it is large. Does not allocate an
/// empty View, for which Kokkos would allocate a header.
template <class T>
Vector<T> allocate_vector(const std::string& label, Size n) {
  if (n == 0) return {};
  return detail::in_huge_pages(Vector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing),
                                         static_cast<std::size_t>(n)));
}
template <class T>
Matrix<T> allocate_matrix(const std::string& label, Size rows, Size cols) {
  if (rows == 0 || cols == 0) return alias_matrix<T>(nullptr, rows, cols);
  return detail::in_huge_pages(Matrix<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing),
                                         static_cast<std::size_t>(rows),
                                         static_cast<std::size_t>(cols)));
}

/// Allocates a vector of zeros.
template <class T>
Vector<T> allocate_zeros(const std::string& label, Size n) {
  const Vector<T> zeros = allocate_vector<T>(label, n);
  Kokkos::deep_copy(zeros, T(0));
  return zeros;
}

/// Returns some rows of a contiguous matrix, as a contiguous matrix.
template <class T>
Matrix<T> rows_of(const Matrix<T>& matrix, Range rows) {
  const Size cols = static_cast<Size>(matrix.extent(1));
  return alias_matrix(matrix.data() + rows.begin * cols, rows.count, cols);
}

/// Returns some rows and columns of a matrix, with the stride of the matrix.
template <class T>
Matrix<T> block_of(const Matrix<T>& matrix, Range rows, Range cols) {
  return Kokkos::subview(matrix, Kokkos::make_pair(rows.begin, rows.begin + rows.count),
                         Kokkos::make_pair(cols.begin, cols.begin + cols.count));
}

/// Returns the matrix that lies so many elements behind `m`.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Matrix<T> moved(Matrix<T> m, Size elements) {
  m.assign_data(m.data() + elements);
  return m;
}

}  // namespace tessera
