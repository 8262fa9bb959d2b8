// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/products/fixed_order.hpp>

namespace tessera::detail {
namespace {

/// c = sum + beta c
template <class C, class Sum>
KOKKOS_FORCEINLINE_FUNCTION void store_sum(Sum sum, Sum beta, C& c) {
  c = static_cast<C>(beta == 0 ? sum : sum + beta * static_cast<Sum>(c));
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
      const Range terms = p.sums.terms(block);
      sum = 0;
      for (Size t = 0; t < p.sums.outer * terms.count; ++t) {
        const Size k = t / terms.count * p.sums.run() + terms.begin + t % terms.count;
        sum = Kokkos::fma(widened(*p.a.at(i, k), p.rounds), widened(*p.b.at(k, j), p.rounds), sum);
      }
      Size level = 0;
      for (; (block >> level & 1) != 0; ++level) sum = nodes[level] + sum;
      nodes[level] = sum;
    }
    store_sum(sum, p.beta, *p.c.at(i, j));
  }
};

/// Calls f(i) for i in [0, n). Launches no kernel if threads would not help: that takes longer than
/// a small product.
template <class F>
void for_parts(const std::string& label, Size n, Size work, const F& f) {
  static const Size below = serial_below();
  if (work >= below) return Kokkos::parallel_for(label, range_policy(ExecSpace(), n), f);
  for (Size i = 0; i < n; ++i) f(i);
}

/// Multiplies on the threads of a host, in tiles of blocks of C.
template <class T, class C>
class InTiles {
 public:
  using Sum = StateOf<T>;
  static constexpr Size width = tile_columns<Sum>;

  InTiles(const FixedOrderProduct<T, C>& product, const ChainKernels<Sum>& kernels, Sum* left,
          Sum* right, Sum* result)
      : p_(oriented(product)), kernels_(kernels), left_(left), right_(right), result_(result) {}

  void multiply() const {
    constexpr Size side = fixed_order_side;
    for (Size j = 0; j < p_.n; j += side)
      for (Size i = 0; i < p_.m; i += side)
        for (Size block = 0; block < p_.sums.own.count; ++block)
          multiply_block({i, std::min(side, p_.m - i)}, {j, std::min(side, p_.n - j)}, block);
  }

 private:
  /// Some terms of a block of the sums for a block of C, of which copies fit the scratch memory.
  struct Pass {
    Range rows, columns, terms;
    Size block;
    bool is_first, is_last;  ///< of the chains of the block
  };

  /// Returns the time of a product in some unit: tiles have whole vectors of columns, and columns
  /// that are not adjacent take time where B is copied and C is stored.
  static Size time_of(const FixedOrderProduct<T, C>& p) {
    constexpr Size vector = width / 2;
    const Size columns = (p.n + vector - 1) / vector * vector;
    return columns * p.k * (p.m + (p.b.column == 1 ? 2 : 8)) +
           p.m * p.n * (p.c.column == 1 ? 4 : 64);
  }
  /// Returns the product or, if it is faster, its transpose.
  static FixedOrderProduct<T, C> oriented(const FixedOrderProduct<T, C>& p) {
    const FixedOrderProduct<T, C> other{
        p.n,    p.m,      p.k,   p.b.transposed(), p.a.transposed(), p.c.transposed(),
        p.beta, p.rounds, p.sums};
    return time_of(other) < time_of(p) ? other : p;
  }

  void multiply_block(Range rows, Range columns, Size block) const {
    const Range of = p_.sums.terms(block);
    const Size in_run = (of.count + fixed_order_terms - 1) / fixed_order_terms,
               passes = p_.sums.outer * in_run;
    if (passes == 0) multiply({rows, columns, {0, 0}, block, true, true});
    for (Size i = 0; i < passes; ++i) {
      const Size before = i % in_run * fixed_order_terms;
      const Range terms{i / in_run * p_.sums.run() + of.begin + before,
                        std::min(fixed_order_terms, of.count - before)};
      multiply({rows, columns, terms, block, i == 0, i + 1 == passes});
    }
  }

  void multiply(const Pass& pass) const {
    const Size rows = pass.rows.count, columns = pass.columns.count, terms = pass.terms.count,
               across = (columns + width - 1) / width, down = (rows + tile_rows - 1) / tile_rows;
    for_parts("tessera::product_columns"_label, across, terms * columns,
              [&](Size j) { copy_columns(pass, j * width); });
    if (converts())
      for_parts("tessera::product_rows"_label, p_.a.column == 1 ? rows : terms, terms * rows,
                [&](Size i) { copy_row(pass, i); });
    for_parts("tessera::product_tiles"_label, across * down, terms * rows * columns / 64,
              [&](Size tile) { multiply_tile(pass, tile, across, down); });
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
    if constexpr (std::is_same_v<T, Sum>)
      if (row == 1 && !rounds) return kernels_.transpose(from, next, count, terms, to);
    const auto copy = [=](Size columns_of, Size distance) {
      for (Size t = 0; t < terms; ++t)
        for (Size j = 0; j < columns_of; ++j)
          to[t * width + j] = widened(from[t * row + j * distance], rounds);
    };
    if (next == 1 && count == width) return copy(width, 1);
    copy(count, next);
  }
  /// Copies a row of A as it is stored.
  void copy_row(const Pass& pass, Size i) const {
    const bool straight = p_.a.column == 1;
    const Size count = straight ? pass.terms.count : pass.rows.count;
    const T* const from =
        p_.a.at(pass.rows.begin, pass.terms.begin) + i * (straight ? p_.a.row : p_.a.column);
    for (Size j = 0; j < count; ++j) left_[i * count + j] = widened(from[j], p_.rounds);
  }

