// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <Kokkos_Core.hpp>

/// exp(y) for y <= 0 and log(1 + e) without branches and library calls, so that loops over them
/// vectorise. exp splits y = n ln 2 + r with |r| <= ln 2 / 2 and uses a Taylor polynomial in r
/// (Cody and Waite 1980).
namespace tessera::detail {

template <class T>
struct ExponentialTraits;

template <>
struct ExponentialTraits<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa_bits = 23, bias = 127, degree = 7;
  static constexpr float lowest = -87.336f;  // exp of less is not a normal number
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
};

template <>
struct ExponentialTraits<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa_bits = 52, bias = 1023, degree = 13;
  static constexpr double lowest = -708.39;
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
};

/// Returns a b + c, with one rounding where that is one instruction.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDA_ARCH__)
  using std::fma;
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// Returns 1 / k!.
template <class T>
KOKKOS_FUNCTION constexpr T inverse_factorial(int k) {
  double product = 1;
  for (; k > 1; --k) product *= k;
  return static_cast<T>(1 / product);
}

/// Returns 1/k! + r/(k + 1)! + ..., up to the degree. Templates, so that coefficients are
/// constants.
template <class T, int k>
KOKKOS_FORCEINLINE_FUNCTION T exponential_series(T r) {
  constexpr T coefficient = inverse_factorial<T>(k);
  if constexpr (k == ExponentialTraits<T>::degree)
    return coefficient;
  else
    return multiply_add(exponential_series<T, k + 1>(r), r, coefficient);
}

/// exp(y) = power (1 + rest), power = 2^n.
template <class T>
struct SplitExponential {
  T power, rest;
};

/// For y <= 0; smaller y count as `least`. NaN gives a `rest` of NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION SplitExponential<T> split_exponential(T y, T least) {
  using Traits = ExponentialTraits<T>;
  using Bits = typename Traits::Bits;
  // Adding 1.5 * 2^mantissa_bits rounds to an integer and leaves it in the low bits of the sum.
  constexpr T shift = T(1.5) * static_cast<T>(Bits(1) << Traits::mantissa_bits);
  y = y < least ? least : y;
  const T shifted = multiply_add(y, T(1.44269504088896340736), shift);
  const T n = shifted - shift;
  const T r = multiply_add(-n, T(Traits::ln2_low), multiply_add(-n, T(Traits::ln2_high), y));
  const T sum = exponential_series<T, 1>(r);
  const Bits bits = (Kokkos::bit_cast<Bits>(shifted) + Traits::bias) << Traits::mantissa_bits;
  return {Kokkos::bit_cast<T>(bits), sum * r};
}

// None of these functions computes subnormal numbers, which take a processor ten times as long.

/// exp(y) - 1, without cancellation near zero. It rounds to -1 for y < -38.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T expm1_of_nonpositive(T y) {
  const SplitExponential<T> e = split_exponential(y, T(-40));
  return e.power * e.rest + (e.power - T(1));
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION T exp_of_nonpositive(T y) {
  const SplitExponential<T> e = split_exponential(y, T(ExponentialTraits<T>::lowest));
  return e.power * (e.rest + T(1));
}

/// Returns 1/k + s/(k + 2) + s^2/(k + 4) + ..., up to the last term that counts for s <= 1/9.
template <class T, int k>
KOKKOS_FORCEINLINE_FUNCTION T artanh_series(T s) {
  constexpr int last = sizeof(T) == 4 ? 15 : 33;
  constexpr T coefficient = static_cast<T>(1.0 / k);
  if constexpr (k == last)
    return coefficient;
  else
    return multiply_add(artanh_series<T, k + 2>(s), s, coefficient);
}

/// log(1 + e) for e in [0, 1], as 2 artanh(x) with x = e / (2 + e).
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T log1p_of_unit(T e) {
  const T twice_x = e / (T(1) + T(0.5) * e);
  const T x = e < T(1e-17) ? T(0) : T(0.5) * twice_x;  // its square is no subnormal number
  return twice_x * artanh_series<T, 1>(x * x);
}

}  // namespace tessera::detail
