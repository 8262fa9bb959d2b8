// SPDX-License-Identifier: Apache-2.0
// The draw from a normal distribution, with the term that it adds to the loss.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_device;
using test::to_host;

/// The draws of `samples` rows from the row `first` on, with mean 0 and variance 1.
std::vector<double> noise_of_rows(Size first, Size samples, Size step, std::uint64_t seed = 42) {
  LayerAlone<double> alone(reparameterize("z", "u", 0, 1, 3, 1, seed), samples);
  for (const Matrix<double>& x : alone.x) Kokkos::deep_copy(x, 0);
  alone.call.batch.first = first;
  alone.call.batch.step = step;
  forward(alone.call);
  return to_host(alone.y);
}

TEST(Reparameterize, AddsTheSumOfTheDivergences) {
  const LayerAlone<double> alone(reparameterize("z", "u", 0, 1, 2, 3, 42), 2);
  Kokkos::deep_copy(alone.x[0], to_device<double>({1, 0, -2, 0.5}, 2, 2));
  Kokkos::deep_copy(alone.x[1], to_device<double>({0, std::log(4.0), 0, 0}, 2, 2));
  forward(alone.call);
  // (m^2 + v - 1 - log v) / 2 of each variable: 1/2, (3 - log 4) / 2, 2, 1/8
  EXPECT_NEAR(to_host(alone.loss)[0], 3 * (0.5 + (3 - std::log(4.0)) / 2 + 2 + 0.125), 1e-14);
}

TEST(Reparameterize, AForwardPassThatComputesAgainAddsNothing) {
  LayerAlone<double> alone(reparameterize("z", "u", 0, 1, 3, 1, 42), 5);
  forward(alone.call);
  const auto z = to_host(alone.y);
  Kokkos::deep_copy(alone.loss, -7);
  Kokkos::deep_copy(alone.y, 0);
  alone.call.batch.loss = nullptr;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), z);
  EXPECT_EQ(to_host(alone.loss)[0], -7);
}

TEST(Reparameterize, NoiseIsThatOfTheStepTheSeedAndTheRowInTheWholeBatch) {
  const auto whole = noise_of_rows(0, 7, 5), next = noise_of_rows(0, 7, 6),
             other = noise_of_rows(0, 7, 5, 43);
  EXPECT_EQ(noise_of_rows(3, 4, 5), std::vector<double>(whole.begin() + 9, whole.end()));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(whole[i], next[i]);
    EXPECT_NE(whole[i], other[i]);
  }
  // A draw from the prior is the noise.
  LayerAlone<double> alone(reparameterize("z", "u", 0, 1, 3, 1, 42), 7);
  alone.call.batch.from_prior = true;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), noise_of_rows(11, 7, 4));
}

}  // namespace
}  // namespace tessera
