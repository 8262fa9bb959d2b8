// SPDX-License-Identifier: Apache-2.0
// A rank without the others.
#include <cmath>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

using test::make_vector;

std::vector<float> numbers(const Vector<float>& v) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), v);
  return {host.data(), host.data() + host.extent(0)};
}

Vector<float> one_to(Size n) {
  return make_vector<float>(n, [](Size i) { return static_cast<float>(i + 1); });
}

Communicator fake(int rank, int ranks) {
  return Communicator::world({.check_collectives = true, .fake = FakeRank{rank, ranks}});
}

TEST(FakeRank, RepeatsItsOwnParts) {
  const Communicator world = fake(2, 4);
  const std::vector<Size> shares{2, 1, 3, 5}, others{1, 4, 3, 0};
  const Vector<float> all("all", 11), exchanged("exchanged", 8);
  world.all_gather(one_to(3), all, shares);
  EXPECT_EQ(numbers(all), (std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
  world.all_to_all(one_to(11), shares, exchanged, others);
  EXPECT_EQ(numbers(exchanged), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  const Vector<float> reduced("reduced", 3);
  world.ireduce_scatter(one_to(11), reduced, ReduceOp::sum, shares).wait();
  EXPECT_EQ(numbers(reduced), (std::vector<float>{4, 5, 6}));
  const Vector<float> kept = one_to(4);
  world.all_reduce(kept);
  EXPECT_EQ(numbers(kept), numbers(one_to(4)));
  const std::vector<LedgerRow> rows{{"world", Operation::all_reduce, 1, 4 * 4},
                                    {"world", Operation::reduce_scatter, 1, 4 * 11},
                                    {"world", Operation::all_gather, 1, 4 * 11},
                                    {"world", Operation::all_to_all, 1, 4 * 11}};
  EXPECT_EQ(world.ledger().rows(), rows);
}

TEST(FakeRank, ReceivesSmallNumbers) {
  const Vector<float> all = one_to(5000);
  fake(0, 2).ireceive(all, 1, 3).wait();
  float most = 0;
  Size zeros = 0;
  for (const float x : numbers(all)) most = std::max(most, std::abs(x)), zeros += x == 0;
  EXPECT_GT(most, 0.03);
  EXPECT_LT(most, 1 / 32.);
  EXPECT_LT(zeros, 10);
}

TEST(FakeRank, KnowsItsGroups) {
  const Communicator world = fake(7, 12);
  const Communicator column = world.split([](int rank) { return rank % 4; }, "column");
  EXPECT_EQ(column.size(), 3);
  EXPECT_EQ(column.rank(), 1);  // of 3, 7, 11
  EXPECT_TRUE(column.is_fake() && column.is_first());
  EXPECT_FALSE(world.split([](int rank) { return rank; }, "self").is_fake());
  test::expect_contains(test::message_of([&] { static_cast<void>(world.split(0, 0, "data")); }),
                        "a rank without others knows no other colors");
  test::expect_contains(test::message_of([&] { world.broadcast(one_to(1), 12); }),
                        "rank 12 is outside 0..11");
}

}  // namespace
}  // namespace tessera
