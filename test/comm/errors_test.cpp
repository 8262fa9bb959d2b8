// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

using test::expect_contains;
using test::make_vector;
using test::message_of;
using test::to_host;

CommOptions with_check(bool check) {
  CommOptions options;
  options.check_collectives = check;
  options.timeout_seconds = 30;
  return options;
}

template <class Layout>
using Matrix2 = Kokkos::View<double**, Layout, MemSpace>;

TEST(CallErrors, StridedViewsAreRejectedAndContiguousOnesOfBothLayoutsAccepted) {
  for (const bool check : {false, true}) {
    const Communicator comm = Communicator::world(with_check(check));
    const Matrix2<Kokkos::LayoutRight> right("right", 4, 6);
    const Matrix2<Kokkos::LayoutLeft> left("left", 4, 6);
    Kokkos::deep_copy(right, 1.0);
    Kokkos::deep_copy(left, 1.0);
    comm.all_reduce(right);
    comm.all_reduce(left);
    for (const double x : {Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), right)(3, 5),
                           Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), left)(3, 5)}) {
      EXPECT_EQ(x, comm.size());
    }
    const auto column = Kokkos::subview(right, Kokkos::ALL, 2);
    const auto block = Kokkos::subview(right, Kokkos::ALL, std::pair(1, 3));
    const auto row_of_left = Kokkos::subview(left, 1, Kokkos::ALL);
    for (const std::string& text :
         {message_of([&] { comm.all_reduce(column); }), message_of([&] { comm.all_reduce(block); }),
          message_of([&] { comm.all_reduce(row_of_left); })}) {
      expect_contains(text, "all_reduce");
      expect_contains(text, "axis world");
      expect_contains(text, "errors_test.cpp:");
      expect_contains(text, "not contiguous");
    }
    const Vector<double> target("target", 4);
    expect_contains(message_of([&] { comm.broadcast(column, 0); }), "not contiguous");
    expect_contains(message_of([&] { comm.reduce_scatter(column); }), "not contiguous");
    comm.all_reduce(Kokkos::subview(right, 2, Kokkos::ALL));
    comm.all_reduce(Kokkos::subview(right, std::pair(1, 3), Kokkos::ALL));
  }
}

TEST(CallErrors, ExtentsMustMatchTheShares) {
  const Communicator comm = Communicator::world(with_check(false));
  const Size n = 3 * comm.size() + 1;
  const Vector<float> full("full", static_cast<std::size_t>(n));
  const Size share = balanced_split(n, comm.size(), comm.rank()).count;
  const Vector<float> wrong("wrong", static_cast<std::size_t>(share + 1));
  expect_contains(message_of([&] { comm.reduce_scatter(full, wrong); }), "its View has");
  expect_contains(message_of([&] { comm.all_gather(wrong, full); }), "its View has");
  const std::vector<Size> counts(static_cast<std::size_t>(comm.size()), 3);
  const Vector<float> three("three", 3);
  expect_contains(message_of([&] { comm.all_gather(three, full, counts); }), "sum to");
  const std::vector<Size> none;
  expect_contains(message_of([&] { comm.all_gather(three, full, none); }), "0 counts for");
  expect_contains(message_of([&] { comm.all_to_all(full, none, full, none); }), "0 counts for");
  EXPECT_TRUE(comm.ledger().rows().empty()) << "rejected calls are not counted";
}

TEST(CallErrors, SixteenBitElementsCannotBeReduced) {
  const Communicator comm = Communicator::world(with_check(false));
  const Vector<BFloat16> b("b", 8);
  const Vector<Float16> f("f", 8);
  expect_contains(message_of([&] { comm.all_reduce(b); }), "bfloat16 cannot be summed");
  expect_contains(message_of([&] { comm.reduce_scatter(b); }), "bfloat16 cannot be summed");
  expect_contains(message_of([&] { comm.all_reduce(f); }), "float16 cannot be summed");
}

TEST(CallErrors, RanksAndTagsMustExist) {
  const Communicator comm = Communicator::world(with_check(false));
  const Vector<float> v("v", 3);
  expect_contains(message_of([&] { comm.broadcast(v, comm.size()); }), "is outside 0..");
  expect_contains(message_of([&] { comm.send(v, -1, 0); }), "rank -1 is outside 0..");
  expect_contains(message_of([&] { comm.receive(v, comm.rank(), 0); }), "itself");
  if (comm.size() > 1) {
    const int other = comm.rank() == 0 ? 1 : 0;
    expect_contains(message_of([&] { comm.send(v, other, -1); }), "tag -1");
    expect_contains(message_of([&] { comm.split(-1, 0, "x"); }), "color -1 is negative");
  }
}

TEST(CallErrors, ViewsMustNotOverlap) {
  const Communicator comm = Communicator::world(with_check(false));
  const Size n = 2 * comm.size();
  const Vector<float> full("full", static_cast<std::size_t>(n));
  const auto share = Kokkos::subview(full, std::pair(2 * comm.rank(), 2 * comm.rank() + 2));
  if (comm.size() > 1) {
    const int wrong = (comm.rank() + 1) % comm.size();
    const auto misplaced = Kokkos::subview(full, std::pair(2 * wrong, 2 * wrong + 2));
    expect_contains(message_of([&] { comm.all_gather(misplaced, full); }), "overlap");
  }
  expect_contains(message_of([&] { comm.reduce_scatter(full, share); }), "overlap");
  comm.all_gather(share, full);
  comm.reduce_scatter(full);
}