  /// Adds the terms of a pass to a tile. Then joins its blocks and stores it, if they are complete.
  void multiply_tile(const Pass& pass, Size number, Size across, Size down) const {
    const Size column = number / down * width, row = number % down * tile_rows,
               terms = pass.terms.count, rows = std::min(tile_rows, pass.rows.count - row),
               columns = std::min(width, pass.columns.count - column);
    const auto node = [&](Size row) {
      return result_ + (row * across * down + number) * tile_rows * width;
    };
    // A tile that one pass completes stays in the first cache.
    Sum whole[tile_rows * width];
    const bool in_one_pass = pass.is_first && pass.is_last && p_.sums.own.count == 1;
    const bool straight = p_.a.column == 1;
    ChainTile<Sum> tile{left_,
                        straight ? terms : 1,
                        straight ? 1 : pass.rows.count,
                        right_ + column * terms,
                        width,
                        rows,
                        columns,
                        terms,
                        in_one_pass ? whole : node(nodes_in({0, pass.block})),
                        !pass.is_first};
    if constexpr (std::is_same_v<T, Sum>) {
      if (!p_.rounds)
        tile.a = p_.a.at(pass.rows.begin, pass.terms.begin), tile.a_row = p_.a.row,
        tile.a_term = p_.a.column;
      if (in_place(pass, column))
        tile.b = p_.b.at(pass.terms.begin, pass.columns.begin + column), tile.b_term = p_.b.row;
    }
    tile.a += row * tile.a_row;
    kernels_.multiply(tile);
    if (!pass.is_last) return;
    join_rows(0, {pass.block, 1}, [&](Size lower, Size upper) {
      for (Size r = 0; r < rows; ++r)
        for (Size j = r * width; j < r * width + columns; ++j) node(lower)[j] += node(upper)[j];
    });
    if (pass.block + 1 < p_.sums.own.count) return;
    const Sum* const sums = in_one_pass ? whole : node(0);
    const Sum beta = p_.beta;
    for (Size r = 0; r < rows; ++r) {
      C* const c = p_.c.at(pass.rows.begin + row + r, pass.columns.begin + column);
      const auto store = [=](Size next) {
        for (Size j = 0; j < columns; ++j) store_sum(sums[r * width + j], beta, c[j * next]);
      };
      p_.c.column == 1 ? store(1) : store(p_.c.column);
    }
  }

  FixedOrderProduct<T, C> p_;
  ChainKernels<Sum> kernels_;
  Sum *left_, *right_, *result_;
};

void check(bool is_right, const char* what) {
  if (!is_right) throw Error(ExitCode::usage, "gemm: {}", what);
}

}  // namespace

template <class T>
std::vector<ChainKernels<T>> chain_kernels() {
  std::vector<ChainKernels<T>> kernels;
#if defined(__x86_64__) && !defined(__CUDACC__)
  if (on_host && __builtin_cpu_supports("avx512f")) kernels.push_back(avx512_kernels<T>());
  if (on_host && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(avx2_kernels<T>());
#endif
  kernels.push_back({});
  return kernels;
}

template <class T, class C>
void multiply_in_order(const FixedOrderProduct<T, C>& product,
                       const ChainKernels<StateOf<T>>& kernels, const Vector<StateOf<T>>& left,
                       const Vector<StateOf<T>>& right, const Vector<StateOf<T>>& result) {
  FixedOrderProduct<T, C> p = product;
  if (p.sums.n == 0) p.sums = {.n = p.k};
  const Size own = p.sums.own.count, elements = p.m * p.n;
  check(own == 0 || is_power_of_two(own), "the blocks of a sum are no power of two");
  check(p.k == p.sums.outer * p.sums.run(), "the sums are not those of the blocks");
  if (elements == 0) return;
  if constexpr (on_host)
    if (kernels.multiply != nullptr && own > 0) {
      const MatmulScratch needs =
          fixed_order_scratch(p.m, p.n, p.k, !std::is_same_v<T, StateOf<T>> || p.rounds, own);
      const auto fits = [](Size n, const auto& v) { return n <= static_cast<Size>(v.extent(0)); };
      check(fits(needs.left, left) && fits(needs.right, right) && fits(needs.result, result),
            "an operand needs more scratch memory");
      return InTiles<T, C>(p, kernels, left.data(), right.data(), result.data()).multiply();
    }
  for_each("tessera::product"_label, elements, OneElement<T, C>{p}, elements * p.k);
}

#define TESSERA_INSTANTIATE(T, C)                                                                  \
  template void multiply_in_order(const FixedOrderProduct<T, C>&, const ChainKernels<StateOf<T>>&, \
                                  const Vector<StateOf<T>>&, const Vector<StateOf<T>>&,            \
                                  const Vector<StateOf<T>>&);
TESSERA_FOR_PRODUCT_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE
template std::vector<ChainKernels<float>> chain_kernels();
template std::vector<ChainKernels<double>> chain_kernels();

}  // namespace tessera::detail
