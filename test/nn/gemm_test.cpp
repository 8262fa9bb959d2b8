// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/nn/products/gemm.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::normal_matrix;
using test::to_device;
using test::to_host;

template <class T>
class GemmOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmOf, Scalars);

/// A block of a wider matrix of normal numbers.
template <class T>
struct Block {
  Block(Trans trans, Size op_rows, Size op_cols, std::uint64_t seed)
      : trans(trans),
        rows(trans == Trans::no ? op_rows : op_cols),
        cols(trans == Trans::no ? op_cols : op_rows),
        around(normal_matrix<T>(rows + 5, cols + 7, seed)),
        block(block_of(around, {2, rows}, {3, cols})),
        values(to_host(around)) {}

  /// Returns an element of op(block) as it was at first.
  double at(Size i, Size j) const {
    if (trans == Trans::yes) std::swap(i, j);
    return static_cast<double>(values[(i + 2) * (cols + 7) + j + 3]);
  }

  Trans trans;
  Size rows, cols;
  Matrix<T> around, block;
  std::vector<T> values;
};

template <class T>
class GemmOfBlocks : public testing::Test {};
using AllTypes = testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(GemmOfBlocks, AllTypes);

/// Checks a product of every way to multiply, and that nothing is written beside the result.
template <class T>
void expect_product(Trans ta, Trans tb, Size m, Size n, Size k, StateOf<T> beta) {
  using State = StateOf<T>;
  const double exact = static_cast<double>(100 + 2 * k) * std::numeric_limits<State>::epsilon(),
               unit = !is_half_v<T>                 ? 0
                      : std::is_same_v<T, BFloat16> ? 0x1.03p-8
                                                    : 0x1.03p-11;
  const MatmulScratch scratch{m * k, k * n, m * n};
  std::vector<Gemm<T>> ways;
  ways.emplace_back(MatmulPrecision::strict, scratch);
  if (is_half_v<T>) ways.emplace_back(MatmulPrecision::strict, scratch, HalfProducts::emulated);
  if (std::is_same_v<T, float>) ways.emplace_back(MatmulPrecision::tf32, scratch);
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const bool is_tf32 = std::is_same_v<T, float> && way == 1;
    const double tolerance = is_tf32 ? 0x1p-9 * static_cast<double>(k) : exact;
    const Block<T> a(ta, m, k, 1), b(tb, k, n, 2), c(Trans::no, m, n, 3);
    const Matrix<State> sums("sums", m, n);
    ways[way](ta, tb, a.block, b.block, beta, c.block);
    ways[way](ta, tb, a.block, b.block, 0, sums);
    const auto unrounded = to_host(sums);
    auto found = to_host(c.around);
    for (Size i = 0; i < m; ++i)
      for (Size j = 0; j < n; ++j) {
        double sum = 0;
        for (Size l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
        ASSERT_NEAR(unrounded[i * n + j], sum, tolerance) << way;
        sum += beta * c.at(i, j);
        T& element = found[(i + 2) * (n + 7) + j + 3];
        ASSERT_NEAR(static_cast<double>(element), sum, tolerance + unit * std::abs(sum)) << way;
        element = c.values[(i + 2) * (n + 7) + j + 3];
      }
    EXPECT_EQ(found, c.values) << "something beside the block was written";
  }
}

TYPED_TEST(GemmOfBlocks, AgreesWithTheDefinitionForEveryTransposition) {
  for (const auto& [m, n, k] : std::vector<std::array<Size, 3>>{
           {1, 1, 1}, {5, 1, 7}, {1, 5, 7}, {5, 7, 1}, {13, 11, 17}, {1501, 11, 67}})
    for (const Trans ta : {Trans::no, Trans::yes})
      for (const Trans tb : {Trans::no, Trans::yes})
        for (const double beta : {0.0, 0.5}) {
          SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " "
                                          << static_cast<char>(ta) << static_cast<char>(tb));
          expect_product<TypeParam>(ta, tb, m, n, k, static_cast<StateOf<TypeParam>>(beta));
        }
}

