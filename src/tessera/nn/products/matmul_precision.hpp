// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// strict: the operands of a product as they are. tf32: rounded to ten mantissa bits (nearest, ties
/// away from zero) when m, n and k are all > 1; float32 only.
enum class MatmulPrecision : std::uint8_t { strict, tf32 };

template <>
inline constexpr std::array<std::string_view, 2> names_of<MatmulPrecision>{"strict", "tf32"};

/// What multiplies 16-bit operands. The emulation widens them to float32, multiplies and rounds the
/// result: sums are of float32 everywhere, so only the order of additions differs.
enum class ShortProducts : std::uint8_t { emulated, onednn, cublas };

template <>
inline constexpr std::array<std::string_view, 3> names_of<ShortProducts>{"emulated", "oneDNN",
                                                                         "cuBLAS"};

/// What this build has for operands of `type`, BFloat16 or Float16, on the processor or device that
/// it runs on.
ShortProducts short_products(DType type);

/// Whether products of this build round to TF32 by themselves, on tensor cores; else rounded copies
/// of the operands are multiplied.
bool has_native_tf32();

/// What multiplies where operands have fewer bits than sums: 16-bit ones, or float32 rounded to
/// TF32. None elsewhere.
inline std::optional<ShortProducts> short_products(DType type, MatmulPrecision precision) {
  if (precision == MatmulPrecision::tf32)
    return has_native_tf32() ? ShortProducts::cublas : ShortProducts::emulated;
  if (is_half(type)) return short_products(type);
  return std::nullopt;
}

/// Elements, in the type of sums, of copies that products make of their operands and results; the
/// largest of all products.
struct MatmulScratch {
  Size left = 0;
  Size right = 0;
  Size result = 0;
};

}  // namespace tessera
