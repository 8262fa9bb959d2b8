// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "device_data.hpp"
#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::expect_gradient;
using test::network;
using test::normal;
using test::SerialModel;
using test::to_device;
using test::to_host;

constexpr std::array activations{Activation::identity, Activation::relu, Activation::tanh,
                                 Activation::sigmoid, Activation::gelu};
constexpr std::array losses{LossKind::mse, LossKind::mae, LossKind::relative_l2};

/// Three layers, so that a hidden one passes a gradient on; biases away from zero.
ModelSpec model_of(Activation activation, Activation output = Activation::identity) {
  return mlp({.widths = {3, 7, 5, 2}, .activation = activation, .output_activation = output});
}

class Gradient : public testing::TestWithParam<std::tuple<Activation, LossKind, Size>> {};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  const auto [activation, loss, rows] = GetParam();
  // The output passes through the activation as well.
  auto net = network(model_of(activation, activation), rows, loss);
  const auto x = normal(rows, 3, 1), y = normal(rows, 2, 2);
  expect_gradient(net, x, y);
}

INSTANTIATE_TEST_SUITE_P(All, Gradient,
                         testing::Combine(testing::ValuesIn(activations), testing::ValuesIn(losses),
                                          testing::Values(1, 7, 13)),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) + "_" +
                                  std::string(name_of(std::get<1>(info.param))) + "_" +
                                  std::to_string(std::get<2>(info.param)) + "_rows";
                         });

TEST(LayerGradient, ResidualBlocksAgreeWithFiniteDifferences) {
  for (const Activation activation : activations)
    for (const Size rows : {1, 7}) {
      const MlpConfig layers{.activation = activation, .output_activation = Activation::tanh};
      const ModelSpec spec = residual_mlp({3, 5, 7, 2, 2}, layers);
      auto net = network(spec, rows, LossKind::mse);
      SCOPED_TRACE(testing::Message() << name_of(activation) << ", rows " << rows);
      expect_gradient(net, normal(rows, 3, 1), normal(rows, 2, 2));
    }
}

/// A layer by itself: f(x) = sum of direction * layer(x).
void expect_input_gradient(const LayerSpec& layer, Size rows) {
  const Gemm<double> gemm;
  const Size in = layer.in, out = layer.out;
  const auto direction = normal(rows, out, 3);
  LayerCall<double> call{layer, gemm};
  std::vector<Matrix<double>> memory;
  std::vector<Vector<double>> parameters, gradients;
  for (const ParameterSpec& parameter : layer.parameters) {
    const auto values = normal(1, num_elements(parameter.shape), 4);
    parameters.emplace_back(values.data(), values.size());
    gradients.emplace_back("gradient", values.size());
    memory.push_back(values);
    call.parameters[parameters.size() - 1] = parameters.back();
    call.parameter_gradients[gradients.size() - 1] = gradients.back();
  }
  const Matrix<double> y("y", rows, out), kept("kept", rows, 2), dx("dx", rows, in);
  const auto f = [&](const std::vector<double>& x) {
    const Matrix<double> input = to_device(x, rows, in);
    call.inputs[0] = input;
    call.output = y;
    call.kept = kept;
    forward(call);
    const auto hy = to_host(y), hd = to_host(direction);
    double sum = 0;
    for (std::size_t i = 0; i < hy.size(); ++i) sum += hy[i] * hd[i];
    return sum;
  };
  const auto at = to_host(normal(rows, in, 2));
  for (const bool adds : {false, true}) {
    if (adds && !row_of(layer).adds_gradient) continue;
    Kokkos::deep_copy(dx, 7);
    f(at);
    const Matrix<double> input = to_device(at, rows, in);
    call.inputs[0] = input;
    call.output_gradient = direction;
    call.input_gradients[0] = dx;
    call.add_input_gradients = adds;
    backward(call);
    const auto gradient = to_host(dx);
    for (std::size_t i = 0; i < at.size(); ++i) {
      auto up = at, down = at;
      up[i] += 1e-5, down[i] -= 1e-5;
      EXPECT_NEAR((f(up) - f(down)) / 2e-5 + (adds ? 7 : 0), gradient[i], 1e-8) << layer.name;
    }
  }
}

