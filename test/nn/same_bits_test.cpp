// SPDX-License-Identifier: Apache-2.0
// The bits of a result depend neither on where it lies in an array nor on strides.
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/products/fixed_order.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/nn/rows.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_host;

template <class T>
Vector<T> normal_vector(Size n) {
  const Vector<T> v("v", static_cast<std::size_t>(n));
  fill_normal(Matrix<T>(v.data(), 1, n), key(3));
  return v;
}

/// Computes out[j] = f(in[j]) over the lanes of a row, as layers do, and asks for elements `ahead`.
template <class T, class F>
struct ApplyToRow {
  const T* in;
  T* out;
  Size n, ahead;
  F f;

  KOKKOS_INLINE_FUNCTION void operator()(const Row& row) const {
    const T* const from = in;
    T* const to = out;
    const F each = f;
    Row{row.number, ahead, row.team}.for_each(
        n, [=](Size j) { to[j] = each(from[j]); }, from);
  }
};

template <class T, class F>
void apply(const Vector<T>& x, const Vector<T>& y, const F& f, Size ahead = 0) {
  const Size n = static_cast<Size>(x.extent(0));
  for_rows("apply", 1, n, ApplyToRow<T, F>{x.data(), y.data(), n, ahead, f});
}

// nvcc allows no lambdas for kernels in tests.
template <Activation a>
struct ValueOf {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T z) const {
    return detail::value_of<a>(z);
  }
};
template <Activation a>
struct SlopeOf {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T z) const {
    return z * detail::slope_of<a>(z) + z;
  }
};
struct Exponential {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T z) const {
    return detail::exp_of_nonpositive(-z * z);
  }
};
struct InverseRoot {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T z) const {
    using std::sqrt;
    return T(1) / sqrt(z * z + T(1e-5));
  }
};

template <class T, class F>
void expect_any_place(const char* name, const F& f) {
  constexpr Size most = 48;
  const Vector<T> x = normal_vector<T>(most), y("y", most);
  std::vector<T> alone(most);
  for (Size i = 0; i < most; ++i) {
    apply<T>(alias_vector(x.data() + i, 1), alias_vector(y.data() + i, 1), f);
    alone[static_cast<std::size_t>(i)] = to_host(y)[static_cast<std::size_t>(i)];
  }
  for (Size begin = 0; begin < 17; ++begin)
    for (Size n = 0; begin + n <= most; ++n) {
      apply<T>(alias_vector(x.data() + begin, n), alias_vector(y.data() + begin, n), f);
      ASSERT_EQ(std::memcmp(to_host(y).data() + begin, alone.data() + begin, n * sizeof(T)), 0)
          << name << ": " << n << " elements from " << begin;
    }
}

template <class T>
class SameBits : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(SameBits, Scalars);

TYPED_TEST(SameBits, FunctionsAtAnyPlaceOfAnArray) {
  using T = TypeParam;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (
        [&] {
          constexpr auto a = Activation(I);
          expect_any_place<T>(name_of(a).data(), ValueOf<a>{});
          expect_any_place<T>(name_of(a).data(), SlopeOf<a>{});
        }(),
        ...);
  }
  (std::make_index_sequence<names_of<Activation>.size()>());
  expect_any_place<T>("exp", Exponential{});
  expect_any_place<T>("1/sqrt", InverseRoot{});
}

TYPED_TEST(SameBits, LoopsThatAskForElementsAhead) {
  using T = TypeParam;
  for (const Size n : {0, 1, 127, 128, 129, 1000}) {
    const Vector<T> x = normal_vector<T>(n), y("y", n), expected("expected", n);
    apply<T>(x, expected, Exponential{});
    apply<T>(x, y, Exponential{}, 512);
    EXPECT_EQ(to_host(y), to_host(expected)) << n;
  }
  // Only matrices beyond the second cache: the next rows, or the same columns of rows ahead.
  EXPECT_EQ(elements_ahead(1000, 10, 10), 0);
  if (!on_host) return;
  EXPECT_EQ(elements_ahead(1 << 20, 2048, 2048), 512);
  EXPECT_EQ(elements_ahead(1 << 20, 2048, 1024), 2048);
  EXPECT_EQ(elements_ahead(1 << 20, 2048, 100), 6 * 2048);
}

/// An operand of normal numbers, or of some of `numbers`, with `gap` unused columns before and
/// behind it.
template <class T>
Matrix<T> wide(Trans trans, Size rows, Size cols, Size seed, Size gap,
               const std::vector<float>& numbers) {
  if (trans == Trans::yes) std::swap(rows, cols);
  std::vector<T> chosen(numbers.empty() ? 0 : static_cast<std::size_t>(rows * cols));
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (T& number : chosen) number = static_cast<T>(numbers[random() / 8 % numbers.size()]);
  const Matrix<T> values = numbers.empty() ? test::normal_matrix<T>(rows, cols, seed)
                                           : test::to_device(chosen, rows, cols),
                  block = block_of(Matrix<T>("room", rows, cols + 2 * gap), {0, rows}, {gap, cols});
  Kokkos::deep_copy(block, values);
  return block;
}

