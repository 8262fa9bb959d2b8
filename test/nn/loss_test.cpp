// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

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
  const Vector<double> sums("sums", 1);
  const Matrix<T> g("g", 2, 2);
  loss_and_gradient<T>(LossKind::mse, p, t, 8, sums, g);
  EXPECT_EQ(to_host(sums)[0], 9 + 16 + 0 + 4);
  EXPECT_EQ(to_host(g), (std::vector<T>{0.75, -1, 0, -0.5}));
  loss_and_gradient<T>(LossKind::mae, p, t, 8, sums, g);
  EXPECT_EQ(to_host(sums)[0], 3 + 4 + 0 + 2);
  EXPECT_EQ(to_host(g), (std::vector<T>{0.125, -0.125, 0, -0.125}));
  loss_and_gradient<T>(LossKind::relative_l2, p, t, 4, sums, g);
  const std::vector<double> expected{0.25 * 3 / 5 / std::sqrt(26.0),
                                     0.25 * -4 / 5 / std::sqrt(26.0), 0, 0.25 * -1 / 4};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(to_host(g)[i], expected[i], 1e-7);
  EXPECT_NEAR(to_host(sums)[0], 5 / std::sqrt(26.0) + 2.0 / 4, 1e-12);
}

/// Checks the gradient against central differences of the sum, element by element.
template <class T>
void expect_loss_gradient(LossKind kind, const std::vector<double>& at, Size rows, Size cols,
                          const Matrix<T>& target, const LossDetails<T>& details = {}) {
  const Matrix<T> g("g", rows, cols);
  const Vector<double> sums("sums", 1);
  const auto loss_at = [&](const std::vector<double>& p, const Matrix<T>& gradient) {
    loss_and_gradient<T>(kind, to_device(p, rows, cols), target, 1, sums, gradient, details);
    return to_host(sums)[0];
  };
  loss_at(at, g);
  const auto gradient = to_host(g);
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto up = at, down = at;
    up[i] += 1e-6, down[i] -= 1e-6;
    EXPECT_NEAR((loss_at(up, {}) - loss_at(down, {})) / 2e-6, gradient[i], 1e-8) << i;
  }
}

// More elements than a row of a kernel has, and not a multiple of a vector.
TYPED_TEST(LossOf, SumsAndGradientsOfManyElements) {
  using T = TypeParam;
  const Size rows = 7, cols = 431;
  const Matrix<T> drawn("drawn", rows, cols), t("t", rows, cols), g("g", rows, cols);
  fill_normal(drawn, key(5));
  fill_normal(t, key(6));
  // Logits up to 60, whose exponentials are as small as 1e-26.
  std::vector<T> logits = to_host(drawn);
  for (std::size_t i = 1; i < logits.size(); i += 2) logits[i] *= 15;
  const Matrix<T> p = to_device<T>(logits, rows, cols);
  struct Element {
    double loss, slope;
  };
  const auto expect = [&](LossKind kind, const auto& of_element) {
    const Vector<double> sums("sums", 1);
    loss_and_gradient<T>(kind, p, t, 1, sums, g);
    const auto at = to_host(p), target = to_host(t), gradient = to_host(g);
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Element expected = of_element(double(at[i]), double(target[i]));
      sum += expected.loss, size += std::abs(expected.loss);
      const double rounding =
          4 * std::numeric_limits<T>::epsilon() * (2 + std::abs(expected.slope));
      ASSERT_NEAR(gradient[i], expected.slope, rounding) << name_of(kind) << " " << at[i];
    }
    EXPECT_NEAR(to_host(sums)[0], sum,
                std::max<double>(std::numeric_limits<T>::epsilon(), 1e-13) * size)
        << name_of(kind);
  };
  expect(LossKind::mse, [](double x, double y) { return Element{(x - y) * (x - y), 2 * (x - y)}; });
  expect(LossKind::mae, [](double x, double y) {
    return Element{std::abs(x - y), x > y ? 1.0 : -1.0};
  });
  expect(LossKind::bce, [](double x, double y) {
    return Element{std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x))),
                   1 / (1 + std::exp(-x)) - y};
  });
}

