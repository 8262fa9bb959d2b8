// SPDX-License-Identifier: Apache-2.0
// The draw from a normal distribution, with the term that it adds to the loss, by itself and in a
// variational autoencoder.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>
#include <tessera/nn/products/convert.hpp>
#include <tessera/optim/optimizer.hpp>

#include "expect_error.hpp"
#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::expect_gradient;
using test::network;
using test::to_device;
using test::to_host;

/// Of one layer whose operands are all its own.
template <class T>
struct DrawAlone {
  using State = StateOf<T>;
  DrawAlone(Size samples, Size width, double beta = 1, std::uint64_t seed = 42)
      : layer(reparameterize("z", "u", 0, 1, width, beta, seed)),
        mean("mean", samples, width),
        logvar("logvar", samples, width),
        z("z", samples, width),
        dz("dz", samples, width),
        dmean("dmean", samples, width),
        dlogvar("dlogvar", samples, width),
        loss("loss", 1) {
    fill_normal(mean, key(1));
    fill_normal(logvar, key(2));
    fill_normal(dz, key(3));
    Kokkos::deep_copy(loss, -7);
    call.samples = samples;
    call.inputs = {mean, logvar};
    call.output = z;
    call.output_gradient = dz;
    call.input_gradients = {dmean, dlogvar};
    call.batch.step = 1;
    call.batch.loss = loss.data();
    call.batch.gradient_scale = State(0.25);
  }
  LayerSpec layer;
  Gemm<T> gemm;
  Matrix<T> mean, logvar, z, dz, dmean, dlogvar;
  Vector<double> loss;
  LayerCall<T> call{layer, gemm};
};

/// What a batch of `samples` draws with mean 0 and variance 1, from the row `first` on.
std::vector<double> noise_of_rows(Size first, Size samples, Size step, std::uint64_t seed = 42) {
  DrawAlone<double> alone(samples, 3, 1, seed);
  Kokkos::deep_copy(alone.mean, 0);
  Kokkos::deep_copy(alone.logvar, 0);
  alone.call.batch.first = first;
  alone.call.batch.step = step;
  forward(alone.call);
  return to_host(alone.z);
}

TEST(Reparameterize, GradientsAgreeWithFiniteDifferences) {
  for (const double beta : {0.0, 1.0, 3.0}) {
    DrawAlone<double> alone(5, 3, beta);
    alone.call.batch.first = 11;
    // The gradient of what backward is given one for: dz z + gradient_scale beta KL.
    const auto value = [&] {
      forward(alone.call);
      const auto z = to_host(alone.z), dz = to_host(alone.dz);
      double sum = 0.25 * to_host(alone.loss)[0];
      for (std::size_t i = 0; i < z.size(); ++i) sum += z[i] * dz[i];
      return sum;
    };
    backward(alone.call);
    const auto check = [&](const Matrix<double>& input, const Matrix<double>& gradient) {
      const auto at = to_host(input), expected = to_host(gradient);
      for (std::size_t i = 0; i < at.size(); ++i) {
        const auto value_at = [&](double moved) {
          auto values = at;
          values[i] = moved;
          Kokkos::deep_copy(input, to_device(values, 5, 3));
          return value();
        };
        EXPECT_NEAR((value_at(at[i] + 1e-5) - value_at(at[i] - 1e-5)) / 2e-5, expected[i], 1e-8);
      }
      Kokkos::deep_copy(input, to_device(at, 5, 3));
    };
    check(alone.mean, alone.dmean);
    check(alone.logvar, alone.dlogvar);
  }
}

TEST(Reparameterize, AGradientMayTakeTheMemoryOfTheOthers) {
  DrawAlone<double> alone(5, 3);
  backward(alone.call);
  const auto dmean = to_host(alone.dmean), dlogvar = to_host(alone.dlogvar);
  alone.call.input_gradients[0] = alone.dz;
  backward(alone.call);
  EXPECT_EQ(to_host(alone.dz), dmean);
  EXPECT_EQ(to_host(alone.dlogvar), dlogvar);
}

TEST(Reparameterize, AddsTheSumOfTheDivergences) {
  DrawAlone<double> alone(2, 2, 3);
  Kokkos::deep_copy(alone.mean, to_device<double>({1, 0, -2, 0.5}, 2, 2));
  Kokkos::deep_copy(alone.logvar, to_device<double>({0, std::log(4.0), 0, 0}, 2, 2));
  forward(alone.call);
  // (m^2 + v - 1 - log v) / 2 of each variable: 1/2, (3 - log 4) / 2, 2, 1/8
  EXPECT_NEAR(to_host(alone.loss)[0], 3 * (0.5 + (3 - std::log(4.0)) / 2 + 2 + 0.125), 1e-14);
}

TEST(Reparameterize, AForwardPassThatComputesAgainAddsNothing) {
  DrawAlone<double> alone(5, 3);
  forward(alone.call);
  const auto z = to_host(alone.z);
  Kokkos::deep_copy(alone.loss, -7);
  Kokkos::deep_copy(alone.z, 0);
  alone.call.batch.loss = nullptr;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.z), z);
  EXPECT_EQ(to_host(alone.loss)[0], -7);
}

