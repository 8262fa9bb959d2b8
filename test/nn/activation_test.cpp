// SPDX-License-Identifier: Apache-2.0
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

template <class T>
class ActivationOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(ActivationOf, Scalars);

/// y = a(x + bias), through a pointwise layer.
template <class T>
void apply(Activation a, const Matrix<T>& x, const Vector<T>& bias, const Matrix<T>& y) {
  const Size width = static_cast<Size>(x.extent(1));
  const LayerSpec layer = pointwise("y", "u", 0, width, a, "mlp");
  const Gemm<T> gemm;
  LayerCall<T> call{layer, gemm};
  call.inputs[0] = x;
  call.parameters[0] = bias;
  call.output = y;
  forward(call);
}

/// Values by the definition in double.
double reference(Activation a, double z) {
  switch (a) {
    case Activation::identity:
      return z;
    case Activation::relu:
      return std::max(z, 0.0);
    case Activation::tanh:
      return std::tanh(z);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::gelu:
      return z / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
  }
  return 0;
}

constexpr std::array all{Activation::identity, Activation::relu, Activation::tanh,
                         Activation::sigmoid, Activation::gelu};

TYPED_TEST(ActivationOf, ValuesFollowTheirDefinitionOverTheWholeRange) {
  using T = TypeParam;
  std::vector<T> z;
  for (int i = -4000; i <= 4000; ++i) z.push_back(static_cast<T>(i * 0.0053));
  for (T tiny : {1e-30, -1e-30, 1e-6, -1e-6, 1e-3, 80.0, -80.0, 200.0, -200.0}) z.push_back(tiny);
  const Size n = z.size();
  for (Activation a : all) {
    const auto m = to_device(z, 1, n);
    const Matrix<T> y("y", 1, n);
    apply<T>(a, m, {}, y);
    const auto values = to_host(y);
    for (Size i = 0; i < n; ++i) {
      const double expected = reference(a, z[i]);
      // gelu far left is a small difference of numbers near 1.
      const double slack = a == Activation::gelu ? std::abs(z[i]) : std::abs(expected);
      EXPECT_NEAR(values[i], expected,
                  8 * std::numeric_limits<T>::epsilon() * slack + 2 * std::numeric_limits<T>::min())
          << name_of(a) << " of " << z[i];
    }
  }
}

TYPED_TEST(ActivationOf, ComputesNoSubnormalNumbers) {
  using T = TypeParam;
  std::vector<T> z;
  for (int i = -3000; i <= 3000; ++i) z.push_back(static_cast<T>(i * 0.3));
  const Size n = z.size();
  const auto m = to_device(z, 1, n);
  const Matrix<T> y("y", 1, n);
  for (Activation a : all) {
    std::feclearexcept(FE_UNDERFLOW);
    apply<T>(a, m, {}, y);
    EXPECT_FALSE(std::fetestexcept(FE_UNDERFLOW)) << name_of(a);
  }
}

TEST(Activation, GeluIsTheTanhApproximationAsInJax) {
  // jax.nn.gelu([-2, -0.5, 0.5, 1, 2]); the erf form gives 0.841345 at 1.
  const auto z = to_device<double>({-2, -0.5, 0.5, 1, 2}, 1, 5);
  const Matrix<double> y("y", 1, 5);
  apply<double>(Activation::gelu, z, {}, y);
  const auto values = to_host(y);
  const std::vector<double> golden{-0.04540229, -0.15428599, 0.34571401, 0.84119199, 1.95459771};
  for (std::size_t i = 0; i < golden.size(); ++i) EXPECT_NEAR(values[i], golden[i], 1e-7);
}

TYPED_TEST(ActivationOf, TheSlopeOfReluAtZeroIsZero) {
  using T = TypeParam;
  const auto y = to_device<T>({0, 0, 2}, 1, 3), dy = to_device<T>({5, -5, 7}, 1, 3);
  const Vector<T> db("db", 3);
  const LayerSpec layer = pointwise("y", "u", 0, 3, Activation::relu, "mlp");
  const Gemm<T> gemm;
  LayerCall<T> call{layer, gemm};
  call.output = y;
  call.output_gradient = dy;
  call.input_gradients[0] = dy;
  call.parameter_gradients[0] = db;
  backward(call);
  EXPECT_EQ(to_host(dy), (std::vector<T>{0, 0, 7}));
  EXPECT_EQ(to_host(db), (std::vector<T>{0, 0, 7}));
}

TYPED_TEST(ActivationOf, NaNPassesThroughInsteadOfBecomingAGoodNumber) {
  using T = TypeParam;
  for (Activation a : all) {
    const auto z = to_device<T>({std::numeric_limits<T>::quiet_NaN()}, 1, 1);
    apply<T>(a, z, {}, z);
    EXPECT_TRUE(std::isnan(to_host(z)[0])) << name_of(a);
  }
}

}  // namespace
}  // namespace tessera