TEST(Loss, GradientsAgreeWithFiniteDifferences) {
  const Matrix<double> p("p", 4, 6);
  fill_normal(p, key(3));
  const auto at = to_host(p);
  const auto classes = to_device<double>({0, 5, 2, 2}, 4, 1);
  expect_loss_gradient<double>(LossKind::cross_entropy, at, 4, 6, classes);
  const Matrix<double> t("t", 4, 6);
  fill_normal(t, key(4));
  expect_loss_gradient<double>(LossKind::bce, at, 4, 6, t);
  expect_loss_gradient<double>(LossKind::poisson, at, 4, 6, t, {.boundary_weight = 3});
}

TEST(Loss, ValuesOfSmallCases) {
  const Vector<double> sums("sums", 1);
  const auto value = [&](LossKind kind, const Matrix<double>& p, const Matrix<double>& t,
                         const LossDetails<double>& details = {}) {
    loss_and_gradient<double>(kind, p, t, 1, sums, {}, details);
    return to_host(sums)[0];
  };
  // log(1 + e^-2) with the target 1, and 2 more with 0; both of one sample: a sum, not a mean.
  const double less = std::log1p(std::exp(-2.0));
  EXPECT_NEAR(
      value(LossKind::bce, to_device<double>({2, 2}, 1, 2), to_device<double>({1, 0}, 1, 2)),
      2 * less + 2, 1e-14);
  EXPECT_NEAR(
      value(LossKind::bce, to_device<double>({-800, 800}, 1, 2), to_device<double>({0, 1}, 1, 2)),
      0, 1e-14);
  EXPECT_NEAR(value(LossKind::cross_entropy, to_device<double>({1000, 1000, 1000}, 1, 3),
                    to_device<double>({1}, 1, 1)),
              std::log(3.0), 1e-12);
  EXPECT_TRUE(std::isnan(value(LossKind::cross_entropy, to_device<double>({1, 2}, 1, 2),
                               to_device<double>({2}, 1, 1))));
  // u, u_x, u_y, u_xx, u_yy, u on the boundary: (2 + 3 + 4)^2 + 5 (7 - 6)^2
  EXPECT_EQ(value(LossKind::poisson, to_device<double>({9, 9, 9, 2, 3, 7}, 1, 6),
                  to_device<double>({4, 9, 9, 9, 9, 6}, 1, 6), {.boundary_weight = 5}),
            86);
}

TEST(Loss, IgnoredTargetsHaveNoLossAndNoGradient) {
  const Size rows = 6, classes = 4;
  const Matrix<double> logits("logits", rows, classes), g("g", rows, classes);
  fill_normal(logits, key(5));
  const std::vector<double> p = to_host(logits), targets{3, -100, 0, 2, -100, 1};
  const Matrix<double> target = to_device(targets, rows, 1);
  const Vector<double> sums("sums", 1), counted("counted", 1);
  count_targets<double>(target, -100, counted);
  EXPECT_EQ(to_host(counted)[0], 4);
  double sum = 0;
  std::vector<double> gradient(p.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    double total = 0;
    for (std::size_t j = 0; j < 4; ++j) total += std::exp(p[4 * i + j]);
    sum += std::log(total) - p[4 * i + static_cast<std::size_t>(targets[i])];
    for (std::size_t j = 0; j < 4; ++j)
      gradient[4 * i + j] =
          std::exp(p[4 * i + j]) / total - (static_cast<double>(j) == targets[i] ? 1 : 0);
  }
  // All targets over those that count weigh the sum, and the gradient of the mean.
  for (const bool averages : {true, false}) {
    LossDetails<double> details{
        .ignored = -100, .counted = counted.data(), .targets = rows, .averages = averages};
    const Size count = averages ? rows : 1;
    loss_and_gradient<double>(LossKind::cross_entropy, logits, target, count, sums, g, details);
    EXPECT_NEAR(to_host(sums)[0], sum * 6 / 4, 1e-13);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(to_host(g)[i], gradient[i] / (averages ? 4 : 1), 1e-14) << i;
  }
  loss_and_gradient<double>(LossKind::cross_entropy, logits, target, 1, sums, g, {.ignored = -100});
  EXPECT_NEAR(to_host(sums)[0], sum, 1e-13);
}

