// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <tessera/random/permutation.hpp>

namespace tessera {
namespace {

std::vector<Size> order_of(Key key, Size n) {
  std::vector<Size> order;
  for (Size i = 0; i < n; ++i) order.push_back(permuted(key, n, i));
  return order;
}

TEST(Permutation, HasEveryElementOnce) {
  for (const Size n : {1, 2, 3, 4, 5, 16, 17, 64, 65, 1000, 4096}) {
    SCOPED_TRACE(n);
    std::vector<int> seen(static_cast<std::size_t>(n));
    for (const Size place : order_of(key(7), n)) {
      ASSERT_GE(place, 0);
      ASSERT_LT(place, n);
      ++seen[static_cast<std::size_t>(place)];
    }
    for (const int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(Permutation, DependsOnTheKey) {
  const Key of_seed = key(3);
  EXPECT_NE(order_of(fold_in(of_seed, 0), 100), order_of(fold_in(of_seed, 1), 100));
  EXPECT_EQ(order_of(fold_in(of_seed, 1), 100), order_of(fold_in(of_seed, 1), 100));
}

// About one of 1000 elements in a random order stays in place, and the mean distance is a third of
// the length.
TEST(Permutation, LeavesNoTraceOfTheOrder) {
  const Size n = 1000;
  double stay = 0, distance = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Size> order = order_of(key(seed), n);
    for (Size i = 0; i < n; ++i) {
      const Size place = order[static_cast<std::size_t>(i)];
      stay += place == i ? 1 : 0;
      distance += static_cast<double>(place > i ? place - i : i - place);
    }
  }
  EXPECT_LT(stay / 20, 3);
  EXPECT_NEAR(distance / (20.0 * static_cast<double>(n * n)), 1.0 / 3, 0.01);
}

}  // namespace
}  // namespace tessera