template <class T>
detail::ProductOperand<T> operand(Trans trans, const Matrix<T>& of) {
  const detail::ProductOperand<T> straight{of.data(), static_cast<Size>(of.stride_0()), 1};
  return trans == Trans::no ? straight : straight.transposed();
}

float flushed(float x) { return std::abs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

/// Sums of BFloat16: the chains of the even and of the odd terms of each 32, as AMX adds.
template <class T, class C>
float sum_of_pairs(const detail::FixedOrderProduct<T, C>& p, Size i, Size j, Range of) {
  float sum = 0;
  for (Size begin = of.begin; begin < of.end(); begin += 32) {
    std::array<float, 2> chain{};
    for (Size k = begin; k < std::min(begin + 32, of.end()); ++k) {
      const float a = flushed(*p.a.at(i, k)), b = flushed(*p.b.at(k, j));
      float& to = chain[(k - begin) % 2];
      // Flushed if it is below FLT_MIN when rounded to 24 bits, not to those of a subnormal number.
      const double sum_of_two = double(a) * double(b) + double(to);
      to = std::abs(sum_of_two) < FLT_MIN * (1 - 0x1p-25)
               ? static_cast<float>(std::copysign(0, sum_of_two))
               : std::fma(a, b, to);
    }
    sum = flushed(sum + flushed(chain[0] + chain[1]));
  }
  return sum;
}

/// The definition: a sum over the terms of each block; sums are added neighbours first.
template <class T, class C>
C element(const detail::FixedOrderProduct<T, C>& p, Size i, Size j) {
  using Sum = StateOf<T>;
  std::vector<Sum> sums;
  for (Size block = 0; block < p.sums.own.count; ++block) {
    const Range of = p.sums.terms(block);
    Sum sum = 0;
    if constexpr (std::is_same_v<T, BFloat16>)
      sum = sum_of_pairs(p, i, j, of);
    else
      for (Size k = of.begin; k < of.end(); ++k)
        sum = std::fma(static_cast<Sum>(*p.a.at(i, k)), static_cast<Sum>(*p.b.at(k, j)), sum);
    sums.push_back(sum);
  }
  for (std::size_t all = sums.size(); all > 1; all /= 2)
    for (std::size_t s = 0; s < all / 2; ++s) sums[s] = sums[2 * s] + sums[2 * s + 1];
  return static_cast<C>(p.beta == 0 ? sums[0] : sums[0] + static_cast<Sum>(*p.c.at(i, j)));
}

/// Checks the product of every kernel of this processor.
template <class T, class C>
void expect_chains(Trans ta, Trans tb, Size m, Size n, Size k, Size gap, bool adds, SumBlocks sums,
                   const std::vector<float>& numbers = {}) {
  using Sum = StateOf<T>;
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " " << static_cast<char>(ta)
                                  << static_cast<char>(tb) << ", gap " << gap);
  const Matrix<T> a = wide<T>(ta, m, k, 1, gap, numbers), b = wide<T>(tb, k, n, 2, gap, numbers);
  const MatmulScratch needs = fixed_order_scratch(m, n, k, is_half_v<T>, sums.own.count);
  const Vector<Sum> left("left", needs.left), right("right", needs.right),
      tiles("tiles", needs.result);
  if (sums.n == 0) sums = {.n = k};
  std::vector<C> expected;
  for (const auto& kernels : detail::chain_kernels<T>()) {
    const Matrix<C> c = wide<C>(Trans::no, m, n, 3, gap, {}), result("result", m, n);
    const detail::FixedOrderProduct<T, C> product{m,
                                                  n,
                                                  k,
                                                  operand<const T>(ta, a),
                                                  operand<const T>(tb, b),
                                                  operand(Trans::no, c),
                                                  adds ? Sum(1) : Sum(0),
                                                  false,
                                                  sums};
    if (expected.empty() && on_host)
      for (Size i = 0; i < m; ++i)
        for (Size j = 0; j < n; ++j) expected.push_back(element(product, i, j));
    detail::multiply_in_order(product, kernels, left, right, tiles);
    Kokkos::deep_copy(result, c);
    if (expected.empty()) expected = to_host(result);
    const std::vector<C> found = to_host(result);
    for (std::size_t e = 0; e < expected.size(); ++e)
      ASSERT_TRUE((std::isnan(Sum(found[e])) && std::isnan(Sum(expected[e]))) ||
                  std::memcmp(&found[e], &expected[e], sizeof(C)) == 0)
          << "element " << e << ": " << Sum(found[e]) << ", not " << Sum(expected[e]);
  }
}

