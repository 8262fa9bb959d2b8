// SPDX-License-Identifier: Apache-2.0
// Sizes that models reject, and the derivatives that the network of a PINN computes beside u.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"
#include "nn/serial_model.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::to_device;
using test::to_host;

TEST(Models, RejectBadSizes) {
  const MlpConfig tanh{.activation = Activation::tanh};
  const auto rejects = [](const std::string& message, const auto& make) {
    EXPECT_EQ(error_of([&] { make(); }), message);
  };
  rejects("model.residual_mlp.width = 0: must be positive", [] { residual_mlp({3, 0, 7, 1, 2}); });
  rejects("model.transformer.heads = 4: must divide model.transformer.width = 6 evenly",
          [] { transformer({.width = 6, .heads = 4}); });
  rejects("model.transformer.heads = 0: must be positive", [] { transformer({.heads = 0}); });
  rejects("model.transformer.top_k = 4: must be from 1 to 3",
          [] { transformer({.experts = 3, .top_k = 4}); });
  rejects("model.transformer.top_k = 9: must be from 1 to 8",
          [] { transformer({.experts = 30, .top_k = 9}); });
  rejects("model.transformer.balance_loss = 1.0: needs model.transformer.experts",
          [] { transformer({.balance_loss = 1}); });
  rejects("model.transformer.shared_experts = 1: needs model.transformer.experts",
          [] { transformer({.shared_experts = 1}); });
  rejects("model.transformer.balance_loss = 1.0: needs model.transformer.balance = \"loss\"",
          [] { transformer({.experts = 3, .balance_loss = 1, .balance = Balance::bias}); });
  rejects("model.transformer.bias_rate = 1.0: needs model.transformer.balance = \"bias\"",
          [] { transformer({.experts = 3, .bias_rate = 1}); });
  rejects("model.vae.latent = 0: must be positive", [] { vae({.latent = 0}); });
  rejects("model.output_activation = \"sigmoid\": must be \"identity\" for model.kind = \"vae\"",
          [] { vae({}, {.output_activation = Activation::sigmoid}); });
  rejects("model.pinn.layers = 0: must be positive", [&] { pinn({.layers = 0}, tanh); });
  rejects(
      "model.activation = \"relu\": must be \"tanh\" or \"identity\" for model.kind = \"pinn\", "
      "which needs its first three derivatives",
      [] { pinn({}, {.activation = Activation::relu}); });
  rejects("model.fno.grid = 7: must be at least twice model.fno.modes = 4",
          [] { fno({.grid = 7, .modes = 4}); });
  EXPECT_NO_THROW(fno({.grid = 8, .modes = 4}));
}

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
    test::SerialModel<double> net(pinn({.width = 7, .layers = 2}, {.activation = Activation::tanh,
                                                                   .output_activation = output}),
                                  1, LossKind::poisson);
    for (const std::string layer : {"layer1", "layer2", "layer3"}) {
      const Vector<double> bias = net.parameter(net.parameters(), layer + "/bias");
      fill_normal(Matrix<double>(bias.data(), 1, bias.extent(0)), key(100));
    }
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
