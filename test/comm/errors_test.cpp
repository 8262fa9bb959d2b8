// SPDX-License-Identifier: Apache-2.0
#include <functional>

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
    comm.all_reduce(Kokkos::subview(right, 2, Kokkos::ALL));
    comm.all_reduce(Kokkos::subview(right, std::pair(1, 2), Kokkos::ALL));
    const Size n = comm.size();
    EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), right)(3, 5), n);
    EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), left)(3, 5), n);
    const auto column = Kokkos::subview(right, Kokkos::ALL, 2);
    const auto block = Kokkos::subview(right, Kokkos::ALL, std::pair(1, 3));
    const auto row_of_left = Kokkos::subview(left, 1, Kokkos::ALL);
    const std::string text = message_of([&] { comm.all_reduce(column); });
    for (const char* part : {"all_reduce", "axis world", "errors_test.cpp:", "not contiguous"})
      expect_contains(text, part);
    expect_contains(message_of([&] { comm.all_reduce(block); }), "not contiguous");
    expect_contains(message_of([&] { comm.all_reduce(row_of_left); }), "not contiguous");
    expect_contains(message_of([&] { comm.broadcast(column, 0); }), "not contiguous");
    expect_contains(message_of([&] { comm.reduce_scatter(column); }), "not contiguous");
  }
}

TEST(CallErrors, NameWhatIsWrong) {
  const Communicator comm = Communicator::world(with_check(false));
  const int size = comm.size(), rank = comm.rank();
  const auto ranks = static_cast<std::size_t>(size);
  const auto expect_error = [](const std::string& part, const std::function<void()>& call) {
    expect_contains(message_of(call), part);
  };
  const Vector<float> full("full", 2 * ranks), three("three", 3);
  expect_error("its View has", [&] { comm.reduce_scatter(full, three); });
  expect_error("its View has", [&] { comm.all_gather(three, full); });
  const std::vector<Size> none, threes(ranks, 3);
  expect_error("sum to", [&] { comm.all_gather(three, full, threes); });
  expect_error("0 counts for", [&] { comm.all_gather(three, full, none); });
  expect_error("0 counts for", [&] { comm.all_to_all(full, none, full, none); });

  const Vector<BFloat16> b("b", 8);
  const Vector<Float16> f("f", 8);
  expect_error("bfloat16 can only be summed", [&] { comm.all_reduce(b, ReduceOp::max); });
  expect_error("float16 can only be summed", [&] { comm.reduce_scatter(f, ReduceOp::min); });

  expect_error("is outside 0..", [&] { comm.broadcast(full, size); });
  expect_error("rank -1 is outside 0..", [&] { comm.send(full, -1, 0); });
  expect_error("itself", [&] { comm.receive(full, rank, 0); });

  const auto share = Kokkos::subview(full, std::pair(2 * rank, 2 * rank + 2));
  expect_error("overlap", [&] { comm.reduce_scatter(full, share); });
  if (size > 1) {
    const int other = (rank + 1) % size;
    const auto misplaced = Kokkos::subview(full, std::pair(2 * other, 2 * other + 2));
    expect_error("overlap", [&] { comm.all_gather(misplaced, full); });
    expect_error("tag -1", [&] { comm.send(full, other, -1); });
    expect_error("color -1 is negative", [&] { comm.split(-1, 0, "x"); });
  }
  EXPECT_TRUE(comm.ledger().rows().empty()) << "rejected calls are not counted";
  comm.all_gather(share, full);
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

TEST_F(CollectiveCheck, NamesDifferentOperationsCountsTypesReductionsRootsAndSites) {
  if (comm.size() == 1) GTEST_SKIP();
  const Vector<float> v("v", 6), w("w", 7);
  const Vector<std::int32_t> x("x", 6);
  const Vector<float> share("share", balanced_split(6, comm.size(), comm.rank()).count);
  const auto expect_mismatch = [&](const std::string& part, const std::function<void()>& others,
                                   const std::function<void()>& odd) {
    const std::string text = message_of(odd_one ? odd : others);
    expect_contains(text, "mismatched calls over axis world");
    expect_contains(text, part);
    expect_same_on_all(comm, text);
  };
  const auto all_reduce = [&] { comm.all_reduce(v); };
  expect_mismatch(fmt::format("rank {}: barrier at errors_test.cpp:", comm.size() - 1), all_reduce,
                  [&] { comm.barrier(); });
  expect_mismatch("all_reduce (sum) of 6 float32 at errors_test.cpp:", all_reduce,
                  [&] { comm.all_reduce(w); });
  expect_mismatch("(max)", all_reduce, [&] { comm.all_reduce(v, ReduceOp::max); });
  expect_mismatch("of 6 int32", all_reduce, [&] { comm.all_reduce(x); });
  expect_mismatch("all_reduce", all_reduce, [&] { comm.all_reduce(v); });
  expect_mismatch(
      "from rank 1", [&] { comm.broadcast(v, 0); }, [&] { comm.broadcast(v, 1); });
  expect_mismatch(
      "in place", [&] { comm.reduce_scatter(v); }, [&] { comm.reduce_scatter(v, share); });
  EXPECT_EQ(comm.ledger().rows().size(), 1U) << "the broadcasts of this test";
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

}  // namespace
}  // namespace tessera
