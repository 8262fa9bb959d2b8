// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/products/fixed_order.hpp>

namespace tessera::detail {
namespace {

/// c = sum + beta c
template <class C, class Sum>
KOKKOS_FORCEINLINE_FUNCTION void store_sum(Sum sum, Sum beta, C* c) {
  *c = static_cast<C>(beta == 0 ? sum : sum + beta * static_cast<Sum>(*c));
}

/// Computes an element of C.
template <class T, class C>
struct OneElement {
  using Sum = StateOf<T>;
  FixedOrderProduct<T, C> p;

  KOKKOS_INLINE_FUNCTION void operator()(Size element) const {
    const Size i = element / p.n, j = element % p.n;
    Sum nodes[32], sum = -Sum(0);
    for (Size block = 0; block < p.sums.own.count; ++block) {
      sum = chain(i, j, p.sums.terms(block));
      Size level = 0;
      for (; (block >> level & 1) != 0; ++level) sum = nodes[level] + sum;
      nodes[level] = sum;
    }
    store_sum(sum, p.beta, p.c.at(i, j));
  }

 private:
  KOKKOS_INLINE_FUNCTION Sum chain(Size i, Size j, Range terms) const {
    Sum sum = 0;
    for (Size outer = 0; outer < p.sums.outer; ++outer)
      for (Size t = terms.begin; t < terms.end(); ++t) {
        const Size k = outer * p.sums.run() + t;
        sum = Kokkos::fma(widened(*p.a.at(i, k), p.rounds), widened(*p.b.at(k, j), p.rounds), sum);
      }
    return sum;
  }
};

/// Multiplies on the threads of a host, in tiles of blocks of C.
template <class T, class C>
class InTiles {
 public:
  using Sum = StateOf<T>;
  static constexpr Size width = tile_columns<Sum>;

  InTiles(const FixedOrderProduct<T, C>& product, TileKernel<Sum> kernel,
          const ProductMemory<Sum>& memory)
      : p_(oriented(product)),
        kernel_(kernel),
        left_(memory.left.data()),
        right_(memory.right.data()),
        result_(memory.result.data()) {}

  void multiply() const {
    for (Size j = 0; j < p_.n; j += fixed_order_side)
      for (Size i = 0; i < p_.m; i += fixed_order_side)
        for (Size block = 0; block < p_.sums.own.count; ++block)
          multiply_block({i, std::min(fixed_order_side, p_.m - i)},
                         {j, std::min(fixed_order_side, p_.n - j)}, block);
  }

 private:
  /// Some terms of a block of the sums for a block of C, of which copies fit the scratch memory.
  struct Pass {
    Range rows, columns, terms;
    Size block;
    bool is_first, is_last;  ///< of the chains of the block
  };

  /// Returns the time of a product, in passes over a column: tiles compute whole vectors of
  /// columns, and copies of a B whose columns are not adjacent take long.
  static Size time_of(Size m, Size n, Size column) {
    return (n + width - 1) / width * width * (m + (column == 1 ? 2 : 16));
  }
  /// Returns the product or, if it is faster, its transpose.
  static FixedOrderProduct<T, C> oriented(const FixedOrderProduct<T, C>& p) {
    if (time_of(p.m, p.n, p.b.column) <= time_of(p.n, p.m, p.a.row)) return p;
    return {p.n,    p.m,      p.k,   p.b.transposed(), p.a.transposed(), p.c.transposed(),
            p.beta, p.rounds, p.sums};
  }

  void multiply_block(Range rows, Range columns, Size block) const {
    const Range of = p_.sums.terms(block);
    const Size of_run = (of.count + fixed_order_terms - 1) / fixed_order_terms,
               passes = std::max<Size>(1, p_.sums.outer * of_run);
    for (Size i = 0; i < passes; ++i) {
      Range terms{0, 0};
      if (p_.k > 0) {
        const Size before = i % of_run * fixed_order_terms;
        terms = {i / of_run * p_.sums.run() + of.begin + before,
                 std::min(fixed_order_terms, of.count - before)};
      }
      multiply({rows, columns, terms, block, i == 0, i + 1 == passes});
    }
  }

