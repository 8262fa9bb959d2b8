// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <Kokkos_BitManipulation.hpp>

#include <tessera/base/types.hpp>

namespace tessera {
namespace detail {

KOKKOS_INLINE_FUNCTION float float_of_bits(std::uint32_t bits) {
  return Kokkos::bit_cast<float>(bits);
}
KOKKOS_INLINE_FUNCTION std::uint32_t bits_of_float(float value) {
  return Kokkos::bit_cast<std::uint32_t>(value);
}

}  // namespace detail

/// A 16-bit floating-point number for storage and messages. It converts to and from float
/// implicitly, and arithmetic is done in float. Conversion rounds to nearest, ties to even (IEEE
/// 754). A value that is too large becomes an infinity, and a NaN stays a NaN.
template <class Format>
class HalfFloat {
 public:
  HalfFloat() = default;
  KOKKOS_INLINE_FUNCTION HalfFloat(float value)
      : bits_(Format::from_bits(detail::bits_of_float(value))) {}
  KOKKOS_INLINE_FUNCTION operator float() const {
    return detail::float_of_bits(Format::to_bits(bits_));
  }
  KOKKOS_INLINE_FUNCTION std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

namespace detail {

/// bfloat16 is the upper half of a float: 8 bits of exponent and 7 of mantissa.
struct BFloat16Format {
  KOKKOS_INLINE_FUNCTION static std::uint16_t from_bits(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40u;
    return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? nan : rounded);
  }
  KOKKOS_INLINE_FUNCTION static std::uint32_t to_bits(std::uint16_t bits) {
    return static_cast<std::uint32_t>(bits) << 16;
  }
};

/// IEEE 754 binary16 has 5 bits of exponent and 10 of mantissa. Float additions shift subnormal
/// numbers: adding 0.5 rounds to a multiple of 2^-24, and subtracting 2^-14 removes the implicit
/// leading bit.
struct Float16Format {
  KOKKOS_INLINE_FUNCTION static std::uint16_t from_bits(std::uint32_t bits) {
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
    const std::uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    const std::uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const std::uint32_t small = magnitude < 0x38800000u ? subnormal : normal;
    return static_cast<std::uint16_t>(sign | (magnitude >= 0x47800000u ? large : small));
  }
  KOKKOS_INLINE_FUNCTION static std::uint32_t to_bits(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, shifted = (bits & 0x7fffu) << 13;
    const std::uint32_t normal = shifted + 0x38000000u;
    const std::uint32_t subnormal =
        bits_of_float(float_of_bits(shifted + 0x38800000u) - float_of_bits(0x38800000u));
    const std::uint32_t special = shifted + 0x70000000u;
    const std::uint32_t finite = shifted < 0x00800000u ? subnormal : normal;
    return sign | (shifted >= 0x0f800000u ? special : finite);
  }
};

}  // namespace detail

/// Returns one of the two neighbours of a number, so that its mean over all random bits is the
/// number (stochastic rounding: Gupta et al. 2015). Uses 16 bits of `random`.
KOKKOS_INLINE_FUNCTION BFloat16 rounded_at_random(float value, std::uint32_t random) {
  const std::uint32_t bits = detail::bits_of_float(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;  // not finite
  return detail::float_of_bits((bits + (random & 0xffffu)) & 0xffff0000u);
}

/// Calls f(T()) with the C++ type T of a floating-point type.
template <class F>
decltype(auto) with_compute_type(DType type, const F& f) {
  switch (type) {
    case DType::float64:
      return f(double());
    case DType::bfloat16:
      return f(BFloat16());
    case DType::float16:
      return f(Float16());
    default:
      return f(float());
  }
}

}  // namespace tessera
