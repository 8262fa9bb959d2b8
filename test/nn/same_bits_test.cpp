// SPDX-License-Identifier: Apache-2.0
// The bits of a result depend neither on where it lies in an array nor on strides.
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/loss.hpp>
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

/// Returns the product of blocks of matrices with `gap` unused columns before and behind them.
template <class T>
std::vector<T> product(Trans ta, Trans tb, Size m, Size n, Size k, Size gap,
                       const ProductBlocks& blocks) {
  const auto wide = [&](Trans trans, Size rows, Size cols, Size seed) {
    if (trans == Trans::yes) std::swap(rows, cols);
    const Matrix<T> values("values", rows, cols), room("room", rows, cols + 2 * gap);
    fill_normal(values, key(seed));
    const Matrix<T> block = block_of(room, {0, rows}, {gap, cols});
    Kokkos::deep_copy(block, values);
    return Matrix<const T>(block);
  };
  const Gemm<T> gemm(MatmulPrecision::strict, {.nodes = 4 * m * n}, half_products(dtype_of<T>()),
                     true);
  const Matrix<T> room("c", m, n + 2 * gap), result("result", m, n);
  const Matrix<T> c = block_of(room, {0, m}, {gap, n});
  gemm(ta, tb, wide(ta, m, k, 1), wide(tb, k, n, 2), 0, c, blocks);
  Kokkos::deep_copy(result, c);
  return to_host(Vector<T>(result.data(), result.span()));
}

TYPED_TEST(SameBits, ProductsWithAnyStrides) {
  using T = TypeParam;
  // Rows of a grain times layers of real widths, with the blocks of columns of vocabularies.
  std::vector<std::array<Size, 3>> shapes{
      {250, 65, 300}, {2000, 8, 64}, {300, 257, 31}, {64, 250, 257}, {129, 2, 300}};
  for (const Size m : {1, 4, 13})
    for (const Size n : {1, 3, 16})
      for (const Size k : {1, 5, 40}) shapes.push_back({m, n, k});
  for (const auto& [m, n, k] : shapes) {
    const bool is_large = m * n * k > 10000;
    for (const Size gap : is_large ? std::vector<Size>{3} : std::vector<Size>{1, 3, 16})
      for (const Trans ta : {Trans::no, Trans::yes})
        for (const Trans tb : {Trans::no, Trans::yes})
          ASSERT_EQ(product<T>(ta, tb, m, n, k, gap, {}), product<T>(ta, tb, m, n, k, 0, {}))
              << m << " x " << n << " x " << k << ", gap " << gap;
  }
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
  for (const Size classes : {11, 16, 32, 257, 1000})
    for (const Size rows : {1, 63, 2000}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << classes << " classes");
      ASSERT_EQ(nested_blocks(classes, blocks), blocks);
      const Matrix<T> logits = test::normal_matrix<T>(rows, classes, 1);
      std::vector<T> numbers;
      for (Size i = 0; i < rows; ++i) numbers.push_back(static_cast<T>(7 * i % classes));
      const Matrix<T> target = test::to_device(numbers, rows, 1);
      const Matrix<T> terms("terms", rows, 3 * blocks), joined("joined", rows, 3 * blocks);
      cross_entropy_terms<T>(logits, target, 0, terms);
      const auto whole = cross_entropy(logits, target, 0, classes, terms);
      for (const Size ranks : {2, 4}) {
        for (Size rank = 0; rank < ranks; ++rank) {
          const Range own = balanced_split(classes, ranks, rank),
                      place = balanced_split(3 * blocks, ranks, rank);
          const Matrix<T> of_rank("terms", rows, place.count);
          cross_entropy_terms<T>(columns_of(logits, own), target, own.begin, of_rank);
          Kokkos::deep_copy(block_of(joined, {0, rows}, place), of_rank);
        }
        ASSERT_EQ(to_host(joined), to_host(terms));
        for (Size rank = 0; rank < ranks; ++rank) {
          const Range own = balanced_split(classes, ranks, rank);
          const auto part =
              cross_entropy(columns_of(logits, own), target, own.begin, classes, terms);
          ASSERT_EQ(part.sum, whole.sum) << "rank " << rank << " of " << ranks;
          ASSERT_EQ(to_host(part.gradient), to_host(columns_of(whole.gradient, own)));
        }
      }
    }
}

/// The blocks of a whole product are those of its halves, which two ranks would compute.
TYPED_TEST(SameBits, ProductsInBlocksAreSumsOfTheirHalves) {
  using T = TypeParam;
  constexpr Size m = 6, n = 5, k = 22;
  const std::vector<T> whole = product<T>(Trans::no, Trans::no, m, n, k, 0, {.k = 4, .m = 2});
  const Matrix<T> a("a", m, k), b("b", k, n), sum("sum", m, n), more("more", m, n);
  fill_normal(a, key(1));
  fill_normal(b, key(2));
  const Gemm<T> gemm(MatmulPrecision::strict, {.nodes = 4 * m * n}, half_products(dtype_of<T>()),
                     true);
  const Range halves[] = {balanced_split(k, 2, 0), balanced_split(k, 2, 1)};
  ASSERT_EQ(nested_blocks(k, 4), 2);
  const std::vector<T> nested = product<T>(Trans::no, Trans::no, m, n, k, 0, {.k = 2, .m = 2});
  for (const Range& half : halves)
    gemm(Trans::no, Trans::no, block_of(Matrix<const T>(a), {0, m}, half),
         block_of(Matrix<const T>(b), half, {0, n}), 0, half.begin == 0 ? sum : more, {.m = 2});
  std::vector<T> added = to_host(Vector<T>(sum.data(), sum.span()));
  const std::vector<T> rest = to_host(Vector<T>(more.data(), more.span()));
  for (std::size_t i = 0; i < added.size(); ++i) added[i] += rest[i];
  EXPECT_EQ(added, nested);
  EXPECT_NE(nested, whole);  // another tree gives other bits
}

}  // namespace
}  // namespace tessera
