// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>

namespace tessera {

/// strict: the operands of a product as they are. tf32: rounded to ten mantissa bits (nearest, ties
/// away from zero) when m, n and k are all > 1; float32 only.
enum class MatmulPrecision : std::uint8_t { strict, tf32 };

template <>
inline constexpr std::array<std::string_view, 2> names_of<MatmulPrecision>{"strict", "tf32"};

}  // namespace tessera