/// The largest logit of a rank may be far from the largest of all.
TEST(Loss, ClassesOfSeveralRanksAreThoseOfOne) {
  const Size rows = 5, classes = 7;
  const Matrix<double> logits("logits", rows, classes);
  fill_normal(logits, key(7));
  auto values = to_host(logits);
  values[3] = 400;
  values[1 * classes + 6] = -300;
  for (Size j = 0; j < classes; ++j) values[2 * classes + j] -= 1000;
  const auto target = to_device<double>({0, 6, 3, 4, 2}, rows, 1);
  const Vector<double> sums("sums", 1), part_sums("sums", 1);
  const Matrix<double> whole("g", rows, classes);
  loss_and_gradient<double>(LossKind::cross_entropy, to_device(values, rows, classes), target, 3,
                            sums, whole);
  const auto columns = [&](Size first, Size count) {
    std::vector<double> part;
    for (Size i = 0; i < rows; ++i)
      for (Size j = first; j < first + count; ++j) part.push_back(values[i * classes + j]);
    return to_device(part, rows, count);
  };
  // Four ranks, the last one without columns.
  const std::vector<std::pair<Size, Size>> parts{{0, 3}, {3, 3}, {6, 1}, {7, 0}};
  std::vector<double> terms(rows * 3 * parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const Matrix<double> own("terms", rows, 3);
    cross_entropy_terms<double>(columns(parts[r].first, parts[r].second), target, parts[r].first,
                                {}, own);
    const auto host = to_host(own);
    for (Size i = 0; i < rows; ++i)
      for (Size k = 0; k < 3; ++k) terms[i * 3 * parts.size() + 3 * r + k] = host[i * 3 + k];
  }
  const auto all = to_host(whole);
  for (const auto& [first, count] : parts) {
    const Matrix<double> g("g", rows, count);
    loss_and_gradient<double>(
        LossKind::cross_entropy, columns(first, count), target, 3, part_sums, g,
        {.first_class = first,
         .classes = classes,
         .terms = to_device(terms, rows, static_cast<Size>(3 * parts.size()))});
    EXPECT_NEAR(to_host(part_sums)[0], to_host(sums)[0], 1e-12);
    for (Size i = 0; i < rows * count; ++i)
      EXPECT_NEAR(to_host(g)[i], all[i / count * classes + first + i % count], 1e-15);
  }
}

TYPED_TEST(LossOf, NaNAndInfinityReachTheSum) {
  using T = TypeParam;
  const Vector<double> sums("sums", 1);
  for (T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    for (LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
      const auto p = to_device<T>({1, bad}, 2, 1), t = to_device<T>({2, 3}, 2, 1);
      loss_and_gradient<T>(kind, p, t, 2, sums, Matrix<T>());
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
    loss_and_gradient<T>(kind, t, t, 2, sums, g);
    EXPECT_EQ(to_host(g), (std::vector<T>{0, 0}));
    EXPECT_EQ(to_host(sums)[0], 0);
  }
}

template <class T>
class HalfLoss : public testing::Test {};
using HalfTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfLoss, HalfTypes);

TYPED_TEST(HalfLoss, IsComputedInFloatAndItsGradientScaled) {
  using T = TypeParam;
  const double unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;
  for (const LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
    SCOPED_TRACE(name_of(kind));
    const Matrix<T> p("p", 5, 3), g("g", 5, 3);
    const Matrix<float> t("t", 5, 3), wide_g("g", 5, 3);
    fill_normal(p, key(1));
    fill_normal(t, key(2));
    const auto host = to_host(p);
    const auto wide_p = to_device<float>(std::vector<float>(host.begin(), host.end()), 5, 3);
    const Vector<double> sums("sums", 1), wide_sums("sums", 1);
    loss_and_gradient<T>(kind, p, t, 1 << 20, sums, g, {1024});
    loss_and_gradient<float>(kind, wide_p, t, 1 << 10, wide_sums, wide_g);
    EXPECT_EQ(to_host(sums)[0], to_host(wide_sums)[0]);
    const auto got = to_host(g);
    const auto wanted = to_host(wide_g);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(static_cast<float>(got[i]), wanted[i], 1.01 * unit * std::abs(wanted[i]) + 1e-9);
  }
}

}  // namespace
}  // namespace tessera
