// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <type_traits>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/products/matmul_precision.hpp>
#include <tessera/nn/products/sum_blocks.hpp>

namespace tessera {

enum class Trans : char { no = 'N', yes = 'T' };

/// Rows of a square product that reaches the peak rate. A GPU needs more of them than a core.
inline constexpr Size peak_gemm_size = std::is_same_v<MemSpace, Kokkos::HostSpace> ? 1024 : 8192;

/// A strided batch: `a`, `b` and `c` are the distances between consecutive matrices, in elements.
/// The matrices of C do not overlap.
struct GemmBatch {
  Size count = 1, a = 0, b = 0, c = 0;

  auto operator<=>(const GemmBatch&) const = default;
};

/// C = op(A) op(B) + beta C. KokkosBlas multiplies float and double; half_products() names the
/// implementation for BFloat16 and Float16.
///
/// Owns the scratch memory of rounded and widened operands; a call allocates no Kokkos memory.
template <class T>
class Gemm {
 public:
  using Sum = StateOf<T>;  ///< type of the sums

  /// `scratch` is used in tf32 precision, by emulated half-precision products, and in a fixed order
  /// (fixed_order.hpp), which depends neither on `products` nor on the processor.
  /// Throws ConfigError for tf32 with a type other than float.
  explicit Gemm(MatmulPrecision precision = MatmulPrecision::strict,
                const MatmulScratch& scratch = {},
                HalfProducts products = half_products(dtype_of<T>()), bool fixed_order = false);

  /// op(A) (m, k), op(B) (k, n), C (m, n); each may be a block of a wider matrix. A and B must not
  /// alias C. k = 0 gives beta C. beta = 0 overwrites C, also NaN. Throws Error (usage) if the
  /// shapes do not match or an operand is larger than the scratch memory. Results of 16-bit
  /// operands may stay unrounded (C = Sum). `sums` needs a fixed order, which rounds all operands
  /// to tf32, of any shape.
  template <class C>
  requires std::is_same_v<C, T> || std::is_same_v<C, Sum>
  void operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  Sum beta, const Matrix<C>& c, const SumBlocks& sums = {}) const;
  /// The same for each matrix of a batch, of which a, b and c are the first: in one launch on a
  /// GPU, one after another on a host.
  template <class C>
  void multiply_batch(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                      const Matrix<const T>& b, Sum beta, const Matrix<C>& c,
                      const GemmBatch& batch, const SumBlocks& sums = {}) const;

  /// Returns true if several threads of a host may multiply at the same time: products use no
  /// scratch memory.
  bool is_reentrant() const;

  /// Returns MatmulScratch::nodes elements for the trees of layers, which products do not use.
  const Vector<Sum>& nodes() const { return nodes_; }

 private:
  MatmulPrecision precision_;
  HalfProducts products_;
  bool fixed_order_;
  Vector<Sum> left_, right_, result_, nodes_;
};

}  // namespace tessera
