// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/optim/clipping.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

template <class T>
class ClippingOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(ClippingOf, Scalars);

TYPED_TEST(ClippingOf, SquaresAreSummedForEveryLength) {
  using T = TypeParam;
  const Vector<double> sum("sum", 1);
  for (Size n : {0, 1, 7, 8, 9, 16, 23, 1001}) {
    Vector<T> v("v", n);
    fill_normal(Matrix<T>(v.data(), 1, n), key(n));
    sum_of_squares<T>(v, sum);
    double expected = 0;
    for (double x : to_host(v)) expected += x * x;
    EXPECT_NEAR(to_host(sum)[0], expected, 1e-14 * expected) << n;
  }
}

TEST(Clipping, SquaresOfFloatsAreAddedInDouble) {
  // A float32 sum of 2^26 does not grow when ones are added to it.
  std::vector<float> v(1 << 20, 1);
  v[0] = 0x1p13f;
  const Vector<double> sums("sums", 1);
  sum_of_squares<float>(to_device(v), sums);
  EXPECT_EQ(to_host(sums)[0], 0x1p26 + (1 << 20) - 1);
}

TYPED_TEST(ClippingOf, InfinityAndNaNShowInTheSum) {
  using T = TypeParam;
  const Vector<double> sums("sums", 1);
  for (T bad : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
    for (Size at : {0, 7, 8, 9}) {
      std::vector<T> v(10, 1);
      v[at] = bad;
      sum_of_squares<T>(to_device(v), sums);
      EXPECT_FALSE(std::isfinite(to_host(sums)[0]));
    }
  }
}

TYPED_TEST(ClippingOf, ByValueCutsBothSidesAndKeepsNaN) {
  using T = TypeParam;
  const auto v = to_device<T>({-3, -0.5, 0, 0.5, 3, std::numeric_limits<T>::quiet_NaN()});
  clip_by_value<T>(v, T(0.75));
  const auto clipped = to_host(v);
  EXPECT_EQ(std::vector<T>(clipped.begin(), clipped.begin() + 5),
            (std::vector<T>{-0.75, -0.5, 0, 0.5, 0.75}));
  EXPECT_TRUE(std::isnan(clipped[5]));
}

TYPED_TEST(ClippingOf, FindsTheOneElementThatIsNotFinite) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const auto found = [](const std::vector<T>& values, double before) {
    const Vector<double> flag = to_device<double>({before});
    find_not_finite<T>(Vector<const T>(to_device(values)), flag);
    return to_host(flag)[0];
  };
  EXPECT_EQ(found({}, 0), 0);
  EXPECT_EQ(found({0, Limits::max(), Limits::lowest(), Limits::denorm_min()}, 0), 0);
  EXPECT_EQ(found({0, 1}, 1), 1) << "what was found before stays";
  for (const T bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    for (std::size_t at : {0, 3, 6}) {
      std::vector<T> values(7, T(1));
      values[at] = bad;
      EXPECT_EQ(found(values, 0), 1);
    }
}

TYPED_TEST(ClippingOf, AccumulateAddsElementByElement) {
  using T = TypeParam;
  const Vector<T> to = to_device<T>({1, 2, 3});
  accumulate<T>(Vector<const T>(to_device<T>({10, 20, 30})), to);
  EXPECT_EQ(to_host(to), (std::vector<T>{11, 22, 33}));
}

TEST(Clipping, SumsAddUpIntoTheFirst) {
  const Vector<double> sums = to_device<double>({1, 2, 4, 8, 16});
  add_up(sums);
  EXPECT_EQ(to_host(sums), (std::vector<double>{31, 2, 4, 8, 16}));
}

TEST(Clipping, ByNormScalesFromTheLimitOn) {
  const ClipConfig clip{.global_norm = 5, .value = {}};
  EXPECT_EQ(clip_scale(clip, 16), 1);
  EXPECT_EQ(clip_scale(clip, 25), 1);
  EXPECT_EQ(clip_scale(clip, 100), 0.5);
  EXPECT_EQ(clip_scale(clip, 0), 1);
  EXPECT_EQ(clip_scale({}, 1e30), 1);
}

}  // namespace
}  // namespace tessera
