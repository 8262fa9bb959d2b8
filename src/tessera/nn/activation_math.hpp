// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <tessera/nn/activation.hpp>
#include <tessera/nn/exponential.hpp>

/// The activations and their derivatives for one element, for device code. A NaN passes through.
namespace tessera::detail {

/// tanh |z| = (1 - e) / (1 + e) with e = exp(-2 |z|).
template <class T>
KOKKOS_INLINE_FUNCTION T tanh_of(T z) {
  const T less = expm1_of_nonpositive(z < T(0) ? z + z : -(z + z));
  const T magnitude = less / (T(2) + less);
  return z < T(0) ? magnitude : -magnitude;
}

/// 1 / (1 + exp(-z)), from the exponential that cannot overflow.
template <class T>
KOKKOS_INLINE_FUNCTION T sigmoid_of(T z) {
  const T e = exp_of_nonpositive(z < T(0) ? z : -z);
  return (z < T(0) ? e : T(1)) / (T(1) + e);
}

template <Activation>
struct ActivationMath;

/// `value(z)` is the output; `slope(s)` the derivative, a function of the output, or of z where
/// needs_preactivation() says so.
template <>
struct ActivationMath<Activation::identity> {
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T z) {
    return z;
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T slope(T) {
    return 1;
  }
};

template <>
struct ActivationMath<Activation::relu> {
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T z) {
    return z <= T(0) ? T(0) : z;
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T slope(T y) {
    return y <= T(0) ? T(0) : T(1);
  }
};

template <>
struct ActivationMath<Activation::tanh> {
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T z) {
    return tanh_of(z);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T slope(T y) {
    return T(1) - y * y;
  }
};

template <>
struct ActivationMath<Activation::sigmoid> {
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T z) {
    return sigmoid_of(z);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T slope(T y) {
    return y * (T(1) - y);
  }
};

template <>
struct ActivationMath<Activation::gelu> {
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T z) {
    return T(0.5) * z * (T(1) + inner(z));
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T slope(T z) {
    const T t = inner(z);
    const T inner_slope = T(sqrt_2_over_pi) * (T(1) + T(3 * cubic) * z * z);
    return T(0.5) * (T(1) + t) + T(0.5) * z * (T(1) - t * t) * inner_slope;
  }

 private:
  static constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  static constexpr double cubic = 0.044715;
  template <class T>
  KOKKOS_INLINE_FUNCTION static T inner(T z) {
    return tanh_of(T(sqrt_2_over_pi) * (z + T(cubic) * z * z * z));
  }
};

}  // namespace tessera::detail
