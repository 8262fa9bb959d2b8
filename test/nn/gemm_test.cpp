// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
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

TYPED_TEST(GemmOf, AgreesWithTheDefinitionForEveryTransposition) {
  using T = TypeParam;
  for (const auto& [m, n, k] : std::vector<std::array<Size, 3>>{
           {1, 1, 1}, {5, 1, 7}, {1, 5, 7}, {5, 7, 1}, {13, 11, 17}, {7001, 11, 67}}) {
    for (Trans ta : {Trans::no, Trans::yes}) {
      for (Trans tb : {Trans::no, Trans::yes}) {
        const auto a = ta == Trans::no ? normal_matrix<T>(m, k, 1) : normal_matrix<T>(k, m, 1);
        const auto b = tb == Trans::no ? normal_matrix<T>(k, n, 2) : normal_matrix<T>(n, k, 2);
        const auto c = normal_matrix<T>(m, n, 3);
        const auto ha = to_host(a), hb = to_host(b), hc = to_host(c);
        Gemm<T>()(ta, tb, a, b, T(0.5), c);
        const auto result = to_host(c);
        for (Size i = 0; i < m; ++i) {
          for (Size j = 0; j < n; ++j) {
            double sum = 0;
            for (Size l = 0; l < k; ++l) {
              sum += static_cast<double>(ta == Trans::no ? ha[i * k + l] : ha[l * m + i]) *
                     (tb == Trans::no ? hb[l * n + j] : hb[j * k + l]);
            }
            EXPECT_NEAR(result[i * n + j], sum + 0.5 * hc[i * n + j],
                        (100 + 2 * k) * std::numeric_limits<T>::epsilon());
          }
        }
      }
    }
  }
}

/// A small product of blocks of wider matrices has the bits of the product of their copies, and
/// writes nothing beside the block.
template <class T>
class GemmOfBlocks : public testing::Test {};
using AllTypes = testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(GemmOfBlocks, AllTypes);