  void multiply(const Pass& pass) const {
    const InTiles self = *this;
    const Size terms = pass.terms.count, rows = pass.rows.count, columns = pass.columns.count,
               across = (columns + width - 1) / width, down = (rows + tile_rows - 1) / tile_rows;
    if (terms > 0 && !in_place(pass, across * width - width))
      for_each(
          "tessera::product_columns"_label, across,
          [=](Size j) { self.copy_columns(pass, j * width); }, terms * columns);
    if (converts())
      for_each(
          "tessera::product_rows"_label, p_.a.column == 1 ? rows : terms,
          [=](Size i) { self.copy_rows(pass, i); }, terms * rows);
    for_each(
        "tessera::product_tiles"_label, across * down,
        [=](Size tile) { self.multiply_tile(pass, tile, across, down); },
        terms * rows * columns / 8);
  }

  bool converts() const { return !std::is_same_v<T, Sum> || p_.rounds; }
  /// Returns true if kernels read these columns of B where they lie, because a copy takes longer.
  bool in_place(const Pass& pass, Size column) const {
    return !converts() && p_.b.column == 1 && pass.rows.count <= 2 * tile_rows &&
           column + width <= pass.columns.count;
  }

  /// Copies the columns of a tile, with zeros for those behind the last one.
  void copy_columns(const Pass& pass, Size column) const {
    if (in_place(pass, column)) return;
    const Size terms = pass.terms.count, count = std::min(width, pass.columns.count - column),
               row = p_.b.row, next = p_.b.column;
    const T* const from = p_.b.at(pass.terms.begin, pass.columns.begin + column);
    Sum* const to = right_ + column * terms;
    const bool rounds = p_.rounds;
    if (count < width) std::fill_n(to, terms * width, Sum(0));
    if (next == 1 && count == width) {
      for (Size t = 0; t < terms; ++t)
        for (Size j = 0; j < width; ++j) to[t * width + j] = widened(from[t * row + j], rounds);
      return;
    }
    constexpr Size lines = 16;  // of terms, which stay in the first cache
    for (Size begin = 0; begin < terms; begin += lines)
      for (Size j = 0; j < count; ++j)
        for (Size t = begin; t < std::min(begin + lines, terms); ++t)
          to[t * width + j] = widened(from[t * row + j * next], rounds);
  }
  /// Copies a row of A as it is stored.
  void copy_rows(const Pass& pass, Size i) const {
    const bool straight = p_.a.column == 1;
    const Size count = straight ? pass.terms.count : pass.rows.count;
    const T* const from =
        p_.a.at(pass.rows.begin, pass.terms.begin) + i * (straight ? p_.a.row : p_.a.column);
    Sum* const to = left_ + i * count;
    const bool rounds = p_.rounds;
    for (Size j = 0; j < count; ++j) to[j] = widened(from[j], rounds);
  }

