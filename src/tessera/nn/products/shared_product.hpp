// SPDX-License-Identifier: Apache-2.0
// Products that the threads of a host share.
#pragma once

#include <algorithm>

#include <KokkosKernels_config.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera::detail {

/// A batch of products C (m, n) = op(A) op(B) over k terms that threads share. Each thread has
/// whole matrices or, if there are few, a block of each C. So a library only needs to multiply on
/// the thread that calls it, and many small products, on which several threads would wait for each
/// other, take one parallel region. Blocks are rows if C is as high as wide: kernels over rows of a
/// matrix share them alike, and find them in the cache of their core.
class SharedProduct {
 public:
  /// `row`: elements from one row of a C to the next.
  SharedProduct(Size m, Size n, Size k, const GemmBatch& batch, Size row)
      : m_(m), n_(n), batch_(batch) {
    if constexpr (!on_host) return;
#ifndef KOKKOSKERNELS_ENABLE_TPL_BLAS
    return;  // Kokkos Kernels' own products are kernels, which must not begin inside of one
#endif
    static const Size below = serial_below(), threads = kernel_threads();
    constexpr Size terms_per_element = 16;  // take as long as an element of a small kernel
    work_ = batch.count * m * n * k / terms_per_element;
    is_shared_ = threads > 1 && work_ >= below && !ThreadShare::is_open();
    if (!is_shared_) return;
    const bool share_rows = batch.count > 1 && batch.c < row;  // matrices lie side by side
    if (share_rows && m >= threads) {
      down_ = threads;
      return;
    }
    if (occupies_threads(batch.count)) return;
    Size least = m + n + 1;
    for (Size down = 1; down <= std::min(threads, m); ++down) {
      const Size across = threads / down;
      if (threads % down != 0 || across > n) continue;
      const Size sides = (m + down - 1) / down + (n + across - 1) / across;
      if (sides > least) continue;
      least = sides;
      down_ = down;
      across_ = across;
    }
  }

  /// Calls product(a, b, c) for blocks of all matrices, perhaps on several threads at once.
  template <class A, class B, class C, class F>
  void multiply(Trans trans_a, Trans trans_b, const Matrix<A>& a, const Matrix<B>& b,
                const Matrix<C>& c, const F& product) const {
    const auto rows_of = [](const auto& matrix) {
      return Range{0, static_cast<Size>(matrix.extent(0))};
    };
    const auto columns_of = [](const auto& matrix) {
      return Range{0, static_cast<Size>(matrix.extent(1))};
    };
    const auto block = [&](Size number) {
      // Blocks of the same rows belong to one thread.
      const Size per_matrix = down_ * across_,
                 matrix = across_ == 1 ? number % batch_.count : number / per_matrix,
                 within = across_ == 1 ? number / batch_.count : number % per_matrix;
      const Matrix<A> of_a = moved(a, matrix * batch_.a);
      const Matrix<B> of_b = moved(b, matrix * batch_.b);
      const Matrix<C> of_c = moved(c, matrix * batch_.c);
      if (down_ * across_ == 1) return product(of_a, of_b, of_c);
      const Range rows = balanced_split(m_, down_, within / across_),
                  columns = balanced_split(n_, across_, within % across_);
      product(trans_a == Trans::no ? block_of(of_a, rows, columns_of(a))
                                   : block_of(of_a, rows_of(a), rows),
              trans_b == Trans::no ? block_of(of_b, rows_of(b), columns)
                                   : block_of(of_b, columns, columns_of(b)),
              block_of(of_c, rows, columns));
    };
    const Size blocks = batch_.count * down_ * across_;
    const auto multiply_blocks = [&](const Range& own, Size) {
      for (Size i = own.begin; i < own.end(); ++i) block(i);
    };
    if (!is_shared_) return multiply_blocks({0, blocks}, 0);
    share_items("tessera::product_blocks"_label, blocks, blocks, work_, multiply_blocks);
  }

 private:
  Size m_, n_;
  GemmBatch batch_;
  bool is_shared_ = false;
  Size work_ = 0;               ///< in elements of a small kernel
  Size down_ = 1, across_ = 1;  ///< blocks of a C
};

}  // namespace tessera::detail
