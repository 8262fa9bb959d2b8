// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>

namespace tessera::test {

template <class T>
std::vector<T> to_host(const Vector<T>& view) {
  const auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return std::vector<T>(mirror.data(), mirror.data() + mirror.extent(0));
}

template <class T>
Vector<T> to_device(const std::vector<T>& values) {
  const Vector<T> view("values", values.size());
  const auto mirror = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < values.size(); ++i) mirror(i) = values[i];
  Kokkos::deep_copy(view, mirror);
  return view;
}

}  // namespace tessera::test
