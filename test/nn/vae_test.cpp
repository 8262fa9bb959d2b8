// SPDX-License-Identifier: Apache-2.0
// The draw from a normal distribution, with the term that it adds to the loss, by itself and in a
// variational autoencoder.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "nn/finite_differences.hpp"
#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_device;
using test::to_host;

LayerAlone<double> draw_alone(Size samples, Size width, double beta = 1) {
  return LayerAlone<double>(reparameterize("z", "u", 0, 1, width, beta, 42), samples);
}

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
  const LayerAlone<double> alone = draw_alone(2, 2, 3);
  Kokkos::deep_copy(alone.x[0], to_device<double>({1, 0, -2, 0.5}, 2, 2));
  Kokkos::deep_copy(alone.x[1], to_device<double>({0, std::log(4.0), 0, 0}, 2, 2));
  forward(alone.call);
  // (m^2 + v - 1 - log v) / 2 of each variable: 1/2, (3 - log 4) / 2, 2, 1/8
  EXPECT_NEAR(to_host(alone.loss)[0], 3 * (0.5 + (3 - std::log(4.0)) / 2 + 2 + 0.125), 1e-14);
}

TEST(Reparameterize, AForwardPassThatComputesAgainAddsNothing) {
  LayerAlone<double> alone = draw_alone(5, 3);
  forward(alone.call);
  const auto z = to_host(alone.y);
  Kokkos::deep_copy(alone.loss, -7);
  Kokkos::deep_copy(alone.y, 0);
  alone.call.batch.loss = nullptr;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), z);
  EXPECT_EQ(to_host(alone.loss)[0], -7);
}

TEST(Reparameterize, NoiseIsThatOfTheRowInTheWholeBatch) {
  const auto whole = noise_of_rows(0, 7, 5), tail = noise_of_rows(3, 4, 5);
  EXPECT_EQ(tail, std::vector<double>(whole.begin() + 9, whole.end()));
}

TEST(Reparameterize, ADrawFromThePriorIsTheNoise) {
  LayerAlone<double> alone = draw_alone(7, 3);
  alone.call.batch.from_prior = true;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.y), noise_of_rows(11, 7, 4));
}

TEST(Reparameterize, NoiseIsNewInEachStepAndWithAnotherSeed) {
  const auto noise = noise_of_rows(0, 7, 5), next = noise_of_rows(0, 7, 6),
             other = noise_of_rows(0, 7, 5, 43);
  for (std::size_t i = 0; i < noise.size(); ++i) {
    EXPECT_NE(noise[i], next[i]);
    EXPECT_NE(noise[i], other[i]);
  }
}

TEST(Reparameterize, NoiseIsStandardNormal) {
  const auto noise = noise_of_rows(0, 20000, 1);
  const auto count = static_cast<double>(noise.size());
  double sum = 0, squares = 0;
  for (const double e : noise) sum += e, squares += e * e;
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2 / count));
}

/// Returns numbers in [0, 1].
Matrix<double> pixels(Size samples, Size width) {
  std::vector<double> values;
  for (Size i = 0; i < samples * width; ++i) values.push_back(static_cast<double>(i * 7 % 11) / 10);
  return to_device(values, samples, width);
}

/// With kernels of zero, logits, mean and logvar are biases. The loss of each sample is then
/// 6 log 2 + beta KL.
TEST(Vae, LossIsASumOverPixelsAndLatentVariablesAndAMeanOverSamples) {
  for (const Size samples : {1, 4}) {
    const ModelSpec model = vae({.input_width = 6, .hidden = {5}, .latent = 2, .beta = 3},
                                {.initializer = Initializer::zeros});
    test::SerialModel<double> net(model, samples, LossKind::bce);
    Kokkos::deep_copy(net.parameter(net.parameters(), "mean/bias"), to_device<double>({1, -2}));
    Kokkos::deep_copy(net.parameter(net.parameters(), "logvar/bias"),
                      to_device<double>({std::log(4.0), 0}));
    const auto x = pixels(samples, 6);
    const double divergence = (1 + 3 - std::log(4.0)) / 2 + 2;
    EXPECT_NEAR(net.loss(x, x), 6 * std::log(2.0) + 3 * divergence, 1e-13);
  }
}

TEST(Vae, HasTwoHeadsOnOneLayerAndTheHiddenLayersInReverse) {
  const ModelSpec model = vae({.input_width = 9, .hidden = {5, 4}, .latent = 3});
  std::string text;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.name != "kernel") continue;
      text += path_of(layer, parameter) + " " + std::to_string(parameter.shape[0]) +
              parameter.logical_axes[0] + " " + std::to_string(parameter.shape[1]) +
              parameter.logical_axes[1] + "; ";
    }
  EXPECT_EQ(text,
            "encoder1/kernel 9embed 5mlp; encoder2/kernel 5mlp 4embed; mean/kernel 4embed 3embed; "
            "logvar/kernel 4embed 3embed; decoder1/kernel 3embed 4mlp; decoder2/kernel 4mlp "
            "5embed; decoder3/kernel 5embed 9mlp; ");
  EXPECT_EQ(model.input_width, 9);
  EXPECT_EQ(model.output_width(), 9);
  // The rows of heads follow the columns of the layer that they read.
  const ModelSpec odd = vae({.input_width = 9, .hidden = {5}, .latent = 3});
  EXPECT_EQ(odd.layers[2].parameters[0].logical_axes, (std::vector<std::string>{"mlp", "embed"}));
}

}  // namespace
}  // namespace tessera