template <class T>
class SameProducts : public testing::Test {};
using AllTypes = testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(SameProducts, AllTypes);

/// With any strides, shapes, threads and instructions, and in blocks of operands or at once.
TYPED_TEST(SameProducts, AreSumsInAscendingOrder) {
  using T = TypeParam;
  std::vector<std::array<Size, 3>> shapes{{40, 65, 300}, {2, 500, 300}, {500, 7, 3}, {0, 3, 3}};
  for (const Size m : {1, 4, 13, 40})
    for (const Size n : {1, 3, 16, 33})
      for (const Size k : {0, 1, 31, 32, 33, 95}) shapes.push_back({m, n, k});
  for (const auto& [m, n, k] : shapes)
    for (const Trans ta : {Trans::no, Trans::yes})
      for (const Trans tb : {Trans::no, Trans::yes}) {
        expect_chains<T, T>(ta, tb, m, n, k, 3, true, {});
        expect_chains<T, StateOf<T>>(ta, tb, m, n, k, 0, false, {});
      }
}

/// Subnormal operands, products and sums; huge ones, which cancel; zeros of both signs; NaN.
TYPED_TEST(SameProducts, OfNumbersThatAreNotNormal) {
  using T = TypeParam;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& numbers : std::vector<std::vector<float>>{
           {0x1p-75f, -0x1p-75f, 0x1p-126f, -0x1p-126f, 0x1p-130f, 1, -0.0f, 0x1.8p-63f},
           {0x1p-63f, -0x1p-63f, 0x1.04p-63f, -0x1.04p-63f, 0x1p-75f},
           {0x1p100f, -0x1p100f, 0x1p27f, 1, -1, 0},
           {0.0f, -0.0f, 1, -1},
           {infinity, NAN, 0, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}})
    for (const Size k : {1, 2, 33, 95})
      for (const Trans t : {Trans::no, Trans::yes})
        expect_chains<T, StateOf<T>>(t, t, 30, 40, k, 0, false, {}, numbers);
}

/// The tree of the blocks that ranks share.
TYPED_TEST(SameProducts, AddBlocksInATree) {
  using T = TypeParam;
  for (const Size m : {6, 50})
    for (const Trans tb : {Trans::no, Trans::yes}) {
      expect_chains<T, T>(Trans::no, tb, m, 35, 22, 1, true, {.n = 22, .blocks = 8, .own = {0, 8}});
      expect_chains<T, T>(Trans::no, tb, m, 35, 11, 1, false,
                          {.n = 22, .blocks = 8, .own = {4, 4}});
      expect_chains<T, T>(Trans::yes, tb, m, 35, 1801, 1, true,
                          {.n = 1801, .blocks = 2, .own = {0, 2}});
    }
}

/// Returns the product of the rows `of` of x^T and of y.
template <class T>
std::vector<T> gradient(const Matrix<T>& x, const Matrix<T>& y, Range of, const SumBlocks& sums) {
  const Size m = x.extent(1), n = y.extent(1);
  const Gemm<T> gemm(MatmulPrecision::strict,
                     fixed_order_scratch(m, n, of.count, false, sums.own.count),
                     HalfProducts::emulated, true);
  const Matrix<T> c("c", m, n);
  gemm(Trans::yes, Trans::no, rows_of(x, of), rows_of(y, of), 0, c, sums);
  return to_host(c);
}

/// The blocks of a whole product are those of its parts, which ranks would compute: also of one
/// without a block. Another order gives other bits.
TYPED_TEST(SameBits, ProductsInBlocksAreSumsOfThoseOfRanks) {
  using T = TypeParam;
  constexpr Size n = 22, blocks = 4;
  const Matrix<T> x = test::normal_matrix<T>(n, 6, 1), y = test::normal_matrix<T>(n, 5, 2);
  const std::vector<T> whole = gradient(x, y, {0, n}, {n, blocks, {0, blocks}});
  std::vector<T> sum;
  for (Size rank = 0; rank < 2; ++rank) {
    const std::vector<T> of_rank =
        gradient(x, y, nested_split(n, 2, rank), {n, blocks, {2 * rank, 2}});
    if (rank == 0) sum = of_rank;
    for (std::size_t i = 0; rank > 0 && i < sum.size(); ++i) sum[i] += of_rank[i];
  }
  const std::vector<T> none = gradient(x, y, {0, 0}, {n, blocks, {2, 0}});
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_TRUE(std::signbit(none[i]));
    sum[i] += none[i];
  }
  EXPECT_EQ(sum, whole);
  EXPECT_NE(gradient(x, y, {0, n}, {}), whole);
  EXPECT_NE(gradient(x, y, {0, n}, {n, 8, {0, 8}}), whole);
  EXPECT_THROW(gradient(x, y, {0, n - 1}, {n, blocks, {0, blocks}}), Error);
}

