// SPDX-License-Identifier: Apache-2.0
// Products that the threads of a host share.
#pragma once

#include <algorithm>
#include <type_traits>

#include <KokkosKernels_config.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera::detail {

/// A batch of products C (m, n) = op(A) op(B) over k terms that threads share. Each thread has
/// whole matrices or, if there are few, a block of each C. So a library only needs to multiply on
/// the thread that calls it, and many small products, on which several threads would wait for each
/// other, take one parallel region. Blocks are rows if C is as high as wide: kernels over rows of a
/// matrix share them alike, and find them in the cache of their core.
///
/// Long sums with few results, as in gradients of weights, are cut instead: for a block of C, a
/// thread would read all of a matrix that the others have just computed. The parts of the sums do
/// not depend on the threads.
class SharedProduct {
 public:
  /// `row`: elements from one row of a C to the next.
  SharedProduct(Size m, Size n, Size k, const GemmBatch& batch, Size row, bool cuts_sums = false)
      : m_(m), n_(n), k_(k), batch_(batch) {
    if constexpr (!on_host) return;
#ifndef KOKKOSKERNELS_ENABLE_TPL_BLAS
    return;  // Kokkos Kernels' own products are kernels, which must not begin inside of one
#endif
    if (cuts_sums && batch.count == 1)
      while (2 * parts_ <= most_parts_of_sums(m, n, k)) parts_ *= 2;
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
    if (occupies_threads(batch.count * parts_)) return;
    const Size blocks = (threads + parts_ - 1) / parts_;
    Size least = m + n + 1;
    for (Size down = 1; down <= std::min(blocks, m); ++down) {
      const Size across = blocks / down;
      if (blocks % down != 0 || across > n) continue;
      const Size sides = (m + down - 1) / down + (n + across - 1) / across;
      if (sides > least) continue;
      least = sides;
      down_ = down;
      across_ = across;
    }
  }

  /// Calls product(beta, a, b, c) for blocks of all matrices, perhaps on several threads at once,
  /// and adds up parts of sums.
  template <class A, class B, class Sum, class C, class F>
  void multiply(Trans trans_a, Trans trans_b, const Matrix<A>& a, const Matrix<B>& b, Sum beta,
                const Matrix<C>& c, const F& product) const {
    Sum partial[most_elements];
    const auto block = [&](Size number) {
      // Blocks of the same rows belong to one thread.
      const Size blocks = down_ * across_, parts = batch_.count * parts_,
                 part = across_ == 1 ? number % parts : number / blocks,
                 within = across_ == 1 ? number / parts : number % blocks;
      const Size matrix = part % batch_.count, of_sum = part / batch_.count;
      const Range rows = balanced_split(m_, down_, within / across_),
                  columns = balanced_split(n_, across_, within % across_),
                  terms = balanced_split(k_, parts_, of_sum);
      const Matrix<A> of_a = moved(a, matrix * batch_.a);
      const Matrix<B> of_b = moved(b, matrix * batch_.b);
      const auto multiply = [&](Sum times, const auto& to) {
        product(
            times, trans_a == Trans::no ? block_of(of_a, rows, terms) : block_of(of_a, terms, rows),
            trans_b == Trans::no ? block_of(of_b, terms, columns) : block_of(of_b, columns, terms),
            block_of(to, rows, columns));
      };
      if constexpr (std::is_same_v<C, Sum>)
        if (of_sum > 0) return multiply(0, alias_matrix(&partial[(of_sum - 1) * m_ * n_], m_, n_));
      multiply(beta, moved(c, matrix * batch_.c));
    };
    const bool are_whole = parts_ * down_ * across_ == 1;
    const Size blocks = batch_.count * parts_ * down_ * across_;
    const auto multiply_blocks = [&](const Range& own, Size) {
      for (Size i = own.begin; i < own.end(); ++i)
        are_whole
            ? product(beta, moved(a, i * batch_.a), moved(b, i * batch_.b), moved(c, i * batch_.c))
            : block(i);
    };
    if (is_shared_)
      share_items("tessera::product_blocks"_label, blocks, blocks, work_, multiply_blocks);
    else
      multiply_blocks({0, blocks}, 0);
    if constexpr (on_host && std::is_same_v<C, Sum>)
      if (parts_ > 1) add_parts(&partial[0], c);
  }

 private:
  static constexpr Size most_elements = 1 << 14;  // of the sums of all parts but the first

  /// Adding them takes less time than fetching from another core.
  static Size most_parts_of_sums(Size m, Size n, Size k) {
    constexpr Size most = 16, least_terms = 128;
    const Size results = std::max<Size>(1, m * n);
    return std::min(
        {most, k / least_terms, 1 + most_elements / results, k * (m + n) / 8 / results});
  }

  template <class Sum>
  void add_parts(const Sum* parts, const Matrix<Sum>& c) const {
    Sum* const to = c.data();
    const Size row = static_cast<Size>(c.stride_0()), cols = n_, size = m_ * n_, more = parts_ - 1;
    for_each(
        "tessera::product_sums"_label, m_,
        [=](Size i) {
          for (Size part = 0; part < more; ++part) {
            const Sum* const from = parts + part * size + i * cols;
            for_each_independent(cols, [=](Size j) { to[i * row + j] += from[j]; });
          }
        },
        more * size);
  }

  Size m_, n_, k_;
  GemmBatch batch_;
  bool is_shared_ = false;
  Size work_ = 0;               ///< in elements of a small kernel
  Size parts_ = 1;              ///< of the sums
  Size down_ = 1, across_ = 1;  ///< blocks of a C
};

}  // namespace tessera::detail
