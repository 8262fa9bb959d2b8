// SPDX-License-Identifier: Apache-2.0
// Networks whose derivatives travel with their values.
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "expect_error.hpp"
#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::expect_gradient;
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

// u is taken from the row of the boundary only, whose derivatives nobody computes.
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

TEST(Pinn, GradientsAgreeWithFiniteDifferences) {
  for (const Activation output : {Activation::identity, Activation::tanh})
    for (const Size samples : {1, 3}) {
      SCOPED_TRACE(testing::Message() << name_of(output) << ", " << samples << " samples");
      auto net = network(pinn({.width = 5, .layers = 3},
                              {.activation = Activation::tanh, .output_activation = output}),
                         samples, LossKind::poisson);
      std::vector<double> x;
      for (Size i = 0; i < samples; ++i) {
        const double part = 0.2 + 0.3 * static_cast<double>(i);
        for (const double element : jet_of({part, 1 - part * part}, {1, part}))
          x.push_back(element);
      }
      expect_gradient(net, to_device(x, 6 * samples, 2), test::normal(6 * samples, 1, 3));
    }
}

/// The gradient of a sum of the output, in random directions, by every element of the input.
TEST(JetActivation, InputGradientsAgreeWithFiniteDifferences) {
  const Size samples = 3, width = 5, rows = samples * jet_rows;
  const LayerSpec layer = jet_activation("y", "u", 0, width, Activation::tanh, "mlp");
  const Gemm<double> gemm;
  const Matrix<double> y("y", rows, width), dx("dx", rows, width);
  const auto bias = test::normal(1, width, 1), direction = test::normal(rows, width, 2);
  const auto d = to_host(direction);
  const Vector<double> dbias("dbias", width);
  LayerCall<double> call{layer, gemm, samples};
  call.parameters[0] = Vector<double>(bias.data(), width);
  call.output = y;
  const auto value_at = [&](const std::vector<double>& x) {
    call.inputs[0] = to_device(x, rows, width);
    forward(call);
    const auto out = to_host(y);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += d[i] * out[i];
    return sum;
  };
  const auto x = to_host(test::normal(rows, width, 3));
  value_at(x);
  call.output_gradient = direction;
  call.input_gradients[0] = dx;
  call.parameter_gradients[0] = dbias;
  backward(call);
  const auto gradient = to_host(dx), bias_gradient = to_host(dbias);
  std::vector<double> of_values(width);
  for (Size i = 0; i < rows * width; ++i) {
    auto up = x, down = x;
    up[i] += 1e-5, down[i] -= 1e-5;
    EXPECT_NEAR((value_at(up) - value_at(down)) / 2e-5, gradient[i], 1e-8) << i;
    const Size row = i / width % jet_rows;
    if (row == 0 || row == jet_rows - 1) of_values[i % width] += gradient[i];
  }
  for (Size j = 0; j < width; ++j) EXPECT_NEAR(bias_gradient[j], of_values[j], 1e-13);

  // Over the gradient of the output, and added to what is there.
  value_at(x);
  Kokkos::deep_copy(dx, direction);
  call.output_gradient = dx;
  call.add_parameter_gradients = true;
  backward(call);
  EXPECT_EQ(to_host(dx), gradient);
  for (Size j = 0; j < width; ++j) EXPECT_NEAR(to_host(dbias)[j], 2 * bias_gradient[j], 1e-13);
}

TEST(Pinn, SettingsAreChecked) {
  const MlpConfig tanh{.activation = Activation::tanh};
  EXPECT_THROW(pinn({.width = 0}, tanh), ConfigError);
  EXPECT_THROW(pinn({.layers = 0}, tanh), ConfigError);
  EXPECT_EQ(error_of([] { pinn({}, {.activation = Activation::relu}); }),
            "model.activation = \"relu\": must be \"tanh\" or \"identity\" for model.kind = "
            "\"pinn\", which needs its first three derivatives");
  EXPECT_THROW(pinn({}, {.activation = Activation::tanh, .output_activation = Activation::gelu}),
               ConfigError);
}

}  // namespace
}  // namespace tessera
