// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>

#include "device_data.hpp"
#include "nn/serial_mlp.hpp"

namespace tessera {
namespace {

using test::SerialMlp;
using test::to_device;
using test::to_host;

constexpr std::array activations{Activation::identity, Activation::relu, Activation::tanh,
                                 Activation::sigmoid, Activation::gelu};
constexpr std::array losses{LossKind::mse, LossKind::mae, LossKind::relative_l2};

/// Three layers, so that a hidden one passes a gradient on; biases away from zero.
ModelSpec model_of(Activation activation, Activation output = Activation::identity) {
  return mlp({.widths = {3, 7, 5, 2}, .activation = activation, .output_activation = output});
}

Matrix<double> normal(Size rows, Size cols, std::uint64_t seed) {
  Matrix<double> m("m", rows, cols);
  fill_normal(m, key(seed));
  return m;
}

SerialMlp<double> network(const ModelSpec& spec, Size rows, LossKind loss) {
  SerialMlp<double> net(spec, rows, loss);
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const auto bias = net.bias(net.parameters(), l);
    fill_normal(Matrix<double>(bias.data(), 1, bias.extent(0)), key(100 + l));
  }
  return net;
}

class Gradient : public testing::TestWithParam<std::tuple<Activation, LossKind, Size>> {};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  const auto [activation, loss, rows] = GetParam();
  // The output passes through the activation as well.
  auto net = network(model_of(activation, activation), rows, loss);
  const auto x = normal(rows, 3, 1), y = normal(rows, 2, 2);
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
    worst = std::max(worst, std::abs(difference - gradient[i]));
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 1e-3);
  EXPECT_LT(worst / largest, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(All, Gradient,
                         testing::Combine(testing::ValuesIn(activations), testing::ValuesIn(losses),
                                          testing::Values(1, 7, 13)),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) + "_" +
                                  std::string(name_of(std::get<1>(info.param))) + "_" +
                                  std::to_string(std::get<2>(info.param)) + "_rows";
                         });

TEST(InputGradient, AgreesWithFiniteDifferences) {
  const Size rows = 5;
  const auto w = normal(3, 4, 1), direction = normal(rows, 4, 3);
  const Vector<double> none;
  const Gemm<double> gemm;
  const auto at = to_host(normal(rows, 3, 2));
  // f(x) = sum of direction * tanh(x w)
  const auto f = [&](const std::vector<double>& x, Matrix<double> dx) {
    const auto input = to_device(x, rows, 3);
    Matrix<double> y("y", rows, 4), dy("dy", rows, 4), dw("dw", 3, 4);
    linear_forward<double>(gemm, Activation::tanh, input, w, none, y, y);
    Kokkos::deep_copy(dy, direction);
    const auto hy = to_host(y), hd = to_host(direction);
    linear_backward<double>(gemm, Activation::tanh, input, w, y, dy, dw, none, dx, false);
    double sum = 0;
    for (std::size_t i = 0; i < hy.size(); ++i) sum += hy[i] * hd[i];
    return sum;
  };
  const Matrix<double> dx("dx", rows, 3);
  f(at, dx);
  const auto gradient = to_host(dx);
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto up = at, down = at;
    up[i] += 1e-5, down[i] -= 1e-5;
    EXPECT_NEAR((f(up, {}) - f(down, {})) / 2e-5, gradient[i], 1e-8);
  }
}

TEST(Accumulation, TwoHalvesAddUpToTheWhole) {
  // Rows split unevenly; the loss gradient of a half is divided by the count of the whole.
  const ModelSpec spec = mlp({.widths = {3, 5}, .activation = Activation::gelu});
  const auto x = normal(7, 3, 1), w = normal(3, 5, 2), dy = normal(7, 5, 3);
  const Gemm<double> gemm;
  const auto backward = [&](Size first, Size count, const Matrix<double>& dw,
                            const Vector<double>& db, bool accumulate) {
    const Matrix<const double> input(x.data() + first * 3, count, 3);
    Matrix<double> z("z", count, 5), y("y", count, 5), upstream("dy", count, 5);
    linear_forward<double>(gemm, Activation::gelu, input, w, {}, z, y);
    Kokkos::deep_copy(upstream, Matrix<const double>(dy.data() + first * 5, count, 5));
    linear_backward<double>(gemm, Activation::gelu, input, w, z, upstream, dw, db, {}, accumulate);
  };
  const Matrix<double> whole_dw("dw", 3, 5), dw("dw", 3, 5);
  const Vector<double> whole_db("db", 5), db("db", 5);
  backward(0, 7, whole_dw, whole_db, false);
  Kokkos::deep_copy(dw, 1e9);  // the first half must not add to what was there
  Kokkos::deep_copy(db, 1e9);
  backward(0, 4, dw, db, false);
  backward(4, 3, dw, db, true);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_NEAR(to_host(dw)[i], to_host(whole_dw)[i], 1e-14);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(to_host(db)[i], to_host(whole_db)[i], 1e-14);
}

TEST(EmptyBias, IsNotReadOrWrittenWhereItPoints) {
  // What a layer without bias has in an arena: no elements, at the address of the next layer's.
  const auto x = normal(4, 3, 1), w = normal(3, 5, 2), dy = normal(4, 5, 3);
  const Vector<double> next("next", 5);
  Kokkos::deep_copy(next, 7);
  const auto none = alias_vector<double>(nullptr, 0), empty = alias_vector(next.data(), 0);
  const Matrix<double> y("y", 4, 5), expected("expected", 4, 5), dw("dw", 3, 5);
  const Gemm<double> gemm;
  linear_forward<double>(gemm, Activation::relu, x, w, empty, y, y);
  linear_forward<double>(gemm, Activation::relu, x, w, none, expected, expected);
  EXPECT_EQ(to_host(y), to_host(expected));
  linear_backward<double>(gemm, Activation::relu, x, w, y, dy, dw, empty, {}, false);
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
      SerialMlp<T> net(model_of(activation), 0, loss);
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
    const Matrix<double> dy = normal(rows, cols, 5), y("y", rows, cols);
    const Vector<double> db("db", cols);
    activation_bias_backward<double>(Activation::identity, y, dy, db, false);
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
