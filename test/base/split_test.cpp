// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/split.hpp>

namespace tessera {
namespace {

TEST(BalancedSplit, CoversEveryItemOnceInPartsThatDifferByOneAtMost) {
  for (Size n : {0, 1, 2, 7, 64, 97}) {
    for (Size parts : {1, 2, 3, 8, 13}) {
      Size next = 0;
      for (Size i = 0; i < parts; ++i) {
        const Range r = balanced_split(n, parts, i);
        EXPECT_EQ(r.begin, next);
        EXPECT_EQ(r.count, n / parts + (i < n % parts ? 1 : 0));
        next = r.end();
      }
      EXPECT_EQ(next, n);
    }
  }
}

}  // namespace
}  // namespace tessera