TEST(CallErrors, AShorterMessageIsAnError) {
  const Communicator comm = Communicator::world(with_check(false));
  if (comm.size() == 1) GTEST_SKIP();
  const Vector<float> three("three", 3), five("five", 5);
  if (comm.rank() == 0) comm.send(three, 1, 0);
  if (comm.rank() == 1) {
    const std::string text = message_of([&] { comm.receive(five, 0, 0); });
    expect_contains(text, "errors_test.cpp:");
    expect_contains(text, "3 elements");
  }
}

/// Expects the message of rank 0 on every rank.
void expect_same_on_all(const Communicator& comm, const std::string& text) {
  std::vector<std::int64_t> bytes(text.begin(), text.end());
  bytes.resize(1000);
  const auto v =
      make_vector<std::int64_t>(1000, [&](Size i) { return bytes[static_cast<std::size_t>(i)]; });
  comm.broadcast(v, 0);
  EXPECT_EQ(to_host(v), bytes);
}

class CollectiveCheck : public testing::Test {
 protected:
  Communicator comm = Communicator::world(with_check(true));
  bool odd_one = comm.rank() == comm.size() - 1;
};

TEST_F(CollectiveCheck, NamesDifferentOperationsAndTheirSites) {
  if (comm.size() == 1) GTEST_SKIP();
  const Vector<float> v("v", 6);
  const std::string text = message_of([&] { odd_one ? comm.barrier() : comm.all_reduce(v); });
  expect_contains(text, "mismatched calls over axis world");
  expect_contains(text, "all_reduce (sum) of 6 float32 at errors_test.cpp:");
  expect_contains(text, fmt::format("rank {}: barrier at errors_test.cpp:", comm.size() - 1));
  expect_same_on_all(comm, text);
  EXPECT_EQ(comm.ledger().rows().size(), 1U) << "the broadcast of this test";
}

TEST_F(CollectiveCheck, NamesDifferentCountsTypesReductionsRootsAndSites) {
  if (comm.size() == 1) GTEST_SKIP();
  const Vector<float> v("v", 6), w("w", 7);
  const Vector<std::int32_t> x("x", 6);
  const auto all = [&](const std::string& text, const char* part) {
    expect_contains(text, part);
    expect_same_on_all(comm, text);
  };
  all(message_of([&] { comm.all_reduce(odd_one ? w : v); }), "of 7 float32");
  all(message_of([&] { comm.all_reduce(v, odd_one ? ReduceOp::max : ReduceOp::sum); }), "(max)");
  all(message_of([&] { comm.broadcast(v, odd_one ? 1 : 0); }), "from rank 1");
  const Vector<float> share("share", balanced_split(6, comm.size(), comm.rank()).count);
  all(message_of([&] { odd_one ? comm.reduce_scatter(v) : comm.reduce_scatter(v, share); }),
      "in place");
  const auto reduce = [&](const auto& view) { comm.all_reduce(view); };
  all(message_of([&] { odd_one ? reduce(x) : reduce(v); }), "of 6 int32");
  all(message_of([&] {
        if (odd_one)
          comm.all_reduce(v);
        else
          comm.all_reduce(v);
      }),
      "mismatched calls");
  EXPECT_EQ(comm.split(0, 0, "x").size(), comm.size()) << "later calls work";
}

TEST_F(CollectiveCheck, AProblemOfOneRankIsTheErrorOfAll) {
  if (comm.size() == 1) GTEST_SKIP();
  const Matrix2<Kokkos::LayoutRight> m("m", 4, 4);
  const Kokkos::View<double*, Kokkos::LayoutStride, MemSpace> column =
      Kokkos::subview(m, Kokkos::ALL, 1);
  const Kokkos::View<double*, Kokkos::LayoutStride, MemSpace> row =
      Kokkos::subview(m, 1, Kokkos::ALL);
  const std::string text = message_of([&] { comm.all_reduce(odd_one ? column : row); });
  expect_contains(text, "invalid call");
  expect_contains(text, "rank " + std::to_string(comm.size() - 1) + ": all_reduce");
  expect_contains(text, "not contiguous");
  expect_same_on_all(comm, text);
}

TEST_F(CollectiveCheck, PartsOfAnAllToAllMustMeet) {
  if (comm.size() == 1) GTEST_SKIP();
  std::vector<Size> sent(static_cast<std::size_t>(comm.size()), 2), received = sent;
  if (odd_one) received[0] = 1;
  const Vector<float> in("in", static_cast<std::size_t>(2 * comm.size()));
  const Vector<float> out("out", in.extent(0) - (odd_one ? 1 : 0));
  const std::string text = message_of([&] { comm.all_to_all(in, sent, out, received); });
  expect_contains(text, "rank 0 sends 2 elements, not the expected 1");
  expect_same_on_all(comm, text);
}

}  // namespace
}  // namespace tessera
