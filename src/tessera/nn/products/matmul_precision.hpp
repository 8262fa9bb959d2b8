// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// strict: products use their operands unchanged. tf32: operands are rounded to TF32, that is, to
/// ten mantissa bits (nearest, ties away from zero), if m, n and k are all > 1; float32 only. With
/// has_native_tf32(), cuBLAS may choose another rounding, or a product without any.
enum class MatmulPrecision : std::uint8_t { strict, tf32 };

template <>
inline constexpr std::array<std::string_view, 2> names_of<MatmulPrecision>{"strict", "tf32"};

/// Implementations of half-precision (16-bit) products. The emulation widens the operands to
/// float32, multiplies them and rounds the result. All sum in float32; only the order of additions
/// differs.
enum class HalfProducts : std::uint8_t { emulated, onednn, cublas };

template <>
inline constexpr std::array<std::string_view, 3> names_of<HalfProducts>{"emulated", "oneDNN",
                                                                        "cuBLAS"};

/// Returns the implementation of this build for `type`, BFloat16 or Float16, on the present
/// processor or device.
HalfProducts half_products(DType type);

/// Returns true if tensor cores round operands to TF32. Otherwise products multiply rounded copies.
bool has_native_tf32();

/// Returns the implementation of products whose operands have fewer bits than their sums: 16-bit
/// operands, or float32 rounded to TF32. Returns none for other operands.
inline std::optional<HalfProducts> half_products(DType type, MatmulPrecision precision) {
  if (precision == MatmulPrecision::tf32)
    return has_native_tf32() ? HalfProducts::cublas : HalfProducts::emulated;
  if (is_half(type)) return half_products(type);
  return std::nullopt;
}

/// Elements, in the type of the sums, of the copies of operands and results: the maximum over all
/// products.
struct MatmulScratch {
  Size left = 0;
  Size right = 0;
  Size result = 0;
  Size nodes = 0;  ///< open nodes of the trees in which products in blocks are summed
};

}  // namespace tessera
