// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>

namespace tessera {

/// Distribution of the initial kernel of a layer: JAX's variance_scaling family. Normal variants
/// are truncated at two standard deviations. Biases are zero.
enum class Initializer : std::uint8_t {
  zeros,
  lecun_normal,  ///< variance 1 / fan_in
  lecun_uniform,
  he_normal,  ///< variance 2 / fan_in
  he_uniform,
  glorot_normal,  ///< variance 2 / (fan_in + fan_out)
  glorot_uniform,
};

template <>
inline constexpr std::array<std::string_view, 7> names_of<Initializer>{
    "zeros",      "lecun_normal",  "lecun_uniform",  "he_normal",
    "he_uniform", "glorot_normal", "glorot_uniform",
};

}  // namespace tessera
