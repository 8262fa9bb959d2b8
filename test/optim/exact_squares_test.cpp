// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/optim/exact_squares.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

/// Returns the sum of squares of parts that different ranks might have.
template <class T>
double sum_of(const std::vector<std::vector<T>>& parts) {
  Size elements = 0;
  for (const auto& part : parts) elements += std::ssize(part);
  const ExactSquares squares(elements);
  const Vector<double> largest = to_device<double>({0, 0}), sums = to_device<double>({0, 0, 0, 0});
  for (const auto& part : parts)
    ExactSquares::raise_to_largest<T>(Vector<const T>(to_device<T>(part)), largest);
  const double most = to_host(largest)[0];
  for (const auto& part : parts) squares.add<T>(Vector<const T>(to_device<T>(part)), most, sums);
  const std::vector<double> limbs = to_host(sums);
  return squares.total(std::span<const double, 3>(limbs.data(), 3), most);
}

template <class T>
std::vector<T> drawn(Size n, double range) {
  std::vector<T> values = to_host([&] {
    const Vector<T> v("v", static_cast<std::size_t>(n));
    fill_normal(Matrix<T>(v.data(), 1, n), key(7));
    return v;
  }());
  for (Size i = 0; i < n; ++i) values[i] *= static_cast<T>(std::pow(range, double(i % 7) - 3));
  return values;
}

template <class T>
class ExactSquaresOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(ExactSquaresOf, Scalars);

TYPED_TEST(ExactSquaresOf, TheSumDependsNeitherOnOrderNorOnParts) {
  using T = TypeParam;
  for (const double range : {1.0, 10.0, 1e4}) {
    const std::vector<T> all = drawn<T>(1001, range);
    const double whole = sum_of<T>({all});
    long double expected = 0;
    for (const T x : all) expected += static_cast<long double>(x) * x;
    EXPECT_NEAR(whole, static_cast<double>(expected), 1e-14 * static_cast<double>(expected));
    std::vector<T> reversed(all.rbegin(), all.rend());
    EXPECT_EQ(sum_of<T>({reversed}), whole);
    for (const Size cut : {1, 333, 1000})
      EXPECT_EQ(sum_of<T>({{all.begin() + cut, all.end()}, {all.begin(), all.begin() + cut}, {}}),
                whole);
    // Ordinary sums of the same parts differ.
    double up = 0, down = 0;
    for (const T x : all) up += static_cast<double>(x) * x;
    for (const T x : reversed) down += static_cast<double>(x) * x;
    if (range > 1) {
      EXPECT_NE(up, down);
    }
  }
}

TYPED_TEST(ExactSquaresOf, ZerosAndValuesThatAreNotFinite) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(sum_of<T>({{}}), 0);
  EXPECT_EQ(sum_of<T>({{0, -T(0)}, {0}}), 0);
  EXPECT_TRUE(std::isinf(sum_of<T>({{1, Limits::infinity()}})));
  EXPECT_TRUE(std::isnan(sum_of<T>({{1, Limits::quiet_NaN()}})));
  EXPECT_EQ(sum_of<T>({{3, 4}}), 25);
  EXPECT_TRUE(std::isfinite(sum_of<T>({{Limits::denorm_min() * 1024}})));
}

}  // namespace
}  // namespace tessera