TEST(LayerGradient, InputsAgreeWithFiniteDifferences) {
  expect_input_gradient(linear("linear", "u", 0, {"kernel", {3, 4}, {"embed", "mlp"}}), 5);
  expect_input_gradient(layer_norm("layer_norm", "u", 0, 5, "embed"), 4);
  for (const Activation activation : activations)
    if (activation != Activation::identity)  // whose gradient is the output's
      expect_input_gradient(
          pointwise(std::string(name_of(activation)), "u", 0, 4, activation, "mlp"), 5);
}

TEST(LayerGradient, TwoHalvesAddUpToTheWhole) {
  // Rows split unevenly; the loss gradient of a half is divided by the count of the whole.
  const ModelSpec spec = residual_mlp({3, 5, 4, 1, 2}, {.activation = Activation::gelu});
  const auto x = normal(7, 3, 1), y = normal(7, 2, 2);
  const auto gradients_of = [&](Size first, Size count) {
    SerialModel<double> net(spec, count);
    net.compute_gradients(rows_of(x, {first, count}), rows_of(y, {first, count}));
    return to_host(net.gradients());
  };
  const auto whole = gradients_of(0, 7), head = gradients_of(0, 4), tail = gradients_of(4, 3);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR((4 * head[i] + 3 * tail[i]) / 7, whole[i], 1e-14);
}

TEST(EmptyBias, IsNotReadOrWrittenWhereItPoints) {
  // What a layer without bias has in an arena: no elements, at the address of the next layer's.
  const auto x = normal(4, 5, 1), dy = normal(4, 5, 3);
  const Vector<double> next("next", 5);
  Kokkos::deep_copy(next, 7);
  const LayerSpec layer = pointwise("y", "u", 0, 5, Activation::relu);
  const Gemm<double> gemm;
  const Matrix<double> y("y", 4, 5), expected("expected", 4, 5), dx("dx", 4, 5);
  LayerCall<double> call{layer, gemm};
  call.inputs[0] = x;
  call.output = expected;
  forward(call);
  call.output = y;
  call.parameters[0] = alias_vector(next.data(), 0);
  forward(call);
  EXPECT_EQ(to_host(y), to_host(expected));
  call.output_gradient = dy;
  call.input_gradients[0] = dx;
  call.parameter_gradients[0] = alias_vector(next.data(), 0);
  backward(call);
  EXPECT_EQ(to_host(next), std::vector<double>(5, 7));
}

template <class T>
class EmptyBatch : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(EmptyBatch, Scalars);

TYPED_TEST(EmptyBatch, GivesZeroGradientsOrLeavesAccumulatedOnes) {
  using T = TypeParam;
  for (LossKind loss : losses) {
    for (Activation activation : activations) {
      const bool residual = loss == LossKind::mse;
      SerialModel<T> net(residual ? residual_mlp({3, 5, 4, 1, 2}, {.activation = activation})
                                  : model_of(activation),
                         0, loss);
      Kokkos::deep_copy(net.gradients(), T(3));
      net.compute_gradients(Matrix<T>("x", 0, 3), Matrix<T>("y", 0, 2), true);
      for (T g : to_host(net.gradients())) EXPECT_EQ(g, 3);
      net.compute_gradients(Matrix<T>("x", 0, 3), Matrix<T>("y", 0, 2), false);
      for (T g : to_host(net.gradients())) EXPECT_EQ(g, 0);
      EXPECT_EQ(to_host(net.loss_sum())[0], 0);
    }
  }
}

TEST(BiasGradient, SumsTheColumnsOfMatricesWiderThanOneBlock) {
  for (Size cols : {1, 31, 33, 1023, 1025, 2049}) {
    const Size rows = 19;
    const Matrix<double> dy = normal(rows, cols, 5);
    const Vector<double> db("db", cols);
    const LayerSpec layer = pointwise("y", "u", 0, cols, Activation::identity, "mlp");
    const Gemm<double> gemm;
    LayerCall<double> call{layer, gemm};
    call.output_gradient = call.output = dy;
    call.input_gradients[0] = dy;
    call.parameter_gradients[0] = db;
    backward(call);
    const auto values = to_host(dy), sums = to_host(db);
    for (Size j = 0; j < cols; ++j) {
      double sum = 0;
      for (Size i = 0; i < rows; ++i) sum += values[i * cols + j];
      EXPECT_NEAR(sums[j], sum, 1e-13) << cols << " " << j;
    }
  }
}

}  // namespace
}  // namespace tessera