/// Returns some columns of a matrix in memory of their own.
template <class T>
Matrix<T> columns_of(const Matrix<T>& all, Range columns) {
  const Matrix<T> copy("columns", all.extent(0), columns.count);
  Kokkos::deep_copy(copy, block_of(all, {0, static_cast<Size>(all.extent(0))}, columns));
  return copy;
}

template <class T>
struct CrossEntropyResult {
  std::vector<double> sum;
  Matrix<T> gradient;
};

/// The loss of logits whose first class is `first`, from the terms of all blocks of columns.
template <class T>
CrossEntropyResult<T> cross_entropy(const Matrix<T>& logits, const Matrix<T>& target, Size first,
                                    Size classes, const Matrix<T>& terms) {
  const Vector<double> sum("sum", 1);
  const Matrix<T> gradient("gradient", logits.extent(0), logits.extent(1));
  loss_and_gradient<T>(LossKind::cross_entropy, logits, target, logits.extent(0), sum, gradient,
                       {.first_class = first, .classes = classes, .terms = terms});
  return {to_host(sum), gradient};
}

/// Ranks along `model` have parts of the columns of logits, but compute the loss of one rank.
TYPED_TEST(SameBits, LossesOfSplitColumns) {
  using T = TypeParam;
  constexpr Size blocks = 4;
  for (const Size classes : {3, 11, 16, 257, 1000})
    for (const Size rows : {1, 63, 2000}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << classes << " classes");
      const Matrix<T> logits = test::normal_matrix<T>(rows, classes, 1);
      std::vector<T> numbers;
      for (Size i = 0; i < rows; ++i) numbers.push_back(static_cast<T>(7 * i % classes));
      const Matrix<T> target = test::to_device(numbers, rows, 1);
      const Matrix<T> terms("terms", rows, 3 * blocks), joined("joined", rows, 3 * blocks);
      cross_entropy_terms<T>(logits, target, 0, {{classes, 1, 1, false, blocks}}, terms);
      const auto whole = cross_entropy(logits, target, 0, classes, terms);
      for (const Size ranks : {2, 3, 4, 7}) {
        const Split split{classes, ranks, 1, false, blocks};
        for (Size rank = 0; rank < ranks; ++rank) {
          const Range own = split.place(rank),
                      place = Split{blocks, ranks, 3, false, blocks}.place(rank);
          const Matrix<T> of_rank("terms", rows, place.count);
          cross_entropy_terms<T>(columns_of(logits, own), target, own.begin, {split, rank},
                                 of_rank);
          Kokkos::deep_copy(block_of(joined, {0, rows}, place), of_rank);
        }
        ASSERT_EQ(to_host(joined), to_host(terms));
        for (Size rank = 0; rank < ranks; ++rank) {
          const Range own = split.place(rank);
          const auto part =
              cross_entropy(columns_of(logits, own), target, own.begin, classes, terms);
          ASSERT_EQ(part.sum, whole.sum) << "rank " << rank << " of " << ranks;
          ASSERT_EQ(to_host(part.gradient), to_host(columns_of(whole.gradient, own)));
        }
      }
    }
}

template <class T>
void expect_minus_zeros() {
  const Vector<T> v = normal_vector<T>(5);
  set_minus_zero(v);
  for (const T value : to_host(v))
    EXPECT_TRUE(value == 0 && std::signbit(static_cast<float>(value)));
}

// Sums of ranks or blocks that have no terms: adding +0 would turn -0 into +0.
TEST(SameBits, AbsentSumsAreMinusZero) {
  expect_minus_zeros<float>();
  expect_minus_zeros<double>();
}

/// Products whose last bits a sum would keep if it were fused with them.
struct MultiplyThenAdd {
  const float* in;
  float* out;
  KOKKOS_FUNCTION void operator()(Size i) const { out[i] = in[i] * in[i] - (1 + 0x1p-11F); }
};

TEST(SameBits, CompilersFuseNoProductsAndSums) {
  constexpr Size n = 37;
  const Vector<float> in("in", n), out("out", n);
  Kokkos::deep_copy(in, 1 + 0x1p-12F);
  for_each("test::multiply_then_add"_label, n, MultiplyThenAdd{in.data(), out.data()});
  EXPECT_EQ(to_host(out), std::vector<float>(n, 0));
}

}  // namespace
}  // namespace tessera