TEST(Reparameterize, NoSamplesAddNothing) {
  DrawAlone<double> alone(0, 3);
  forward(alone.call);
  backward(alone.call);
  EXPECT_EQ(to_host(alone.loss)[0], 0);
}

TEST(Reparameterize, NoiseIsThatOfTheRowInTheWholeBatch) {
  const auto whole = noise_of_rows(0, 7, 5), tail = noise_of_rows(3, 4, 5);
  EXPECT_EQ(tail, std::vector<double>(whole.begin() + 9, whole.end()));
}

TEST(Reparameterize, ADrawFromThePriorIsTheNoise) {
  DrawAlone<double> alone(7, 3);
  alone.call.batch.from_prior = true;
  forward(alone.call);
  EXPECT_EQ(to_host(alone.z), noise_of_rows(0, 7, 1));
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

template <class T>
class ShortDraw : public testing::Test {};
using ShortDraws = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(ShortDraw, ShortDraws);

/// Float makes of the same inputs what is then rounded once; the sum is never rounded.
TYPED_TEST(ShortDraw, IsThatOfFloatsRoundedOnce) {
  using T = TypeParam;
  const DrawAlone<T> brief(6, 3, 2);
  const DrawAlone<float> wide(6, 3, 2);
  const auto widen = [](const Matrix<T>& from, const Matrix<float>& to) {
    convert<T, float>(Vector<const T>(from.data(), from.span()),
                      Vector<float>(to.data(), to.span()));
  };
  widen(brief.mean, wide.mean);
  widen(brief.logvar, wide.logvar);
  widen(brief.dz, wide.dz);
  forward(brief.call);
  forward(wide.call);
  backward(brief.call);
  backward(wide.call);
  const double unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;
  const auto expect_rounded = [&](const Matrix<T>& got, const Matrix<float>& wanted) {
    const auto a = to_host(got);
    const auto b = to_host(wanted);
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(static_cast<float>(a[i]), b[i], 1.01 * unit * std::abs(b[i]) + 1e-6) << i;
  };
  expect_rounded(brief.z, wide.z);
  expect_rounded(brief.dmean, wide.dmean);
  expect_rounded(brief.dlogvar, wide.dlogvar);
  EXPECT_EQ(to_host(brief.loss), to_host(wide.loss));
}

/// In [0, 1].
Matrix<double> pixels(Size samples, Size width) {
  std::vector<double> values;
  for (Size i = 0; i < samples * width; ++i) values.push_back(static_cast<double>(i * 7 % 11) / 10);
  return to_device(values, samples, width);
}

TEST(Vae, GradientsAgreeWithFiniteDifferences) {
  for (const std::vector<Size>& hidden : std::vector<std::vector<Size>>{{5, 4}, {5}, {}})
    for (const Activation activation : {Activation::tanh, Activation::relu})
      for (const Size samples : {1, 3}) {
        SCOPED_TRACE(testing::Message() << hidden.size() << " hidden layers, "
                                        << name_of(activation) << ", " << samples << " samples");
        const ModelSpec model = vae({.input_width = 6, .hidden = hidden, .latent = 3, .beta = 2},
                                    {.activation = activation});
        auto net = network(model, samples, LossKind::bce);
        net.set_step(4);
        const auto x = pixels(samples, 6);
        expect_gradient(net, x, x);
      }
}

/// Logits, mean and logvar are biases where all kernels are zero: the loss of each sample is
/// 6 log 2 + beta KL, whatever the sizes of x and z are.
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

TEST(Vae, LearnsWhileTheDivergenceStaysPositive) {
  const ModelSpec model = vae({.input_width = 9, .hidden = {16}, .latent = 2});
  test::SerialModel<double> net(model, 8, LossKind::bce);
  Optimizer<double> optimizer({.kind = OptimizerKind::adam}, model.num_parameters());
  const auto x = pixels(8, 9);
  const double first = net.loss(x, x);
  for (Size step = 1; step <= 300; ++step) {
    net.set_step(step);
    net.compute_gradients(x, x);
    EXPECT_GT(to_host(net.loss_sum())[1], 0) << step;
    optimizer.step(net.parameters(), Vector<const double>(net.gradients()), 1e-2);
  }
  double entropy = 0;  // of pixels between black and white, which no model can do without
  for (const double p : to_host(x))
    if (p > 0 && p < 1) entropy -= p * std::log(p) + (1 - p) * std::log(1 - p);
  const double last = net.loss(x, x);
  EXPECT_LT(last, 0.9 * first);
  EXPECT_GT(last, entropy / 8);
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

TEST(Vae, SizesAreChecked) {
  EXPECT_EQ(error_of([] { vae({.latent = 0}); }), "model.vae.latent = 0: must be positive");
  EXPECT_EQ(error_of([] { vae({.input_width = -1}); }),
            "model.vae.input_width = -1: must be positive");
  EXPECT_EQ(error_of([] {
              vae({.hidden = {3, 0}});
            }),
            "model.vae.hidden = [3, 0]: must all be positive");
  EXPECT_EQ(error_of([] { vae({}, {.output_activation = Activation::sigmoid}); }),
            "model.output_activation = \"sigmoid\": must be \"identity\" for model.kind = \"vae\"");
}

}  // namespace
}  // namespace tessera