TYPED_TEST(GemmOfBlocks, EqualsTheProductOfCopies) {
  using T = TypeParam;
  const auto wide = [](Size rows, Size cols, std::uint64_t seed) {
    const auto drawn = to_host(normal_matrix<StateOf<T>>(rows, cols, seed));
    return to_device<T>(std::vector<T>(drawn.begin(), drawn.end()), rows, cols);
  };
  const auto copy_of = [](const Matrix<T>& block) {
    const Matrix<T> copy("copy", block.extent(0), block.extent(1));
    Kokkos::deep_copy(copy, block);
    return copy;
  };
  constexpr Size n = 11, k = 37;
  for (const Size m : {13, 7001}) {
    // oneDNN may add the terms of large products in an order that depends on the strides.
    const int bits = is_half_v<T> ? 8 : std::numeric_limits<StateOf<T>>::digits;
    const double tolerance = std::ldexp(64.0, -bits);
    const MatmulScratch scratch{m * k, k * n, m * n};
    std::vector<Gemm<T>> ways;
    if constexpr (is_half_v<T>)
      ways.emplace_back(MatmulPrecision::strict, scratch, HalfProducts::emulated);
    if constexpr (std::is_same_v<T, float>) ways.emplace_back(MatmulPrecision::tf32, scratch);
    ways.emplace_back(MatmulPrecision::strict, scratch);
    for (const Gemm<T>& gemm : ways)
      for (const Trans ta : {Trans::no, Trans::yes})
        for (const Trans tb : {Trans::no, Trans::yes}) {
          const Range cols{3, ta == Trans::no ? k : m}, rows{2, ta == Trans::no ? m : k};
          const Matrix<T> a = block_of(wide(rows.end() + 5, cols.end() + 7, 1), rows, cols);
          const Matrix<T> b =
              block_of(wide(40, 43, 2), {1, tb == Trans::no ? k : n}, {4, tb == Trans::no ? n : k});
          const Matrix<T> around = wide(m + 7, 29, 3), before = copy_of(around);
          const Matrix<T> c = block_of(around, {3, m}, {5, n}), expected = copy_of(c);
          gemm(ta, tb, a, b, StateOf<T>(0.5), c);
          gemm(ta, tb, copy_of(a), copy_of(b), StateOf<T>(0.5), expected);
          const auto found = to_host(copy_of(c)), copied = to_host(expected);
          if (m == 13) {
            EXPECT_EQ(found, copied);
          }
          for (std::size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(static_cast<double>(found[i]), static_cast<double>(copied[i]), tolerance);
          Kokkos::deep_copy(c, block_of(before, {3, m}, {5, n}));
          EXPECT_EQ(to_host(around), to_host(before)) << "something beside the block was written";
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

TYPED_TEST(GemmOf, AnEmptySumLeavesBetaC) {
  using T = TypeParam;
  const Matrix<T> a("a", 0, 3), b("b", 0, 2);
  const auto c = to_device<T>({1, 2, 3, 4, 5, 6}, 3, 2);
  Gemm<T>()(Trans::yes, Trans::no, a, b, 1, c);
  EXPECT_EQ(to_host(c), (std::vector<T>{1, 2, 3, 4, 5, 6}));
  Gemm<T>()(Trans::yes, Trans::no, a, b, T(0.5), c);
  EXPECT_EQ(to_host(c), (std::vector<T>{0.5, 1, 1.5, 2, 2.5, 3}));
  Gemm<T>()(Trans::yes, Trans::no, a, b, 0, c);
  EXPECT_EQ(to_host(c), std::vector<T>(6, 0));
}

TYPED_TEST(GemmOf, ZeroBetaOverwritesNaN) {
  using T = TypeParam;
  const auto a = to_device<T>({1, 2}, 1, 2), b = to_device<T>({3, 4}, 2, 1);
  const auto c = to_device<T>({std::numeric_limits<T>::quiet_NaN()}, 1, 1);
  Gemm<T>()(Trans::no, Trans::no, a, b, 0, c);
  EXPECT_EQ(to_host(c)[0], 11);
  const auto d = to_device<T>({std::numeric_limits<T>::quiet_NaN()}, 1, 1);
  Gemm<T>()(Trans::no, Trans::no, Matrix<T>("a", 1, 0), Matrix<T>("b", 0, 1), 0, d);
  EXPECT_EQ(to_host(d)[0], 0);
}

TYPED_TEST(GemmOf, ShapesThatDoNotFitAreAnError) {
  using T = TypeParam;
  const Matrix<T> a("a", 2, 3), b("b", 4, 5), c("c", 2, 5);
  EXPECT_THROW(Gemm<T>()(Trans::no, Trans::no, a, b, 0, c), Error);
}

/// Half-precision products against float products of the same numbers.
template <class T>
class HalfGemm : public testing::Test {};
using HalfTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfGemm, HalfTypes);

template <class T>
std::vector<float> as_floats(const Matrix<T>& m) {
  std::vector<float> values;
  for (const T value : to_host(m)) values.push_back(static_cast<float>(value));
  return values;
}

TYPED_TEST(HalfGemm, EqualsTheFloatProductRoundedOnce) {
  using T = TypeParam;
  const double unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;
  const auto widened = [](const Matrix<T>& m) {
    return to_device(as_floats(m), m.extent(0), m.extent(1));
  };
  for (const HalfProducts products : {HalfProducts::emulated, half_products(dtype_of<T>())})
    for (const auto& [m, n, k] : std::vector<std::array<Size, 3>>{
             {1, 1, 1}, {5, 1, 7}, {1, 5, 7}, {5, 7, 1}, {13, 11, 17}, {64, 48, 80}})
      for (const Trans ta : {Trans::no, Trans::yes})
        for (const Trans tb : {Trans::no, Trans::yes})
          for (const float beta : {0.0f, 1.0f}) {
            SCOPED_TRACE(testing::Message()
                         << name_of(products) << " " << m << "x" << n << "x" << k << " "
                         << static_cast<char>(ta) << static_cast<char>(tb) << " beta " << beta);
            const auto a = ta == Trans::no ? normal_matrix<T>(m, k, 1) : normal_matrix<T>(k, m, 1);
            const auto b = tb == Trans::no ? normal_matrix<T>(k, n, 2) : normal_matrix<T>(n, k, 2);
            const auto c = normal_matrix<T>(m, n, 3);
            const auto wanted = widened(c), sums = widened(c);
            Gemm<float>()(ta, tb, widened(a), widened(b), beta, wanted);
            const Gemm<T> gemm(MatmulPrecision::strict, {m * k, k * n, m * n}, products);
            gemm(ta, tb, a, b, beta, c);
            gemm(ta, tb, a, b, beta, sums);
            const auto rounded = as_floats(c), unrounded = to_host(sums),
                       expected = to_host(wanted);
            for (std::size_t i = 0; i < expected.size(); ++i) {
              ASSERT_NEAR(rounded[i], expected[i], 1.01 * unit * std::abs(expected[i]) + 1e-5) << i;
              ASSERT_NEAR(unrounded[i], expected[i], 1e-5) << i;
            }
          }
}

TYPED_TEST(HalfGemm, AnEmptySumLeavesBetaC) {
  using T = TypeParam;
  const Matrix<T> a("a", 0, 3), b("b", 0, 2);
  for (const HalfProducts products : {HalfProducts::emulated, half_products(dtype_of<T>())}) {
    const Gemm<T> gemm(MatmulPrecision::strict, {0, 0, 6}, products);
    const auto c = normal_matrix<T>(3, 2, 1);
    const auto before = as_floats(c);
    gemm(Trans::yes, Trans::no, a, b, 1, c);
    EXPECT_EQ(as_floats(c), before);
    gemm(Trans::yes, Trans::no, a, b, 0, c);
    EXPECT_EQ(as_floats(c), std::vector<float>(6, 0));
  }
}

TYPED_TEST(HalfGemm, EmulationNeedsScratchMemoryAndNoTf32) {
  using T = TypeParam;
  const Matrix<T> a("a", 2, 2), b("b", 2, 2), c("c", 2, 2);
  for (const MatmulScratch& scratch :
       {MatmulScratch{3, 4, 4}, MatmulScratch{4, 3, 4}, MatmulScratch{4, 4, 3}}) {
    const Gemm<T> gemm(MatmulPrecision::strict, scratch, HalfProducts::emulated);
    EXPECT_THROW(gemm(Trans::no, Trans::no, a, b, 0, c), Error);
  }
  EXPECT_THROW(Gemm<T>(MatmulPrecision::tf32), ConfigError);
}

/// x rounded to TF32: an element of the product of x and the unit matrix.
float tf32(float x) {
  const auto a = to_device<float>({x, 0, 0, 0}, 2, 2), one = to_device<float>({1, 0, 0, 1}, 2, 2);
  const Matrix<float> c("c", 2, 2);
  Gemm<float>(MatmulPrecision::tf32, {4, 4})(Trans::no, Trans::no, a, one, 0, c);
  return to_host(c)[0];
}

TEST(Tf32, RoundsToTenBitsNearestTiesAway) {
  constexpr float unit = 0x1p-10f;  // the last bit at 1
  EXPECT_EQ(tf32(1 + unit), 1 + unit);
  EXPECT_EQ(tf32(1 + 0.49f * unit), 1);
  EXPECT_EQ(tf32(1 + 0.5f * unit), 1 + unit);
  EXPECT_EQ(tf32(-1 - 0.5f * unit), -1 - unit);
  EXPECT_EQ(tf32(1 + 1.5f * unit), 1 + 2 * unit);
  EXPECT_EQ(tf32(2 - 0.25f * unit), 2);
  EXPECT_EQ(tf32(0.0f), 0.0f);
}

TEST(Tf32, LeavesInfinityAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tf32(infinity), infinity);
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
    const float expected = static_cast<float>(k) * (m > 1 && n > 1 && k > 1 ? 1 : x);
    EXPECT_EQ(to_host(c)[0], expected) << m << n << k;
    EXPECT_EQ(to_host(a)[0], x) << "an operand was changed";
  }
}

TEST(Tf32, IsAnErrorForDoublesAndWithoutScratchMemory) {
  EXPECT_THROW(Gemm<double>(MatmulPrecision::tf32, {4, 4}), ConfigError);
  const Gemm<float> gemm(MatmulPrecision::tf32, {3, 4});
  const Matrix<float> a("a", 2, 2), b("b", 2, 2), c("c", 2, 2);
  EXPECT_THROW(gemm(Trans::no, Trans::no, a, b, 0, c), Error);
}

}  // namespace
}  // namespace tessera
