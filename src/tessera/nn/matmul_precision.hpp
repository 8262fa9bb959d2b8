// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

/// strict: the operands of a product as they are. tf32: rounded to ten mantissa bits (nearest, ties
/// away from zero) when m, n and k are all > 1; float32 only.
enum class MatmulPrecision : std::uint8_t { strict, tf32 };

/// The names in the order of the enumerators.
inline constexpr std::array<std::string_view, 2> matmul_precision_names{"strict", "tf32"};

constexpr std::string_view name_of(MatmulPrecision p) {
  return matmul_precision_names[static_cast<std::size_t>(p)];
}

}  // namespace tessera
