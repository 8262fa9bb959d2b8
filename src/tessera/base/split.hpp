// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// The indices [begin, begin + count).
struct Range {
  Size begin = 0;
  Size count = 0;
  KOKKOS_FUNCTION constexpr Size end() const { return begin + count; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// Returns part i of n items split into `parts` parts. The first n mod parts parts hold one more
/// item. Parts may be empty.
KOKKOS_FUNCTION constexpr Range balanced_split(Size n, Size parts, Size i) {
  const Size base = n / parts;
  const Size extra = n % parts;
  return {i * base + (i < extra ? i : extra), base + (i < extra ? 1 : 0)};
}

}  // namespace tessera
