// SPDX-License-Identifier: Apache-2.0
// Darcy flow: the equation's solver, and the samples made with it.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <tessera/data/diffusion.hpp>
#include <tessera/nn/models/models.hpp>
#include <tessera/random/fill.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::Made;
using data_test::make;
using test::to_device;
using test::to_host;
using Numbers = std::vector<double>;

/// h^2 times the operator on u, of one sample, written down a second time: harmonic means between
/// cells, twice the cell's own coefficient at the boundary.
Numbers apply(const Numbers& a, const Numbers& u, Size n) {
  Numbers result(a.size());
  for (Size i = 0; i < n * n; ++i) {
    const auto flow_to = [&](bool inside, Size other) {
      return inside ? 2 * a[i] * a[other] / (a[i] + a[other]) * (u[i] - u[other]) : 2 * a[i] * u[i];
    };
    result[i] = flow_to(i / n > 0, i - n) + flow_to(i / n < n - 1, i + n) +
                flow_to(i % n > 0, i - 1) + flow_to(i % n < n - 1, i + 1);
  }
  return result;
}

Numbers solve(const Numbers& a, Size samples, Size n) {
  const Matrix<double> u("u", samples, n * n);
  solve_diffusion(to_device(a, samples, n * n), u,
                  Vector<double>("scratch", diffusion_scratch(samples, n)));
  return to_host(u);
}

Numbers normal_numbers(Size n, std::uint64_t seed) {
  const Matrix<double> values("values", 1, n);
  fill_normal(values, key(seed));
  return to_host(values);
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// |h^2 - operator on u| / |h^2| of one sample.
double relative_residual_of(const Numbers& a, const Numbers& u, Size n) {
  const double right = 1 / static_cast<double>(n * n);
  Numbers residual = apply(a, u, n);
  for (double& value : residual) value = right - value;
  return std::sqrt(dot(residual, residual)) / (right * static_cast<double>(n));
}

TEST(Diffusion, OperatorOnTwoByTwoCellsIsWrittenDown) {
  const Numbers a{1, 3, 2, 6}, u{1, 0, 0, 0};
  const Numbers expected{1.5 + 4.0 / 3 + 4, -1.5, -4.0 / 3, 0}, got = apply(a, u, 2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 1e-14) << i;
}

TEST(Diffusion, SolvesForAnyPositiveCoefficients) {
  for (const Size n : {1, 2, 7}) {
    Numbers a = normal_numbers(n * n, 1);
    for (double& value : a) value = std::exp(value);
    EXPECT_LT(relative_residual_of(a, solve(a, 1, n), n), 1.001e-8) << n;
  }
}

/// u for a = 1: the sum over odd k, l of 16 sin(k pi x) sin(l pi y) / (pi^4 k l (k^2 + l^2)).
double series(double x, double y) {
  constexpr double pi = std::numbers::pi;
  double sum = 0;
  for (int k = 1; k < 200; k += 2)
    for (int l = 1; l < 200; l += 2)
      sum += std::sin(k * pi * x) * std::sin(l * pi * y) / (1.0 * k * l * (k * k + l * l));
  return 16 * sum / (pi * pi * pi * pi);
}

TEST(Diffusion, SolutionsTendToTheSeries) {
  const auto error = [](Size n, double a) {
    const Numbers u = solve(Numbers(n * n, a), 1, n);
    double worst = 0;
    for (Size i = 0; i < n * n; ++i)
      worst = std::max(worst, std::abs(a * u[i] - series((static_cast<double>(i / n) + 0.5) / n,
                                                         (static_cast<double>(i % n) + 0.5) / n)));
    return worst;
  };
  const double coarse = error(8, 3), fine = error(24, 12);
  EXPECT_LT(fine, 3e-4);               // of at most 0.074
  EXPECT_NEAR(coarse / fine, 9, 1.5);  // second order
}

TEST(Diffusion, NoSolutionIsNaN) {
  EXPECT_TRUE(std::isnan(solve({1, 1, 1, std::nan("")}, 1, 2)[0]));
}

const DataConfig darcy_config{.kind = DataKind::darcy, .samples = 40, .seed = 1};

ModelSpec model_on_grid(Size n) { return fno({.grid = n, .modes = 1, .width = 1, .layers = 1}); }

/// Returns the coefficients of samples that are functions on n x n cells.
Numbers coefficients(const Made& made) {
  Numbers a;
  for (std::size_t i = 0; i < made.y.size(); ++i) a.push_back(made.x[3 * i]);
  return a;
}

TEST(Darcy, SamplesSolveTheEquation) {
  const Size n = 12, cells = n * n;
  const Made made = make(darcy_config, model_on_grid(n), {3, 5});
  const Numbers all_a = coefficients(made);
  Size low = 0, high = 0;
  for (Size s = 0; s < 5; ++s) {
    const Numbers a(all_a.begin() + s * cells, all_a.begin() + (s + 1) * cells);
    Numbers u(made.y.begin() + s * cells, made.y.begin() + (s + 1) * cells);
    for (double& value : u) value /= 100;
    EXPECT_LT(relative_residual_of(a, u, n), 1.001e-8);
    EXPECT_GT(relative_residual_of(a, u, n), 0);
    low += std::count(a.begin(), a.end(), 3);
    high += std::count(a.begin(), a.end(), 12);
  }
  EXPECT_EQ(low + high, 5 * cells);
  EXPECT_GT(low, 0);
  EXPECT_GT(high, 0);
  EXPECT_EQ(made.x[3 * (n + 2) + 1], 1.5 / n);
  EXPECT_EQ(made.x[3 * (n + 2) + 2], 2.5 / n);
}

TEST(Darcy, FloatsAreRoundedDoubles) {
  const Made made = make(darcy_config, model_on_grid(6), {30, 6});
  const Made as_float = make<float>(darcy_config, model_on_grid(6), {30, 6});
  for (std::size_t i = 0; i < made.y.size(); ++i)
    EXPECT_EQ(as_float.y[i], static_cast<float>(made.y[i]));
}

// Every third centre of the fine grid is one of the coarse grid's.
TEST(Darcy, ASampleIsOneFunctionOnEveryGrid) {
  const Numbers coarse = coefficients(make(darcy_config, model_on_grid(8), {0, 20}));
  const Numbers fine = coefficients(make(darcy_config, model_on_grid(24), {0, 20}));
  for (Size i = 0; i < 20 * 64; ++i) {
    const Size s = i / 64, row = 3 * (i / 8 % 8) + 1, column = 3 * (i % 8) + 1;
    EXPECT_EQ(coarse[i], fine[s * 576 + row * 24 + column]) << i;
  }
}

}  // namespace
}  // namespace tessera
