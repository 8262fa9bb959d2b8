// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <type_traits>

#if defined(__x86_64__) && !defined(__CUDACC__)
#include <xmmintrin.h>
#endif

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

/// Sums of BFloat16 add the chains of the even and of the odd terms of so many terms.
constexpr Size amx_terms = 32;

KOKKOS_INLINE_FUNCTION float flushed(float x) {
  return Kokkos::abs(x) < FLT_MIN ? Kokkos::copysign(0.0f, x) : x;
}
/// Processors that flush round first, as if exponents had no limit: half a unit below FLT_MIN is
/// too small. For products of BFloat16, the sum in double tells.
KOKKOS_INLINE_FUNCTION float flushed_multiply_add(float a, float b, float sum) {
  const double exact = double(a) * double(b) + double(sum);
  return Kokkos::abs(exact) < FLT_MIN * (1 - 0x1p-25) ? Kokkos::copysign(0.0f, float(exact))
                                                      : Kokkos::fma(a, b, sum);
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
      Sum chains[2] = {0, 0};
      sum = 0;
      for (Size t = 0; t < terms.count; ++t) {
        const Sum a = widened(*p.a.at(i, terms.begin + t), p.rounds),
                  b = widened(*p.b.at(terms.begin + t, j), p.rounds);
        if constexpr (std::is_same_v<T, BFloat16>) {
          chains[t % 2] = flushed_multiply_add(flushed(a), flushed(b), chains[t % 2]);
          if ((t + 1) % amx_terms != 0 && t + 1 < terms.count) continue;
          sum = flushed(sum + flushed(chains[0] + chains[1]));
          chains[0] = chains[1] = 0;
        } else {
          sum = Kokkos::fma(a, b, sum);
        }
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
  if (work >= below && !ThreadShare::is_open())
    return Kokkos::parallel_for(label, range_policy(ExecSpace(), n), f);
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
    Size done = 0;
    do {
      const Range terms{of.begin + done, std::min(fixed_order_terms, of.count - done)};
      const bool is_first = done == 0;
      done += terms.count;
      multiply({rows, columns, terms, block, is_first, done == of.count});
    } while (done < of.count);
  }

  void multiply(const Pass& pass) const {
    const Size rows = pass.rows.count, columns = pass.columns.count, terms = pass.terms.count,
               across = (columns + width - 1) / width,
               down = (rows + kernels_.rows - 1) / kernels_.rows;
    for_parts("tessera::product_columns"_label, across, terms * columns,
              [&](Size j) { copy_columns(pass, j * width); });
    if (kernels_.takes_pairs)
      for_parts("tessera::product_rows"_label, down, terms * rows, [&](Size i) {
        if constexpr (std::is_same_v<T, BFloat16>) pack_rows(pass, i * kernels_.rows);
      });
    else if (converts())
      for_parts("tessera::product_rows"_label, p_.a.column == 1 ? rows : terms, terms * rows,
                [&](Size i) { copy_row(pass, i); });
    for_parts("tessera::product_tiles"_label, across * down, terms * rows * columns / 64,
              [&](Size tile) { multiply_tile(pass, tile, across, down); });
  }

  /// Returns the terms of kernels.
  Size packed(Size terms) const {
    return kernels_.takes_pairs ? (terms + amx_terms - 1) / amx_terms * (amx_terms / 2) : terms;
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
    Sum* const to = right_ + column * packed(terms);
    if constexpr (std::is_same_v<T, BFloat16>)
      if (kernels_.takes_pairs) return pack(from, row, next, count, terms, T(0.0f), to);
    if (count < width) std::fill_n(to, terms * width, Sum(0));
    if constexpr (std::is_same_v<T, Sum>)
      if (row == 1 && !p_.rounds)
        return kernels_.transpose(from, next * Size(sizeof(T)), count, terms, to, width);
    copy_panel(from, row, next, count, terms, to,
               [rounds = p_.rounds](const T* x) { return widened(*x, rounds); });
  }
  /// Copies f(element) of `count` columns.
  template <class F>
  static void copy_panel(const T* from, Size row, Size next, Size count, Size rows, Sum* to, F f) {
    const auto copy = [=](Size columns, Size distance) {
      for (Size t = 0; t < rows; ++t)
        for (Size j = 0; j < columns; ++j) to[t * width + j] = f(from + t * row + j * distance);
    };
    next == 1 && count == width ? copy(width, 1) : copy(count, next);
  }
  /// Copies pairs of terms of the columns of a tile, and `end` behind the last term.
  void pack(const T* from, Size row, Size next, Size count, Size terms, T end, Sum* to) const {
    const auto pair = [](T even, T odd) {
      return float_of_bits(bits_of_float(even) >> 16 | (bits_of_float(odd) & 0xffff0000u));
    };
    if (count < width || terms % amx_terms != 0)
      std::fill_n(to, packed(terms) * width, pair(end, end));
    if (row == 1)
      kernels_.transpose(reinterpret_cast<const Sum*>(from), next * Size(sizeof(T)), count,
                         terms / 2, to, width);
    else
      copy_panel(from, 2 * row, next, count, terms / 2, to,
                 [=](const T* x) { return pair(x[0], x[row]); });
    copy_panel(from + (terms - 1) * row, row, next, count, terms % 2, to + terms / 2 * width,
               [=](const T* x) { return pair(*x, end); });
  }
  /// Copies pairs of terms of the rows of a tile, and behind the last term -0: a product with 0 is
  /// then -0, which changes no chain.
  void pack_rows(const Pass& pass, Size row) const {
    const Size terms = pass.terms.count, pairs = packed(terms),
               count = std::min(kernels_.rows, pass.rows.count - row);
    const T* const from = p_.a.at(pass.rows.begin + row, pass.terms.begin);
    Sum* const to = left_ + row * pairs;
    if (p_.a.column != 1) {
      Sum panel[fixed_order_terms / 2 * width];
      pack(from, p_.a.column, p_.a.row, count, terms, T(-0.0f), panel);
      return kernels_.transpose(panel, width * Size(sizeof(Sum)), pairs, count, to, pairs);
    }
    for (Size i = 0; i < count; ++i) {
      T* const end = std::copy_n(from + i * p_.a.row, terms, reinterpret_cast<T*>(to + i * pairs));
      std::fill_n(end, 2 * pairs - terms, T(-0.0f));
    }
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
    const Size column = number / down * width, row = number % down * kernels_.rows,
               terms = packed(pass.terms.count),
               rows = std::min(kernels_.rows, pass.rows.count - row),
               columns = std::min(width, pass.columns.count - column);
    const auto node = [&](Size row) {
      return result_ + (row * across * down + number) * kernels_.rows * width;
    };
    // A tile that one pass completes stays in the first cache.
    Sum whole[most_tile_rows * width];
    const bool in_one_pass = pass.is_first && pass.is_last && p_.sums.own.count == 1;
    const bool straight = p_.a.column == 1 || kernels_.takes_pairs;
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
    add_terms(tile);
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

  void add_terms(const ChainTile<Sum>& tile) const {
    if (!std::is_same_v<T, BFloat16> || kernels_.takes_pairs) return kernels_.multiply(tile);
#if defined(__x86_64__) && !defined(__CUDACC__)
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040u);  // subnormal operands and results are zeros
    Sum chains[2][tile_rows * width];
    if (!tile.continues) std::fill_n(tile.sums, tile.rows * width, Sum(0));
    for (Size t = 0; t < tile.terms; t += amx_terms) {
      for (const Size odd : {0, 1}) {
        ChainTile<Sum> half = tile;
        half.a += (t + odd) * tile.a_term, half.a_term *= 2;
        half.b += (t + odd) * tile.b_term, half.b_term *= 2;
        half.terms = (std::min(amx_terms, tile.terms - t) + 1 - odd) / 2;
        half.sums = chains[odd], half.continues = false;
        kernels_.multiply(half);
      }
      for (Size r = 0; r < tile.rows; ++r)
        for (Size j = r * width; j < r * width + tile.columns; ++j)
          tile.sums[j] += chains[0][j] + chains[1][j];
    }
    _mm_setcsr(mode);
#endif
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
std::vector<ChainKernels<StateOf<T>>> chain_kernels() {
  using Sum = StateOf<T>;
  std::vector<ChainKernels<Sum>> kernels;
#if defined(__x86_64__) && !defined(__CUDACC__)
  const bool has_avx512 = on_host && __builtin_cpu_supports("avx512f");
  if constexpr (std::is_same_v<T, BFloat16>)
    if (has_avx512 && has_amx()) kernels.push_back(amx_kernels());
  if (has_avx512) kernels.push_back(avx512_kernels<Sum>());
  if (on_host && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(avx2_kernels<Sum>());
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
  check(p.k == p.sums.terms(), "the sums are not those of the blocks");
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
template std::vector<ChainKernels<float>> chain_kernels<float>();
template std::vector<ChainKernels<double>> chain_kernels<double>();
template std::vector<ChainKernels<float>> chain_kernels<BFloat16>();
template std::vector<ChainKernels<float>> chain_kernels<Float16>();

}  // namespace tessera::detail
