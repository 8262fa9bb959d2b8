// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <tessera/nn/activation.hpp>
#include <tessera/nn/exponential.hpp>

/// The activations and their derivatives for one element, in device code. NaN gives NaN.
namespace tessera::detail {

/// tanh |z| = (1 - e) / (1 + e) with e = exp(-2 |z|).
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T tanh_of(T z) {
  const T less = expm1_of_nonpositive(z < T(0) ? z + z : -(z + z));
  const T magnitude = less / (T(2) + less);
  return z < T(0) ? magnitude : -magnitude;
}

/// 1 / (1 + exp(-z)), computed from exp(-|z|), which does not overflow.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T sigmoid_of(T z) {
  const T e = exp_of_nonpositive(z < T(0) ? z : -z);
  return (z < T(0) ? e : T(1)) / (T(1) + e);
}

inline constexpr double sqrt_2_over_pi = 0.79788456080286535588;
inline constexpr double gelu_cubic = 0.044715;

/// The tanh inside gelu.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T gelu_tanh(T z) {
  return tanh_of(T(sqrt_2_over_pi) * (z + T(gelu_cubic) * z * z * z));
}

/// y = activation(z).
template <Activation A, class T>
KOKKOS_FORCEINLINE_FUNCTION T value_of(T z) {
  if constexpr (A == Activation::relu)
    return z <= T(0) ? T(0) : z;
  else if constexpr (A == Activation::tanh)
    return tanh_of(z);
  else if constexpr (A == Activation::sigmoid)
    return sigmoid_of(z);
  else if constexpr (A == Activation::gelu)
    return T(0.5) * z * (T(1) + gelu_tanh(z));
  else if constexpr (A == Activation::silu)
    return z * sigmoid_of(z);
  else
    return z;
}

/// The derivative, from the output y, or from z if needs_preactivation().
template <Activation A, class T>
KOKKOS_FORCEINLINE_FUNCTION T slope_of(T y) {
  if constexpr (A == Activation::relu) {
    return y <= T(0) ? T(0) : T(1);
  } else if constexpr (A == Activation::tanh) {
    return T(1) - y * y;
  } else if constexpr (A == Activation::sigmoid) {
    return y * (T(1) - y);
  } else if constexpr (A == Activation::gelu) {
    const T z = y, t = gelu_tanh(z);
    const T inner_slope = T(sqrt_2_over_pi) * (T(1) + T(3 * gelu_cubic) * z * z);
    return T(0.5) * (T(1) + t) + T(0.5) * z * (T(1) - t * t) * inner_slope;
  } else if constexpr (A == Activation::silu) {
    const T s = sigmoid_of(y);
    return s + y * s * (T(1) - s);
  } else {
    return 1;
  }
}

/// Calls f with the activation as a std::integral_constant.
template <class F>
void with_activation(Activation a, const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((a == Activation(I) ? f(std::integral_constant<Activation, Activation(I)>()) : void()), ...);
  }
  (std::make_index_sequence<names_of<Activation>.size()>());
}

}  // namespace tessera::detail
