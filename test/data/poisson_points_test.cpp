// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::Made;
using data_test::make;

const DataConfig points_config{.kind = DataKind::poisson_points, .samples = 20, .seed = 3};

ModelSpec small_pinn() { return pinn({.width = 3, .layers = 1}, {.activation = Activation::tanh}); }

bool is_inside(double x) { return 0 < x && x < 1; }

TEST(PoissonPoints, LieInsideAndOnAllFourSides) {
  constexpr Size samples = 400;
  const Made points = make(points_config, small_pinn(), {0, samples});
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

}  // namespace
}  // namespace tessera
