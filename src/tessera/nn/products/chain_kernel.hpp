// SPDX-License-Identifier: Apache-2.0
// The kernel of ChainTile for the vectors of the instructions for which the including file is
// compiled. Includes nothing with inline functions, which would get these instructions elsewhere.
#pragma once

#if defined(__FMA__) && !defined(__CUDACC__)

#include <immintrin.h>
#include <utility>

#include <tessera/nn/products/chain_tile.hpp>

namespace tessera::detail {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, most_rows = 12;
inline __m512 multiply_add(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512d multiply_add(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#else
constexpr int vector_bytes = 32, most_rows = 6;
inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#endif

/// A vector at any address.
template <class T>
struct Lanes {
  typedef T V __attribute__((vector_size(vector_bytes)));
  typedef T At __attribute__((vector_size(vector_bytes), aligned(2), may_alias));
  typedef T One __attribute__((aligned(2), may_alias));
  static constexpr Size count = vector_bytes / sizeof(T);
};

/// Computes `rows` rows of one vector or two from (row, column) on. Sums of two fill the registers.
template <class T, int rows, int vectors>
void sums_of(const ChainTile<T>& tile, Size row, Size column) {
  using V = typename Lanes<T>::V;
  using At = typename Lanes<T>::At;
  constexpr int groups = (rows + 2) / 3;  // of three rows, which share an address
  T* const out = tile.sums + row * tile_columns<T> + column;
  const auto at = [out](int r, int v) {
    return reinterpret_cast<At*>(out + r * tile_columns<T> + v * Lanes<T>::count);
  };
  V sums[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sums[r][v] = tile.continues ? V(*at(r, v)) : V{};
  const Size a_row = tile.a_row, a_term = tile.a_term;
  const T* a[groups];
  for (int g = 0; g < groups; ++g) a[g] = tile.a + (row + 3 * g) * a_row;
  const T* b = tile.b + column;
  for (Size k = 0; k < tile.terms; ++k, b += tile.b_term) {
    V of_b[vectors];
    for (int v = 0; v < vectors; ++v)
      of_b[v] = *reinterpret_cast<const At*>(b + v * Lanes<T>::count);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const V factor = a[r / 3][r % 3 * a_row] - V{};  // in all lanes; x - 0 is x, also for -0
      for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(factor, of_b[v], sums[r][v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) a[g] += a_term;
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) *at(r, v) = sums[r][v];
}

template <class T, int rows = most_rows>
void sums_of_rows(const ChainTile<T>& tile, Size row, Size column, Size count) {
  if constexpr (rows > 1)
    if (count < rows) return sums_of_rows<T, rows - 1>(tile, row, column, count);
  if (tile.columns - column > Lanes<T>::count) return sums_of<T, rows, 2>(tile, row, column);
  sums_of<T, rows, 1>(tile, row, column);
}

template <class T>
void multiply_tile(const ChainTile<T>& tile) {
  for (Size column = 0; column < tile.columns; column += 2 * Lanes<T>::count)
    for (Size row = 0; row < tile.rows; row += most_rows)
      sums_of_rows(tile, row, column, tile.rows - row);
}

/// Exchanges the lanes with bit `step` of a for those without it of b.
template <class T, int step, int... lane>
void exchange(typename Lanes<T>::V& a, typename Lanes<T>::V& b,
              std::integer_sequence<int, lane...>) {
  constexpr int lanes = Lanes<T>::count;
  const auto first = a;
  a = __builtin_shufflevector(first, b, ((lane & step) != 0 ? lanes + lane - step : lane)...);
  b = __builtin_shufflevector(first, b, ((lane & step) != 0 ? lanes + lane : lane + step)...);
}

template <class T, int step = 1>
void transpose_square(typename Lanes<T>::V (&rows)[Lanes<T>::count]) {
  constexpr int lanes = Lanes<T>::count;
#pragma GCC unroll 16
  for (int r = 0; r < lanes; ++r)
    if ((r & step) == 0)
      exchange<T, step>(rows[r], rows[r + step], std::make_integer_sequence<int, lanes>());
  if constexpr (2 * step < lanes) transpose_square<T, 2 * step>(rows);
}

template <class T>
void transpose(const T* from, Size next, Size columns, Size terms, T* to, Size to_next) {
  using At = typename Lanes<T>::At;
  using One = typename Lanes<T>::One;
  const auto at = [=](Size j, Size t) {
    return reinterpret_cast<const char*>(from + t) + j * next;
  };
  constexpr Size lanes = Lanes<T>::count;
  for (Size t = 0; t < terms; t += lanes)
    for (Size j = 0; j < columns; j += lanes) {
      T* const out = to + t * to_next + j;
      if (j + lanes <= columns && t + lanes <= terms) {
        typename Lanes<T>::V rows[lanes];
        for (Size r = 0; r < lanes; ++r) rows[r] = *reinterpret_cast<const At*>(at(j + r, t));
        transpose_square<T>(rows);
        for (Size r = 0; r < lanes; ++r) *reinterpret_cast<At*>(out + r * to_next) = rows[r];
      } else {
        for (Size r = 0; r < lanes && j + r < columns; ++r)
          for (Size l = 0; l < lanes && t + l < terms; ++l)
            out[l * to_next + r] = *reinterpret_cast<const One*>(at(j + r, t + l));
      }
    }
}

}  // namespace
}  // namespace tessera::detail

#endif
