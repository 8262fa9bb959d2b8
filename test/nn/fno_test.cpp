// SPDX-License-Identifier: Apache-2.0
// The Fourier neural operator as a model.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/models/models.hpp>

#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::expect_gradient;
using test::network;
using test::normal;
using test::to_host;

constexpr FnoConfig small_fno{.grid = 5, .modes = 2, .width = 2, .layers = 2, .projection = 3};

TEST(Fno, GradientsAgreeWithFiniteDifferences) {
  for (const Size samples : {1, 3}) {
    SCOPED_TRACE(samples);
    auto net =
        network(fno(small_fno, {.activation = Activation::gelu}), samples, LossKind::relative_l2);
    expect_gradient(net, normal(samples * 25, 3, 1), normal(samples * 25, 1, 2));
  }
}

TEST(Fno, InitialModesAreUniform) {
  const ModelSpec model = fno({.grid = 8, .modes = 4, .width = 8, .layers = 1});
  const test::SerialModel<double> net(model, 1);
  const auto r = to_host(net.parameter(net.parameters(), "layer1/modes"));
  double least = 1, most = 0, sum = 0;
  for (const double value : r) {
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const double limit = 1.0 / 64;
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.01 * limit);
  EXPECT_LT(most, limit);
  EXPECT_GT(most, 0.99 * limit);
  EXPECT_NEAR(sum / static_cast<double>(r.size()), limit / 2, 0.02 * limit);
}

TEST(Fno, SizesAreChecked) {
  EXPECT_THROW(fno({.grid = 7, .modes = 4}), ConfigError);
  EXPECT_NO_THROW(fno({.grid = 8, .modes = 4}));
  EXPECT_THROW(fno({.layers = 0}), ConfigError);
  EXPECT_THROW(fno({.projection = -1}), ConfigError);
}

// Two products for each transform, one of complex numbers for each mode, and the dense layers.
// Along the first dimension k1 and -k1 are one.
TEST(Fno, FlopsAreThoseOfTheClosedForm) {
  const Size n = 32, m = 12, w = 32, samples = 3;
  const ModelSpec model = fno({.grid = n, .modes = m, .width = w, .layers = 4, .projection = 128});
  const Size transform = 2 * (2 * (m + 1) * n * n * w + 2 * m * 4 * m * n * w);
  const Size layer = 2 * transform + 8 * 2 * m * m * w * w + 2 * n * n * w * w;
  const Size dense = 2 * n * n * (w * 128 + 128);
  const Size lift = 2 * n * n * 3 * w;  // no gradient of x
  EXPECT_EQ(count_flops(model.layers, samples).forward, samples * (4 * layer + dense + lift));
  // Transforms have no parameters: their backward pass is another transform.
  EXPECT_EQ(count_flops(model.layers, samples).backward,
            samples * (4 * (2 * layer - 2 * transform) + 2 * dense + lift));
}

}  // namespace
}  // namespace tessera
