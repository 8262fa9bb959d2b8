// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/split.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_host;

double squared_norm(const std::vector<float>& values) {
  double sum = 0;
  for (double v : values) sum += v * v;
  return sum;
}

/// Nine printed digits identify a float; log1p may be an ulp off in another libm.
void expect_golden(const std::vector<float>& values, const std::vector<float>& golden) {
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(values[i], golden[i], 1.2e-7 * std::abs(golden[i])) << i;
  }
}

std::vector<float> kernel(Size in, Size out, std::uint32_t stream) {
  const Vector<float> w("w", in * out);
  initialize(w, Initializer::lecun_normal, fold_in(key(42), stream), {}, in, out);
  return to_host(w);
}

TEST(Golden, TutorialInputsAreJaxs) {
  Matrix<float> x("x", 256, 4);
  fill_normal(x, key(0));
  const std::vector<float> values = to_host(x);
  expect_golden(values, {1.62264216, 2.02526474, -0.433594435, -0.0786173493, 0.176090896,
                         -0.972089231, -0.495298743, 0.494378597});
  EXPECT_NEAR(squared_norm(values), 986.74628, 2e-5);
}

TEST(Golden, TutorialKernelsAreJaxs) {
  const std::vector<float> w1 = kernel(4, 64, 0), w2 = kernel(64, 1, 2);
  expect_golden(w1, {0.0411906205, -0.262907386, 0.677245557, 0.280739814});
  expect_golden(w2, {0.058470428, 0.0792248398, -0.15113087, -0.0505946167});
  EXPECT_NEAR(squared_norm(w1), 64.737854, 2e-6);
  EXPECT_NEAR(squared_norm(w2), 1.115541, 1e-6);
}

template <class T>
class Fill : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Fill, Scalars);

constexpr Size rows = 7, cols = 13;

template <class T>
std::vector<T> part_of_kernel(Size elements, const BlockRun& run) {
  const Vector<T> part("part", elements);
  initialize(part, Initializer::glorot_normal, key(9), run, rows, cols);
  return to_host(part);
}

TYPED_TEST(Fill, ARunOfABlockIsTheSliceOfTheWhole) {
  using T = TypeParam;
  const std::vector<T> whole = part_of_kernel<T>(rows * cols, {});
  for (Size parts : {1, 2, 3, 8, 16})
    for (Size part = 0; part < parts; ++part) {
      const Range r = balanced_split(rows, parts, part), c = balanced_split(cols, parts, part);
      for (Size third = 0; third < 3; ++third) {
        const Range run = balanced_split(r.count * c.count, 3, third);
        const std::vector<T> values =
            part_of_kernel<T>(run.count, {r.begin, c.begin, cols, c.count, run.begin});
        for (Size i = 0; i < run.count; ++i) {
          const Size at = run.begin + i;
          EXPECT_EQ(values[i], whole[(r.begin + at / c.count) * cols + c.begin + at % c.count]);
        }
      }
    }
}

TEST(Precision, DoublesAreTheFloatsWidened) {
  const std::vector<float> narrow = part_of_kernel<float>(rows * cols, {});
  const std::vector<double> wide = part_of_kernel<double>(rows * cols, {});
  for (std::size_t i = 0; i < narrow.size(); ++i) EXPECT_EQ(wide[i], narrow[i]);
}

struct Moments {
  double mean, variance, largest;
};

template <class F>
Moments moments_of(const F& fill) {
  const Vector<float> v("v", 100000);
  fill(v);
  Moments result{0, 0, 0};
  const std::vector<float> values = to_host(v);
  for (double v : values) {
    result.mean += v / values.size();
    result.variance += v * v / values.size();
    result.largest = std::max(result.largest, std::abs(v));
  }
  return result;
}

TEST(Distributions, HaveTheirMoments) {
  // 1e5 draws: a mean is good to 0.003 deviations, a variance to half a percent or so.
  const Moments normal = moments_of(
      [](const auto& v) { fill_normal(Matrix<float>(v.data(), 1, v.extent(0)), key(2)); });
  EXPECT_NEAR(normal.mean, 0, 0.02);
  EXPECT_NEAR(normal.variance, 1, 0.02);
  EXPECT_GT(normal.largest, 3.5);
  // A variance of 1, of which the cut leaves 0.8796 of the deviation, restored by a factor.
  const Moments truncated =
      moments_of([](const auto& v) { initialize(v, Initializer::lecun_normal, key(3), {}, 1, 1); });
  EXPECT_NEAR(truncated.mean, 0, 0.02);
  EXPECT_NEAR(truncated.variance, 1, 0.02);
  EXPECT_LT(truncated.largest, 2 / 0.87962566);
}

TEST(Initializers, HaveTheVarianceOfTheirFan) {
  constexpr Size in = 500, out = 200;
  const auto variance = [](Initializer i) {
    return moments_of([i](const auto& v) { initialize(v, i, key(4), {}, in, out); }).variance;
  };
  EXPECT_EQ(variance(Initializer::zeros), 0);
  for (const auto& [initializer, expected] : {std::pair{Initializer::lecun_normal, 1.0 / in},
                                              {Initializer::lecun_uniform, 1.0 / in},
                                              {Initializer::he_normal, 2.0 / in},
                                              {Initializer::he_uniform, 2.0 / in},
                                              {Initializer::glorot_normal, 2.0 / (in + out)},
                                              {Initializer::glorot_uniform, 2.0 / (in + out)}}) {
    EXPECT_NEAR(variance(initializer) / expected, 1, 0.02) << name_of(initializer);
  }
}

TEST(Initializers, UniformOnesStayWithinTheirLimit) {
  constexpr Size in = 500;
  const Moments he = moments_of(
      [](const auto& v) { initialize(v, Initializer::he_uniform, key(4), {}, in, 200); });
  EXPECT_NEAR(he.mean, 0, 1e-3);
  EXPECT_LE(he.largest, std::sqrt(6.0 / in) * (1 + 1e-6));
  EXPECT_GT(he.largest, std::sqrt(6.0 / in) * 0.999);
}

}  // namespace
}  // namespace tessera
