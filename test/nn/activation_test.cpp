// SPDX-License-Identifier: Apache-2.0
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

template <class T>
class ActivationOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(ActivationOf, Scalars);

template <class T>
std::vector<T> values(Activation a, const std::vector<T>& z) {
  const Size n = static_cast<Size>(z.size());
  const test::LayerAlone<T> alone(pointwise("y", "u", 0, n, a), 1);
  Kokkos::deep_copy(alone.x[0], to_device(z, 1, n));
  forward(alone.call);
  return to_host(alone.y);
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
    case Activation::silu:
      return z / (1 + std::exp(-z));
  }
  return 0;
}

constexpr std::array all{Activation::identity, Activation::relu, Activation::tanh,
                         Activation::sigmoid,  Activation::gelu, Activation::silu};

TYPED_TEST(ActivationOf, ValuesFollowTheirDefinitionOverTheWholeRange) {
  using T = TypeParam;
  std::vector<T> z;
  for (int i = -4000; i <= 4000; ++i) z.push_back(static_cast<T>(i * 0.0053));
  for (T tiny : {1e-30, -1e-30, 1e-6, -1e-6, 1e-3, 80.0, -80.0, 200.0, -200.0}) z.push_back(tiny);
  for (Activation a : all) {
    const std::vector<T> y = values<T>(a, z);
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double expected = reference(a, z[i]);
      // gelu far left is a small difference of numbers near 1.
      const double slack = a == Activation::gelu ? std::abs(z[i]) : std::abs(expected);
      // The sigmoid in silu is at least the smallest number.
      const double times = a == Activation::silu ? std::max<double>(1, std::abs(z[i])) : 1;
      const double smallest = 2 * times * std::numeric_limits<T>::min();
      EXPECT_NEAR(y[i], expected, 8 * std::numeric_limits<T>::epsilon() * slack + smallest)
          << name_of(a) << " of " << z[i];
    }
  }
}

TYPED_TEST(ActivationOf, ComputesNoSubnormalNumbers) {
  using T = TypeParam;
  std::vector<T> z;
  for (int i = -3000; i <= 3000; ++i) z.push_back(static_cast<T>(i * 0.3));
  for (Activation a : all) {
    std::feclearexcept(FE_UNDERFLOW);
    values<T>(a, z);
    EXPECT_FALSE(std::fetestexcept(FE_UNDERFLOW)) << name_of(a);
  }
}

TYPED_TEST(ActivationOf, TheSlopeOfReluAtZeroIsZero) {
  using T = TypeParam;
  const test::LayerAlone<T> alone(pointwise("y", "u", 0, 3, Activation::relu), 1);
  Kokkos::deep_copy(alone.y, to_device<T>({0, 0, 2}, 1, 3));
  Kokkos::deep_copy(alone.dy, to_device<T>({5, -5, 7}, 1, 3));
  backward(alone.call);
  EXPECT_EQ(to_host(alone.dx[0]), (std::vector<T>{0, 0, 7}));
}

TYPED_TEST(ActivationOf, NaNPassesThroughInsteadOfBecomingAGoodNumber) {
  using T = TypeParam;
  for (Activation a : all)
    EXPECT_TRUE(std::isnan(values<T>(a, {std::numeric_limits<T>::quiet_NaN()})[0])) << name_of(a);
}

}  // namespace
}  // namespace tessera
