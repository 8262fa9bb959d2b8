// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "device_data.hpp"
#include "nn/serial_model.hpp"

namespace tessera::test {

/// Makes a model; parameters that begin as zeros or ones get normal numbers.
inline SerialModel<double> network(const ModelSpec& spec, Size rows, LossKind loss) {
  SerialModel<double> net(spec, rows, loss);
  std::uint64_t seed = 100;
  for (const LayerSpec& layer : spec.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      const auto values = net.parameter(net.parameters(), path_of(layer, parameter));
      if (parameter.initial != Initial::drawn)
        fill_normal(Matrix<double>(values.data(), 1, values.extent(0)), key(seed++));
    }
  return net;
}

/// Checks the gradient of every parameter against central differences of the loss.
inline void expect_gradient(SerialModel<double>& net, const Matrix<double>& x,
                            const Matrix<double>& y) {
  net.compute_gradients(x, y);
  const std::vector<double> gradient = to_host(net.gradients());
  const std::vector<double> at = to_host(net.parameters());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    constexpr double h = 1e-5;
    const auto loss_at = [&](double value) {
      std::vector<double> moved = at;
      moved[i] = value;
      Kokkos::deep_copy(net.parameters(), to_device(moved));
      return net.loss(x, y);
    };
    const double difference = (loss_at(at[i] + h) - loss_at(at[i] - h)) / (2 * h);
    ASSERT_TRUE(std::isfinite(difference) && std::isfinite(gradient[i]));
    worst = std::max(worst, std::abs(difference - gradient[i]));
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 1e-3);
  EXPECT_LT(worst / largest, 1e-6);
}

}  // namespace tessera::test
