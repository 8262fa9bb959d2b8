// SPDX-License-Identifier: Apache-2.0
// The network of a PINN computes derivatives of u beside u.
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::network;
using test::to_device;
using test::to_host;

using Point = std::array<double, 2>;

/// Rows of a sample: a point inside, the unit vectors, zeros, a point of the boundary.
std::vector<double> jet_of(const Point& inside, const Point& boundary) {
  return {inside[0], inside[1], 1, 0, 0, 1, 0, 0, 0, 0, boundary[0], boundary[1]};
}

std::vector<double> prediction(test::SerialModel<double>& net, const Point& inside,
                               const Point& boundary) {
  net.loss(to_device(jet_of(inside, boundary), 6, 2), Matrix<double>("y", 6, 1));
  return to_host(net.output());
}

// The row of the boundary has u without derivatives. It is the reference.
TEST(Pinn, JetsAreTheDerivativesOfTheNetwork) {
  for (const Activation output : {Activation::identity, Activation::tanh}) {
    auto net = network(pinn({.width = 7, .layers = 2},
                            {.activation = Activation::tanh, .output_activation = output}),
                       1, LossKind::poisson);
    const auto u = [&](double x, double y) { return prediction(net, {0.1, 0.2}, {x, y})[5]; };
    for (const Point& at : {Point{0.3, 0.8}, Point{-1.2, 0.05}}) {
      const std::vector<double> jet = prediction(net, at, {0, 0});
      const auto [x, y] = at;
      EXPECT_EQ(jet[0], u(x, y));
      constexpr double h = 1e-4;
      const double middle = u(x, y), left = u(x - h, y), right = u(x + h, y), below = u(x, y - h),
                   above = u(x, y + h);
      EXPECT_NEAR(jet[1], (right - left) / (2 * h), 1e-7);
      EXPECT_NEAR(jet[2], (above - below) / (2 * h), 1e-7);
      EXPECT_NEAR(jet[3], (right - 2 * middle + left) / (h * h), 1e-6);
      EXPECT_NEAR(jet[4], (above - 2 * middle + below) / (h * h), 1e-6);
      for (std::size_t row = 1; row < 5; ++row) EXPECT_GT(std::abs(jet[row]), 1e-3) << row;
    }
  }
}

}  // namespace
}  // namespace tessera
