// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/memory_guard.hpp>

namespace tessera {
namespace {

TEST(MemoryGuard, ClosesAnArenaExceptItsOperands) {
  const Vector<float> arena = allocate_zeros<float>("arena", 64);
  const Vector<float> operand = alias_vector(arena.data() + 16, 20);
  const auto is_closed = [&](Size i) { return MemoryGuard::is_closed(arena.data() + i); };
  {
    MemoryGuard guard;
    guard.close(arena);
    guard.open(operand);
    for (const Size inside : {16, 20, 35}) EXPECT_FALSE(is_closed(inside)) << inside;
    for (const Size outside : {0, 15, 36, 63})
      EXPECT_EQ(is_closed(outside), MemoryGuard::is_active) << outside;
  }
  for (Size i = 0; i < 64; ++i) EXPECT_FALSE(is_closed(i)) << i;
}

}  // namespace
}  // namespace tessera
