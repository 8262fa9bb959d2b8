// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <tessera/base/half_float.hpp>

namespace tessera {
namespace {

template <class T>
T from_bits(std::uint16_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof bits);
  return value;
}

template <class T>
class HalfFloatOf : public testing::Test {};
using HalfTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfFloatOf, HalfTypes);

TYPED_TEST(HalfFloatOf, EveryNumberIsExactInFloat) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto value = from_bits<TypeParam>(static_cast<std::uint16_t>(bits));
    const TypeParam again(static_cast<float>(value));
    if (std::isnan(static_cast<float>(value)))
      EXPECT_TRUE(std::isnan(static_cast<float>(again))) << bits;
    else
      EXPECT_EQ(again.bits(), bits);
  }
}

/// Consecutive numbers have consecutive bits. A value between two goes to the nearer one, the
/// middle goes to the even one. Infinity follows the largest number.
TYPED_TEST(HalfFloatOf, RoundsToTheNearestTiesToEven) {
  using T = TypeParam;
  for (std::uint16_t bits = 0; std::isfinite(static_cast<float>(from_bits<T>(bits))); ++bits)
    for (const float sign : {1.0f, -1.0f}) {
      const float low = from_bits<T>(bits);
      float high = from_bits<T>(static_cast<std::uint16_t>(bits + 1));
      if (std::isinf(high)) {  // the number that would come next, were there one
        const float before = from_bits<T>(static_cast<std::uint16_t>(bits - 1));
        if (std::isinf(low + (low - before))) continue;
        high = low + (low - before);
      }
      const float middle = low + (high - low) / 2;
      const auto rounded = [&](float value) {
        return static_cast<std::uint16_t>(T(sign * value).bits() & 0x7fffu);
      };
      const std::uint16_t above = static_cast<std::uint16_t>(bits + 1);
      ASSERT_EQ(rounded(middle), bits % 2 == 0 ? bits : above) << low;
      ASSERT_EQ(rounded(std::nextafter(middle, low)), bits) << low;
      ASSERT_EQ(rounded(std::nextafter(middle, high)), above) << low;
    }
}

TYPED_TEST(HalfFloatOf, LargeNumbersBecomeInfinityAndNaNStaysNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(static_cast<float>(TypeParam(-infinity)), -infinity);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xffc00000u}) {
    float nan;
    std::memcpy(&nan, &bits, sizeof nan);
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(nan))));
  }
}

TEST(HalfFloat, KnownNumbers) {
  EXPECT_EQ(BFloat16(1.0f).bits(), 0x3f80);
  EXPECT_EQ(BFloat16(3.140625f).bits(), 0x4049);
  EXPECT_EQ(Float16(1.0f).bits(), 0x3c00);
  EXPECT_EQ(Float16(65504.0f).bits(), 0x7bff);
  EXPECT_EQ(Float16(0x1p-24f).bits(), 0x0001);
  EXPECT_EQ(Float16(-0.0f).bits(), 0x8000);
}

}  // namespace
}  // namespace tessera
