// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <tessera/random/threefry.hpp>

/// Draws one element as a function of (key, flat index), in float32 like jax.random, on the device.
namespace tessera {

/// Returns a uniform number in [lo, hi).
KOKKOS_INLINE_FUNCTION float random_uniform(Key key, std::uint64_t index, float lo = 0,
                                            float hi = 1) {
  // The top 23 bits times 2^-23 are exact in float32.
  const float unit = static_cast<float>(random_bits(key, index) >> 9) * 0x1p-23f;
  const float value = unit * (hi - lo) + lo;
  return value < lo ? lo : value;
}

/// Returns the inverse error function on (-1, 1) (Giles 2012).
KOKKOS_INLINE_FUNCTION float inverse_erf(float x) {
  using std::log1p;
  using std::sqrt;
  float w = -log1p(-x * x);
  float p;
  if (w < 5.0f) {
    w -= 2.5f;
    p = 2.81022636e-08f;
    p = p * w + 3.43273939e-07f;
    p = p * w - 3.5233877e-06f;
    p = p * w - 4.39150654e-06f;
    p = p * w + 0.00021858087f;
    p = p * w - 0.00125372503f;
    p = p * w - 0.00417768164f;
    p = p * w + 0.246640727f;
    p = p * w + 1.50140941f;
  } else {
    w = sqrt(w) - 3.0f;
    p = -0.000200214257f;
    p = p * w + 0.000100950558f;
    p = p * w + 0.00134934322f;
    p = p * w - 0.00367342844f;
    p = p * w + 0.00573950773f;
    p = p * w - 0.0076224613f;
    p = p * w + 0.00943887047f;
    p = p * w + 1.00167406f;
    p = p * w + 2.83297682f;
  }
  return p * x;
}

/// Returns a standard normal number.
KOKKOS_INLINE_FUNCTION float random_normal(Key key, std::uint64_t index) {
  constexpr float lo = -0x1.fffffep-1f;  // the float next to -1
  return 1.41421356f * inverse_erf(random_uniform(key, index, lo, 1));
}

/// Returns a standard normal number, conditioned on (-2, 2).
KOKKOS_INLINE_FUNCTION float random_truncated_normal(Key key, std::uint64_t index) {
  constexpr float erf_limit = 0.95449973610364158f;  // erf(2 / sqrt 2)
  constexpr float largest = 0x1.fffffep+0f;          // the float next to 2
  const float value = 1.41421356f * inverse_erf(random_uniform(key, index, -erf_limit, erf_limit));
  return value < -largest ? -largest : value > largest ? largest : value;
}

}  // namespace tessera
