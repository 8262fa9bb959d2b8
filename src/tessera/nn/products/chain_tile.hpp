// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera::detail {

/// The tiles in which a host multiplies: some rows of 128 bytes.
inline constexpr Size tile_rows = 12, most_tile_rows = 32;
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
  /// Copies element (j, t) of `columns` rows, which lie `next` bytes apart, to (t, j) of a panel
  /// whose `terms` rows lie `to_next` elements apart. Addresses are multiples of two bytes.
  void (*transpose)(const T* from, Size next, Size columns, Size terms, T* to, Size to_next);
  Size rows = tile_rows;  ///< of a tile
  /// The kernel computes sums of BFloat16 (fixed_order.hpp). A term of a tile is two of them, in
  /// the bits of a float, and the terms are a multiple of 16.
  bool takes_pairs = false;
};

/// For the vectors of AVX2 with FMA, and of AVX-512; x86 only.
template <class T>
ChainKernels<T> avx2_kernels();
template <class T>
ChainKernels<T> avx512_kernels();
/// For AMX, beside AVX-512.
ChainKernels<float> amx_kernels();
/// Asks Linux for the tile registers. Returns false if this process may not use them.
bool has_amx();

}  // namespace tessera::detail
