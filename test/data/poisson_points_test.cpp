// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

ModelSpec small_pinn() { return pinn({.width = 3, .layers = 1}, {.activation = Activation::tanh}); }

template <class T>
struct Points {
  std::vector<T> x, y;
  friend bool operator==(const Points&, const Points&) = default;
};

template <class T>
Points<T> points_of(std::uint64_t seed, Range samples) {
  const Matrix<T> x("x", samples.count * jet_rows, 2), y("y", samples.count * jet_rows, 1);
  Kokkos::deep_copy(x, T(7));  // all is written
  Kokkos::deep_copy(y, T(7));
  const DataConfig data{.kind = DataKind::poisson_points, .seed = seed};
  row_of(data.kind).fill.run(data, small_pinn(), DataBlock<T>{samples, x, y});
  return {test::to_host(x), test::to_host(y)};
}

bool is_inside(double x) { return 0 < x && x < 1; }

TEST(PoissonPoints, LieInsideAndOnAllFourSides) {
  constexpr Size samples = 400;
  const Points<double> points = points_of<double>(3, {0, samples});
  std::array<Size, 4> on_side{}, in_quarter{};
  for (Size i = 0; i < samples; ++i) {
    const double* const x = points.x.data() + i * jet_rows * 2;
    const double* const y = points.y.data() + i * jet_rows;
    EXPECT_TRUE(is_inside(x[0]) && is_inside(x[1]));
    ++in_quarter[2 * (x[0] < 0.5) + (x[1] < 0.5)];
    EXPECT_EQ(std::vector<double>(x + 2, x + 10), (std::vector<double>{1, 0, 0, 1, 0, 0, 0, 0}));
    const std::size_t across = is_inside(x[10]) ? 1 : 0;
    EXPECT_TRUE(x[10 + across] == 0 || x[10 + across] == 1);
    EXPECT_TRUE(is_inside(x[11 - across]));
    ++on_side[2 * across + (x[10 + across] == 1)];
    const double solution = std::sin(M_PI * x[0]) * std::sin(M_PI * x[1]);
    EXPECT_NEAR(y[0], 2 * M_PI * M_PI * solution, 1e-13);
    EXPECT_NEAR(y[1], solution, 1e-14);
    for (Size row = 2; row < jet_rows; ++row) EXPECT_EQ(y[row], 0);
  }
  // 100 each, give or take four standard deviations.
  for (const auto& counts : {on_side, in_quarter})
    for (const Size count : counts) EXPECT_NEAR(count, 100, 35);
}

TEST(PoissonPoints, AreFunctionsOfTheSeedAndTheirNumber) {
  const Points<float> all = points_of<float>(5, {0, 20}), some = points_of<float>(5, {7, 9});
  EXPECT_EQ(some.x, std::vector<float>(all.x.begin() + 7 * 12, all.x.begin() + 16 * 12));
  EXPECT_EQ(some.y, std::vector<float>(all.y.begin() + 7 * 6, all.y.begin() + 16 * 6));
  EXPECT_NE(points_of<float>(6, {7, 9}), some);
  EXPECT_EQ(points_of<float>(5, {7, 0}).x.size(), 0u);
  const std::vector<double> same = points_of<double>(5, {7, 9}).x;
  EXPECT_EQ(std::vector<double>(some.x.begin(), some.x.end()), same);
}

TEST(PoissonPoints, NeedAModelOfJets) {
  const DataConfig data{.kind = DataKind::poisson_points};
  EXPECT_NO_THROW(row_of(data.kind).check(data, small_pinn()));
  EXPECT_THROW(row_of(data.kind).check(data, mlp({.widths = {2, 3, 1}})), ConfigError);
}

}  // namespace
}  // namespace tessera
