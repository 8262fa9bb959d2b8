// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

template <class T>
class LossOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(LossOf, Scalars);

TYPED_TEST(LossOf, SumsAndGradientsOfASmallCase) {
  using T = TypeParam;
  const auto p = to_device<T>({4, 1, 0, 2}, 2, 2), t = to_device<T>({1, 5, 0, 4}, 2, 2);
  const Vector<double> sums = to_device<double>({-1, -1, -1});
  const Matrix<T> g("g", 2, 2);
  loss_and_gradient<T>(LossKind::mse, p, t, 8, sums, 0, g);
  EXPECT_EQ(to_host(g), (std::vector<T>{0.75, -1, 0, -0.5}));
  loss_and_gradient<T>(LossKind::mae, p, t, 8, sums, 1, g);
  EXPECT_EQ(to_host(g), (std::vector<T>{0.125, -0.125, 0, -0.125}));
  loss_and_gradient<T>(LossKind::relative_l2, p, t, 4, sums, 2, g);
  const std::vector<double> expected{0.25 * 3 / 5 / std::sqrt(26.0),
                                     0.25 * -4 / 5 / std::sqrt(26.0), 0, 0.25 * -1 / 4};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(to_host(g)[i], expected[i], 1e-7);
  EXPECT_EQ(to_host(sums)[0], 9 + 16 + 0 + 4);
  EXPECT_EQ(to_host(sums)[1], 3 + 4 + 0 + 2);
  EXPECT_NEAR(to_host(sums)[2], 5 / std::sqrt(26.0) + 2.0 / 4, 1e-12);
}

TEST(Loss, CountsAreElementsOrRows) {
  EXPECT_EQ(loss_count(LossKind::mse, 3, 5), 15);
  EXPECT_EQ(loss_count(LossKind::mae, 3, 5), 15);
  EXPECT_EQ(loss_count(LossKind::relative_l2, 3, 5), 3);
}

/// A mean of means would weigh the rows of the short part more.
TYPED_TEST(LossOf, UnevenPartsAddUpToTheWhole) {
  using T = TypeParam;
  Matrix<T> p("p", 7, 3), t("t", 7, 3);
  fill_normal(p, key(1));
  fill_normal(t, key(2));
  const Vector<double> sums("sums", 3);
  for (LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
    const Matrix<T> whole("g", 7, 3), parts("g", 7, 3);
    const Size count = loss_count(kind, 7, 3);
    loss_and_gradient<T>(kind, p, t, count, sums, 0, whole);
    const auto part = [&](Size first, Size rows, Size slot) {
      const auto cut = [&](const Matrix<T>& m) { return Matrix<T>(m.data() + first * 3, rows, 3); };
      loss_and_gradient<T>(kind, cut(p), cut(t), count, sums, slot, cut(parts));
    };
    part(0, 5, 1);
    part(5, 2, 2);
    EXPECT_EQ(to_host(parts), to_host(whole));
    const auto s = to_host(sums);
    EXPECT_NEAR(s[1] + s[2], s[0], 1e-12);
  }
}

TYPED_TEST(LossOf, NaNAndInfinityReachTheSum) {
  using T = TypeParam;
  const Vector<double> sums("sums", 1);
  for (T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    for (LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
      const auto p = to_device<T>({1, bad}, 2, 1), t = to_device<T>({2, 3}, 2, 1);
      loss_and_gradient<T>(kind, p, t, 2, sums, 0, Matrix<T>());
      EXPECT_FALSE(std::isfinite(to_host(sums)[0])) << name_of(kind);
    }
  }
}

TYPED_TEST(LossOf, AnExactPredictionHasNoGradient) {
  using T = TypeParam;
  const auto t = to_device<T>({2, 3}, 1, 2);
  const Vector<double> sums("sums", 1);
  for (LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
    const auto g = to_device<T>({9, 9}, 1, 2);
    loss_and_gradient<T>(kind, t, t, 2, sums, 0, g);
    EXPECT_EQ(to_host(g), (std::vector<T>{0, 0}));
    EXPECT_EQ(to_host(sums)[0], 0);
  }
}

TEST(Loss, ShapesThatDifferAreAnError) {
  const Matrix<float> p("p", 2, 3), t("t", 3, 2);
  EXPECT_THROW(loss_and_gradient<float>(LossKind::mse, p, t, 6, Vector<double>("s", 1), 0, p),
               Error);
}

}  // namespace
}  // namespace tessera
