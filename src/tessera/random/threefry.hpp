// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <Kokkos_Core.hpp>

namespace tessera {

/// A key of the counter-based generator threefry2x32 (Salmon et al. 2011). A random number is a
/// function of key and index, so a rank can draw any part of a tensor.
struct Key {
  std::uint32_t k0 = 0;
  std::uint32_t k1 = 0;
  friend constexpr bool operator==(const Key&, const Key&) = default;
};

namespace detail {

struct RandomPair {
  std::uint32_t first, second;
};

KOKKOS_INLINE_FUNCTION constexpr std::uint32_t rotate_left(std::uint32_t x, int r) {
  return (x << r) | (x >> (32 - r));
}

KOKKOS_INLINE_FUNCTION constexpr void threefry_rounds(RandomPair& x, int r0, int r1, int r2,
                                                      int r3) {
  x.first += x.second, x.second = rotate_left(x.second, r0) ^ x.first;
  x.first += x.second, x.second = rotate_left(x.second, r1) ^ x.first;
  x.first += x.second, x.second = rotate_left(x.second, r2) ^ x.first;
  x.first += x.second, x.second = rotate_left(x.second, r3) ^ x.first;
}

/// Twenty rounds in five groups of four. Each group ends with an addition of the key schedule.
KOKKOS_INLINE_FUNCTION constexpr RandomPair threefry2x32(Key key, std::uint32_t c0,
                                                         std::uint32_t c1) {
  const std::uint32_t ks0 = key.k0, ks1 = key.k1, ks2 = ks0 ^ ks1 ^ 0x1BD11BDAu;
  RandomPair x{c0 + ks0, c1 + ks1};
  threefry_rounds(x, 13, 15, 26, 6), x.first += ks1, x.second += ks2 + 1u;
  threefry_rounds(x, 17, 29, 16, 24), x.first += ks2, x.second += ks0 + 2u;
  threefry_rounds(x, 13, 15, 26, 6), x.first += ks0, x.second += ks1 + 3u;
  threefry_rounds(x, 17, 29, 16, 24), x.first += ks1, x.second += ks2 + 4u;
  threefry_rounds(x, 13, 15, 26, 6), x.first += ks2, x.second += ks0 + 5u;
  return x;
}

}  // namespace detail

/// Returns jax.random.key(seed).
constexpr Key key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)};
}

/// Returns the key of stream n: jax.random.fold_in(key, n).
constexpr Key fold_in(Key key, std::uint32_t n) {
  const detail::RandomPair x = detail::threefry2x32(key, 0, n);
  return {x.first, x.second};
}

/// Returns the 32 random bits of element `index`, in JAX's "partitionable" form.
KOKKOS_INLINE_FUNCTION constexpr std::uint32_t random_bits(Key key, std::uint64_t index) {
  const detail::RandomPair x = detail::threefry2x32(key, static_cast<std::uint32_t>(index >> 32),
                                                    static_cast<std::uint32_t>(index));
  return x.first ^ x.second;
}

}  // namespace tessera