  /// Adds the terms of a pass to a tile. Then joins its blocks and stores it, if they are complete.
  void multiply_tile(const Pass& pass, Size number, Size across, Size down) const {
    const Size column = number / down * width, row = number % down * tile_rows,
               terms = pass.terms.count, rows = std::min(tile_rows, pass.rows.count - row),
               columns = std::min(width, pass.columns.count - column);
    const auto node = [&](Size place) {
      const Size level = place == 0 ? tree_levels(p_.sums.own.count) : level_of_node(place);
      return result_ + (level * across * down + number) * tile_rows * width;
    };
    const bool straight = p_.a.column == 1;
    ChainTile<Sum> tile{left_,
                        straight ? terms : 1,
                        straight ? 1 : pass.rows.count,
                        right_ + column * terms,
                        width,
                        rows,
                        columns,
                        terms,
                        node(pass.block),
                        !pass.is_first};
    if constexpr (std::is_same_v<T, Sum>) {
      if (!p_.rounds)
        tile.a = p_.a.at(pass.rows.begin, pass.terms.begin), tile.a_row = p_.a.row,
        tile.a_term = p_.a.column;
      if (in_place(pass, column))
        tile.b = p_.b.at(pass.terms.begin, pass.columns.begin + column), tile.b_term = p_.b.row;
    }
    tile.a += row * tile.a_row;
    kernel_(tile);
    if (!pass.is_last) return;
    join_complete_nodes({pass.block, 1}, [&](Size to, Size from) {
      for (Size r = 0; r < rows; ++r)
        for (Size j = r * width; j < r * width + columns; ++j) node(to)[j] += node(from)[j];
    });
    if (pass.block + 1 < p_.sums.own.count) return;
    for (Size r = 0; r < rows; ++r)
      store_row(node(0) + r * width, columns,
                p_.c.at(pass.rows.begin + row + r, pass.columns.begin + column));
  }
  void store_row(const Sum* sums, Size columns, C* c) const {
    const Sum beta = p_.beta;
    const Size next = p_.c.column;
    if (next == 1)
      for (Size j = 0; j < columns; ++j) store_sum(sums[j], beta, c + j);
    else
      for (Size j = 0; j < columns; ++j) store_sum(sums[j], beta, c + j * next);
  }

  FixedOrderProduct<T, C> p_;
  TileKernel<Sum> kernel_;
  Sum *left_, *right_, *result_;
};

void check(bool is_right, const char* what) {
  if (!is_right) throw Error(ExitCode::usage, "gemm: {}", what);
}

}  // namespace

template <class T>
std::vector<TileKernel<T>> tile_kernels() {
  std::vector<TileKernel<T>> kernels;
#if defined(__x86_64__) && !defined(__CUDACC__)
  if (on_host && __builtin_cpu_supports("avx512f")) kernels.push_back(chain_avx512<T>);
  if (on_host && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(chain_avx2<T>);
#endif
  kernels.push_back(nullptr);
  return kernels;
}
template std::vector<TileKernel<float>> tile_kernels();
template std::vector<TileKernel<double>> tile_kernels();

template <class T, class C>
void multiply_in_order(const FixedOrderProduct<T, C>& product, TileKernel<StateOf<T>> kernel,
                       const ProductMemory<StateOf<T>>& memory) {
  FixedOrderProduct<T, C> p = product;
  if (p.sums.n == 0) p.sums = {.n = p.k};
  const Size own = p.sums.own.count;
  check(own == 0 || is_power_of_two(own), "the blocks of a sum are no power of two");
  check(p.k == p.sums.outer * p.sums.run(), "the sums are not those of the blocks");
  const Size elements = p.m * p.n;
  if constexpr (on_host)
    if (kernel != nullptr && own > 0 && elements > 0) {
      const MatmulScratch needs =
          fixed_order_scratch(p.m, p.n, p.k, !std::is_same_v<T, StateOf<T>> || p.rounds, own);
      check(needs.left <= static_cast<Size>(memory.left.extent(0)) &&
                needs.right <= static_cast<Size>(memory.right.extent(0)) &&
                needs.result <= static_cast<Size>(memory.result.extent(0)),
            "an operand needs more scratch memory");
      return InTiles<T, C>(p, kernel, memory).multiply();
    }
  for_each("tessera::product"_label, elements, OneElement<T, C>{p}, elements * p.k);
}

#define TESSERA_INSTANTIATE(T, C)                                                         \
  template void multiply_in_order(const FixedOrderProduct<T, C>&, TileKernel<StateOf<T>>, \
                                  const ProductMemory<StateOf<T>>&);
TESSERA_INSTANTIATE(float, float)
TESSERA_INSTANTIATE(double, double)
TESSERA_INSTANTIATE(BFloat16, BFloat16)
TESSERA_INSTANTIATE(BFloat16, float)
TESSERA_INSTANTIATE(Float16, Float16)
TESSERA_INSTANTIATE(Float16, float)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::detail
