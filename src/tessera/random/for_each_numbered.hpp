// SPDX-License-Identifier: Apache-2.0
// Kernels that draw a random number for each element, by its number in the whole tensor.
#pragma once

#include <algorithm>
#include <string>

#include <tessera/base/for_each.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {
namespace detail {

template <class F>
struct OfElement {
  F f;
  BlockRun place;
  KOKKOS_INLINE_FUNCTION void operator()(Size i) const { f(i, place(i)); }
};

/// Elements whose numbers follow each other: processors have no vectors of divisions, which would
/// take most of the time.
template <class F>
struct OfElements {
  static constexpr Size longest = 4096;

  F f;
  BlockRun place;
  Size n;
  bool has_gaps = place.block_cols != place.cols;  // without them, the run is one row
  Size cols = has_gaps ? place.block_cols : n, first = has_gaps ? place.first : 0;
  Size first_row = first / cols, pieces = (cols + longest - 1) / longest;

  Size count() const { return ((first + n - 1) / cols - first_row + 1) * pieces; }
  void operator()(Size part) const {
    const Size row = (first_row + part / pieces) * cols, col = part % pieces * longest,
               begin = std::max(first, row + col) - first,
               end = std::min({first + n, row + cols, row + col + longest}) - first;
    if (begin >= end) return;
    const Size number = place(begin);
    for_each_independent(end - begin, [&](Size j) { f(begin + j, number + j); });
  }
};

}  // namespace detail

/// Calls f(i, number) for i in [0, n) with the number in the whole tensor of element i of a run.
template <class F>
void for_each_numbered(const std::string& label, Size n, const BlockRun& place, const F& f) {
  if (n == 0) return;
  if constexpr (on_host) {
    const detail::OfElements<F> parts{f, place, n};
    for_each(label, parts.count(), parts, n);
  } else {
    for_each(label, n, detail::OfElement<F>{f, place});
  }
}

}  // namespace tessera
