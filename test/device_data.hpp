// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/random/fill.hpp>

/// Values into device memory and out of it.
namespace tessera::test {

template <class T>
Vector<T> to_device(const std::vector<T>& values) {
  Vector<T> v("test", values.size());
  Kokkos::deep_copy(v, Kokkos::View<const T*, Kokkos::HostSpace>(values.data(), values.size()));
  return v;
}

template <class T>
Matrix<T> to_device(const std::vector<T>& values, Size rows, Size cols) {
  Matrix<T> m("test", rows, cols);
  Kokkos::deep_copy(Vector<T>(m.data(), rows * cols),
                    Kokkos::View<const T*, Kokkos::HostSpace>(values.data(), values.size()));
  return m;
}

template <class T>
std::vector<std::remove_const_t<T>> to_host(const Vector<T>& v) {
  std::vector<std::remove_const_t<T>> values(v.extent(0));
  Kokkos::deep_copy(
      Kokkos::View<std::remove_const_t<T>*, Kokkos::HostSpace>(values.data(), values.size()), v);
  return values;
}

template <class T>
std::vector<std::remove_const_t<T>> to_host(const Matrix<T>& m) {
  return to_host(Vector<T>(m.data(), m.extent(0) * m.extent(1)));
}

template <class T>
Matrix<T> normal_matrix(Size rows, Size cols, std::uint64_t seed) {
  const Matrix<T> m("normal", rows, cols);
  fill_normal(m, key(seed));
  return m;
}

}  // namespace tessera::test
