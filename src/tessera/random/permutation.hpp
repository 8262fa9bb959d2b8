// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/types.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// Returns the position of element i in a random order of [0, n), which the key selects. Needs no
/// memory: a Feistel network permutes the next even number of bits (Luby and Rackoff 1988) and is
/// applied until the result is below n (Black and Rogaway 2002).
KOKKOS_INLINE_FUNCTION Size permuted(Key key, Size n, Size i) {
  int half = 1;
  while ((Size{1} << (2 * half)) < n) ++half;
  const std::uint32_t mask = (std::uint32_t{1} << half) - 1;
  std::uint64_t at = static_cast<std::uint64_t>(i);
  do {
    std::uint32_t left = static_cast<std::uint32_t>(at >> half);
    std::uint32_t right = static_cast<std::uint32_t>(at) & mask;
    for (std::uint64_t round = 0; round < 6; ++round) {
      const std::uint32_t mixed = left ^ (random_bits(key, round << 32 | right) & mask);
      left = right;
      right = mixed;
    }
    at = static_cast<std::uint64_t>(left) << half | right;
  } while (at >= static_cast<std::uint64_t>(n));
  return static_cast<Size>(at);
}

}  // namespace tessera
