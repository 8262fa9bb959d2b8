// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/random/threefry.hpp>

namespace tessera {
namespace {

// Values that JAX gives (jax_threefry_partitionable).

TEST(Threefry, KeysTakeTheSeedsHighAndLowWord) {
  EXPECT_EQ(key(42), (Key{0, 42}));
  EXPECT_EQ(key(0x123456789abcdef0u), (Key{0x12345678u, 0x9abcdef0u}));
}

TEST(Threefry, FoldInGivesTheGoldenKeys) {
  EXPECT_EQ(fold_in(key(42), 0), (Key{0x6d3e048fu, 0x1022172du}));
  EXPECT_EQ(fold_in(key(42), 2), (Key{0x92fb20eau, 0x0f38d913u}));
}

TEST(Threefry, BitsAreGolden) {
  constexpr std::uint32_t golden[] = {0xf29a4fa7u, 0xfa843692u, 0x55110e28u, 0x77faa835u};
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random_bits(key(0), i), golden[i]) << i;
}

TEST(Threefry, IndicesBeyond32BitsDrawNewNumbers) {
  const std::uint64_t beyond = std::uint64_t{1} << 32;
  EXPECT_NE(random_bits(key(0), beyond), random_bits(key(0), 0));
  const auto [first, second] = detail::threefry2x32(key(0), 1, 7);
  EXPECT_EQ(random_bits(key(0), beyond + 7), first ^ second);
}

}  // namespace
}  // namespace tessera
