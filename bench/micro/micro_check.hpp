// SPDX-License-Identifier: Apache-2.0
// Numbers that go into a collective, and how its result is held against what it must be.
#pragma once

#include <span>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera::bench {

/// Element i of rank r before a collective: small and whole, so that sums of them are exact in any
/// order. The square keeps a rank counted twice from making up for another left out: sums of ranks
/// alone would have 0 + 2 = 1 + 1.
constexpr float pattern(Size rank, Size i) {
  return static_cast<float>((i * 7 + rank * rank * 5 + rank * 13) % 61 - 30);
}

/// The sum of pattern(r, i) over the first n ranks.
constexpr float pattern_sum(Size n, Size i) {
  float sum = 0;
  for (Size rank = 0; rank < n; ++rank) sum += pattern(rank, i);
  return sum;
}

/// Elements that are not equal to expected(i); NaN never is.
template <class F>
Size count_wrong(std::span<const float> values, const F& expected) {
  Size wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] == expected(static_cast<Size>(i)))) ++wrong;
  return wrong;
}

/// The same for a View of any memory space.
template <class V, class F>
Size count_wrong_in(const V& view, const F& expected) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return count_wrong({host.data(), host.size()}, expected);
}

/// view(i) = value(i), computed on the host.
template <class V, class F>
void fill_with(const V& view, const F& value) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i) host(i) = value(static_cast<Size>(i));
  Kokkos::deep_copy(view, host);
}

}  // namespace tessera::bench
