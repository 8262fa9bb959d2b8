// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>

namespace tessera {

/// Element-wise function after a layer. gelu is the tanh approximation, jax.nn.gelu's default:
/// z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))); silu is z sigmoid(z). The derivative of relu at
/// zero is zero.
enum class Activation : std::uint8_t { identity, relu, tanh, sigmoid, gelu, silu };

template <>
inline constexpr std::array<std::string_view, 6> names_of<Activation>{"identity", "relu", "tanh",
                                                                      "sigmoid",  "gelu", "silu"};

/// Returns true if the derivative is a function of the pre-activation z, which backward then reads.
/// The other derivatives are functions of the output y.
constexpr bool needs_preactivation(Activation a) {
  return a == Activation::gelu || a == Activation::silu;
}

}  // namespace tessera
