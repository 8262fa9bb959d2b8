// SPDX-License-Identifier: Apache-2.0
// Input for a collective, and the check of its result.
#pragma once

#include <span>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera::bench {

/// Returns element i of a rank's input: a small integer, so that sums are exact in any order. The
/// square makes the sum wrong if one rank is counted twice and another is left out; a linear term
/// alone would not, because 0 + 2 = 1 + 1.
constexpr float pattern(Size rank, Size i) {
  return static_cast<float>((i * 7 + rank * rank * 5 + rank * 13) % 61 - 30);
}

/// Returns the sum of pattern(r, i) over the first n ranks.
constexpr float pattern_sum(Size n, Size i) {
  float sum = 0;
  for (Size rank = 0; rank < n; ++rank) sum += pattern(rank, i);
  return sum;
}

/// Returns the number of elements that differ from expected(i). NaN always differs.
template <class F>
Size count_wrong(std::span<const float> values, const F& expected) {
  Size wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] == expected(static_cast<Size>(i)))) ++wrong;
  return wrong;
}

/// Does the same for a View in any memory space.
template <class V, class F>
Size count_wrong_in(const V& view, const F& expected) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return count_wrong({host.data(), host.size()}, expected);
}

/// Sets view(i) = value(i), computed on the host.
template <class V, class F>
void fill_with(const V& view, const F& value) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i) host(i) = value(static_cast<Size>(i));
  Kokkos::deep_copy(view, host);
}

}  // namespace tessera::bench
