// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include <tessera/nn/products/chain_tile.hpp>
#include <tessera/nn/products/gemm.hpp>

/// Products whose bits depend on the operands and the order of the sums alone. An element of C is a
/// sum over k in ascending order, begun with 0, or such sums over blocks of k added in a tree; then
/// beta C is added. A sum is one chain of fused multiply-adds, but for BFloat16 as the instruction
/// TDPBF16PS of Intel's AMX adds: sum = sum + (even + odd) for each 32 terms, where even and odd
/// are chains, begun with 0, over the terms of even and odd number. There, subnormal operands and
/// results count as zeros of their sign.
namespace tessera::detail {

/// Element (i, j) of op(X) lies at data[i * row + j * column].
template <class T>
struct ProductOperand {
  T* data;
  Size row, column;
  KOKKOS_FUNCTION T* at(Size i, Size j) const { return data + i * row + j * column; }
  ProductOperand transposed() const { return {data, column, row}; }
};

/// C (m, n) = A (m, k) B (k, n) + beta C
template <class T, class C>
struct FixedOrderProduct {
  Size m, n, k;
  ProductOperand<const T> a, b;
  ProductOperand<C> c;
  StateOf<T> beta;
  bool rounds;  ///< operands to TF32
  SumBlocks sums;
};

/// Returns an operand as products take it: widened, and rounded to TF32 if `rounds`. Numbers of 16
/// bits have no more mantissa bits than that.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION StateOf<T> widened(T x, bool rounds) {
  const auto sum = static_cast<StateOf<T>>(x);
  if constexpr (std::is_same_v<T, float>) {
    // The bits, as an integer, grow with the magnitude: adds half a unit, clears the 13 low bits.
    const auto bits = Kokkos::bit_cast<std::uint32_t>(x);
    if (rounds && (bits & 0x7f800000u) != 0x7f800000u)
      return Kokkos::bit_cast<float>((bits + 0x1000u) & ~0x1fffu);
  }
  return sum;
}

/// Returns the kernels that this processor can run for operands of type T, the fastest first. Those
/// at the end are null and stand for one element after another. Devices have no others.
template <class T>
std::vector<ChainKernels<StateOf<T>>> chain_kernels();

/// The memory is that of fixed_order_scratch(). Throws Error (usage) if the blocks are not those of
/// k, or if there is too little memory.
template <class T, class C>
void multiply_in_order(const FixedOrderProduct<T, C>& product,
                       const ChainKernels<StateOf<T>>& kernels, const Vector<StateOf<T>>& left,
                       const Vector<StateOf<T>>& right, const Vector<StateOf<T>>& result);

}  // namespace tessera::detail

/// Applies a macro to the types of the operands and of the result of each product.
#define TESSERA_FOR_PRODUCT_TYPES(apply)                                                     \
  apply(float, float) apply(double, double) apply(BFloat16, BFloat16) apply(BFloat16, float) \
      apply(Float16, Float16) apply(Float16, float)