// Whole numbers, whose sums are exact. Matrices of C lie side by side, as those of experts and
// modes, or behind one another, as heads of attention. There are fewer, as many, and more than
// threads.
TYPED_TEST(GemmOfBlocks, MultipliesEachMatrixOfABatch) {
  using T = TypeParam;
  constexpr Size m = 9, n = 4, k = 5;
  const auto number = [](Size i) { return static_cast<float>(i * 5 % 7) - 3; };
  const auto whole = [&](Size rows, Size cols) {
    std::vector<T> values(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(static_cast<Size>(i));
    return to_device<T>(values, rows, cols);
  };
  for (const Size count : {0, 1, 2, 3, 17})
    for (const bool side_by_side : {true, false}) {
      const Size across = side_by_side ? std::max<Size>(1, count) : 1,
                 down = std::max<Size>(1, count) / across;
      const Matrix<T> a = whole(down * m, across * k), b = whole(std::max<Size>(1, count) * k, n),
                      c = whole(down * m, across * n);
      const Size a_next = side_by_side ? k : m * k, c_next = side_by_side ? n : m * n;
      const Gemm<T> gemm(MatmulPrecision::strict, MatmulScratch{m * k, k * n, m * n});
      gemm.multiply_batch(Trans::no, Trans::no, Matrix<const T>(block_of(a, {0, m}, {0, k})),
                          Matrix<const T>(block_of(b, {0, k}, {0, n})), 0,
                          block_of(c, {0, m}, {0, n}), {count, a_next, k * n, c_next});
      const std::vector<T> found = to_host(c);
      for (Size matrix = 0; matrix < count; ++matrix)
        for (Size i = 0; i < m; ++i)
          for (Size j = 0; j < n; ++j) {
            float sum = 0;
            for (Size t = 0; t < k; ++t)
              sum +=
                  number(matrix * a_next + i * across * k + t) * number((matrix * k + t) * n + j);
            ASSERT_EQ(static_cast<float>(found[matrix * c_next + i * across * n + j]), sum)
                << count << " matrices, number " << matrix << " at " << i << ", " << j;
          }
      if (count == 0) {
        EXPECT_EQ(static_cast<float>(found[0]), number(0)) << "no matrix was asked for";
      }
    }
}

// Heads of attention may have one column. The test uses whole numbers, whose sums are exact.
TYPED_TEST(GemmOfBlocks, MayHaveOneColumn) {
  using T = TypeParam;
  constexpr Size m = 5, k = 7;
  const auto whole = [](Size rows, Size cols) {
    std::vector<T> values(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((5 * i + i / 3) % 7) - 3;
    return to_device<T>(values, rows, cols);
  };
  const MatmulScratch scratch{m * k, k, m};
  const Matrix<T> a = whole(m, k), b = block_of(whole(k, 4), {0, k}, {2, 1});
  const auto rows = to_host(a), column = to_host(whole(k, 4));
  for (const HalfProducts products : {HalfProducts::emulated, half_products(dtype_of<T>())}) {
    const Matrix<T> around = whole(m, 3);
    std::vector<T> expected = to_host(around);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < k; ++j)
        expected[3 * i + 1] = expected[3 * i + 1] + rows[k * i + j] * column[4 * j + 2];
    const Gemm<T> gemm(MatmulPrecision::strict, scratch, products);
    gemm(Trans::no, Trans::no, a, b, 1, block_of(around, {0, m}, {1, 1}));
    EXPECT_EQ(to_host(around), expected);
  }
}

// Replicas of a parameter compute its gradient independently and must stay equal.
TYPED_TEST(GemmOf, FewLongSumsHaveTheSameBitsEveryTime) {
  using T = TypeParam;
  const auto a = normal_matrix<T>(40000, 3, 1), b = normal_matrix<T>(40000, 5, 2);
  const auto product = [&] {
    const Matrix<T> c("c", 3, 5);
    Gemm<T>()(Trans::yes, Trans::no, a, b, 0, c);
    return to_host(c);
  };
  const auto first = product();
  for (int again = 0; again < 10; ++again) EXPECT_EQ(product(), first);
}

TYPED_TEST(GemmOfBlocks, AnEmptySumLeavesBetaC) {
  using T = TypeParam;
  const Matrix<T> a("a", 0, 3), b("b", 0, 2);
  for (const HalfProducts products : {HalfProducts::emulated, half_products(dtype_of<T>())}) {
    const Gemm<T> gemm(MatmulPrecision::strict, {0, 0, 6}, products);
    const auto c = normal_matrix<T>(3, 2, 1);
    const auto before = to_host(c);
    gemm(Trans::yes, Trans::no, a, b, 1, c);
    EXPECT_EQ(to_host(c), before);
    gemm(Trans::yes, Trans::no, a, b, 0, c);
    EXPECT_EQ(to_host(c), std::vector<T>(6));
  }
}

TYPED_TEST(GemmOf, ZeroBetaOverwritesNaN) {
  using T = TypeParam;
  const auto a = to_device<T>({1, 2}, 1, 2), b = to_device<T>({3, 4}, 2, 1);
  const auto c = to_device<T>({std::numeric_limits<T>::quiet_NaN()}, 1, 1);
  Gemm<T>()(Trans::no, Trans::no, a, b, 0, c);
  EXPECT_EQ(to_host(c)[0], 11);
}

TYPED_TEST(GemmOf, ShapesThatDoNotFitAreAnError) {
  using T = TypeParam;
  const Matrix<T> a("a", 2, 3), b("b", 4, 5), c("c", 2, 5);
  EXPECT_THROW(Gemm<T>()(Trans::no, Trans::no, a, b, 0, c), Error);
}

TEST(HalfGemm, EmulationNeedsScratchMemoryAndNoTf32) {
  const Matrix<BFloat16> a("a", 2, 2), b("b", 2, 2), c("c", 2, 2);
  for (const MatmulScratch& scratch :
       {MatmulScratch{3, 4, 4}, MatmulScratch{4, 3, 4}, MatmulScratch{4, 4, 3}}) {
    const Gemm<BFloat16> gemm(MatmulPrecision::strict, scratch, HalfProducts::emulated);
    EXPECT_THROW(gemm(Trans::no, Trans::no, a, b, 0, c), Error);
  }
  EXPECT_THROW(Gemm<BFloat16>(MatmulPrecision::tf32), ConfigError);
}

/// x rounded to TF32: an element of the product of x and the unit matrix.
float tf32(float x) {
  const auto a = to_device<float>({x, 0, 0, 0}, 2, 2), one = to_device<float>({1, 0, 0, 1}, 2, 2);
  const Matrix<float> c("c", 2, 2);
  Gemm<float>(MatmulPrecision::tf32, {4, 4})(Trans::no, Trans::no, a, one, 0, c);
  return to_host(c)[0];
}

TEST(Tf32, RoundsToTenBitsNearestTiesAway) {
  if (has_native_tf32()) GTEST_SKIP() << "cuBLAS promises no rounding";
  constexpr float unit = 0x1p-10f;  // the last bit at 1
  EXPECT_EQ(tf32(1 + unit), 1 + unit);
  EXPECT_EQ(tf32(1 + 0.49f * unit), 1);
  EXPECT_EQ(tf32(1 + 0.5f * unit), 1 + unit);
  EXPECT_EQ(tf32(-1 - 0.5f * unit), -1 - unit);
  EXPECT_EQ(tf32(1 + 1.5f * unit), 1 + 2 * unit);
  EXPECT_EQ(tf32(2 - 0.25f * unit), 2);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tf32(-infinity), -infinity);
  EXPECT_TRUE(std::isnan(tf32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Tf32, OnlyTrueMatrixProductsAreRounded) {
  const float x = 1 + 0x1p-12f;
  for (const auto& [m, n, k] :
       std::vector<std::array<Size, 3>>{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {2, 2, 2}}) {
    const auto a = to_device<float>(std::vector<float>(m * k, x), m, k);
    const auto b = to_device<float>(std::vector<float>(k * n, 1), k, n);
    const Matrix<float> c("c", m, n);
    Gemm<float>(MatmulPrecision::tf32, {4, 4})(Trans::no, Trans::no, a, b, 0, c);
    const bool rounds = m > 1 && n > 1 && k > 1;
    const float exact = static_cast<float>(k) * x, rounded = static_cast<float>(k);
    const float found = to_host(c)[0];
    // cuBLAS may leave operands as they are.
    EXPECT_TRUE(found == (rounds ? rounded : exact) || (has_native_tf32() && found == exact))
        << m << n << k << ": " << found;
    EXPECT_EQ(to_host(a)[0], x) << "an operand was changed";
  }
}

TEST(Tf32, IsAnErrorForDoublesAndWithoutScratchMemory) {
  EXPECT_THROW(Gemm<double>(MatmulPrecision::tf32, {4, 4}), ConfigError);
  if (has_native_tf32()) return;  // products then need no copies
  const Gemm<float> gemm(MatmulPrecision::tf32, {3, 4});
  const Matrix<float> a("a", 2, 2), b("b", 2, 2), c("c", 2, 2);
  EXPECT_THROW(gemm(Trans::no, Trans::no, a, b, 0, c), Error);
}

}  // namespace
}  // namespace tessera
