// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <Kokkos_Macros.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014). It is a bijection, and every bit of the
/// result depends on every bit of x.
KOKKOS_INLINE_FUNCTION std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Returns a hash of the bits of an element and of its index. The checksum of an array is the sum
/// of its hashes modulo a power of two, so the checksums of its pieces add up to its own.
template <class T>
KOKKOS_INLINE_FUNCTION std::uint64_t element_hash(const T* element, Size place) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  static_assert(sizeof(T) == sizeof(Bits));
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return mix(mix(static_cast<std::uint64_t>(place)) + bits);
}

}  // namespace tessera
