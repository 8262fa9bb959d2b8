// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/comm/communicator.hpp>

namespace tessera {
namespace {

/// Elements that differ from their neighbors, exact in float for any sum over 8 ranks.
float element(Size i, int rank) { return static_cast<float>(i % 1'000'003 + rank); }

/// The extent needs several library calls, and is not a multiple of their pieces.
void expect_sum(const Communicator& world, bool blocking) {
  const Size n = (Size{5} << 19) * world.size() + 7;
  const Vector<float> v("tessera::test", n);
  const auto host = Kokkos::create_mirror_view(v);
  for (Size i = 0; i < n; ++i) host(i) = element(i, world.rank());
  Kokkos::deep_copy(v, host);
  if (blocking) {
    world.all_reduce(v);
  } else {
    world.iall_reduce(v).wait();
  }
  Kokkos::deep_copy(host, v);
  Size wrong = 0;
  for (Size i = 0; i < n; ++i) {
    float sum = 0;
    for (int rank = 0; rank < world.size(); ++rank) sum += element(i, rank);
    if (host(i) != sum) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(LongAllReduce, SumsEveryElementOnceAndIsOneCall) {
  const Communicator world = Communicator::world();
  expect_sum(world, true);
  expect_sum(world, false);
  const auto rows = world.ledger().rows();
  ASSERT_EQ(rows.size(), world.size() == 1 ? 0u : 1u);
  for (const LedgerRow& row : rows) EXPECT_EQ(row.calls, 2);
}

}  // namespace
}  // namespace tessera
