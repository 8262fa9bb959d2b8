// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera::detail {

/// The tiles in which a host multiplies, on any processor: 12 rows of 128 bytes.
inline constexpr Size tile_rows = 12;
template <class T>
inline constexpr Size tile_columns = 128 / sizeof(T);

/// Sums (rows, tile_columns) = A (rows, terms) B (terms, tile_columns), or adds to them if
/// `continues`: each is one chain of fused multiply-adds over the terms in ascending order. So its
/// bits are those of any other code for such a chain.
template <class T>
struct ChainTile {
  const T* a;
  Size a_row, a_term;  ///< elements from one row, or term, of A to the next
  const T* b;          ///< the columns are adjacent
  Size b_term;         ///< elements from one term of B to the next
  Size rows, columns;  ///< at most those of a tile; sums of later columns may not be computed
  Size terms;
  T* sums;
  bool continues;
};

/// The code of a processor. T: float or double.
template <class T>
struct ChainKernels {
  void (*multiply)(const ChainTile<T>& tile);
  /// Copies element (j, t) of `columns` rows, which lie `next` apart, to (t, j) of a panel of
  /// `terms` rows of tile_columns elements.
  void (*transpose)(const T* from, Size next, Size columns, Size terms, T* to);
};

/// For the vectors of AVX2 with FMA, and of AVX-512; x86 only.
template <class T>
ChainKernels<T> avx2_kernels();
template <class T>
ChainKernels<T> avx512_kernels();

}  // namespace tessera::detail
