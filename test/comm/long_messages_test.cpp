// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <tessera/base/split.hpp>

#include "comm/comm_test_support.hpp"
#include "comm/mpi_spy.hpp"

namespace tessera {
namespace {

using test::make_vector;
using test::MpiSpy;
using test::to_host;

/// Elements that differ from their neighbors, exact in float for any sum over 8 ranks.
float element(Size i, int rank) { return static_cast<float>(i % 100'003 + 3 * rank); }

Vector<float> own(Size n, const Communicator& comm) {
  return make_vector<float>(n, [&](Size i) { return element(i, comm.rank()); });
}

/// Returns how many elements of a part that begins at `first` are not the sum over all ranks, or
/// with another `op` the maximum.
Size wrong_elements(const Vector<float>& part, Size first, const Communicator& comm,
                    ReduceOp op = ReduceOp::sum) {
  Size wrong = 0, i = first;
  for (const float x : to_host(part)) {
    float sum = 0;
    for (int rank = 0; rank < comm.size(); ++rank) sum += element(i, rank);
    if (x != (op == ReduceOp::sum ? sum : element(i, comm.size() - 1))) ++wrong;
    ++i;
  }
  return wrong;
}
Size wrong_in_place(const Vector<float>& v, const Communicator& comm, ReduceOp op = ReduceOp::sum) {
  const Range share = balanced_split(static_cast<Size>(v.size()), comm.size(), comm.rank());
  const Vector<float> part = Kokkos::subview(v, std::pair(share.begin, share.end()));
  return wrong_elements(part, share.begin, comm, op);
}

/// The usual pieces, and smaller ones, so that there are more than are received at once.
std::vector<CommOptions> long_ways() {
  std::vector<CommOptions> result(3);
  for (CommOptions& way : result) way.timeout_seconds = 60;
  result[1].max_count = 5003;
  result[2].stage_through_host = true;
  result[2].max_count = 50'000;
  return result;
}

/// Shares have several pieces and different sizes.
Size extent(const Communicator& comm) { return comm.size() * Size{325'005} + 1; }

TEST(LongReduceScatterOf, BalancedUnequalAndEmptyShares) {
  for (const CommOptions& way : long_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Size> balanced, uneven;
    for (int rank = 0; rank < comm.size(); ++rank) {
      balanced.push_back(balanced_split(extent(comm), comm.size(), rank).count);
      uneven.push_back(rank % 2 == 0 ? 0 : 97'003);
    }
    uneven.back() += 31;
    for (const std::vector<Size>& counts : {balanced, uneven}) {
      const Size begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), Size{0});
      const auto in = own(std::accumulate(counts.begin(), counts.end(), Size{0}), comm);
      const Vector<float> out("out", counts[comm.rank()]), late("late", out.extent(0));
      comm.reduce_scatter(in, out, ReduceOp::sum, counts);
      comm.ireduce_scatter(in, late, ReduceOp::sum, counts).wait();
      for (const auto& v : {out, late}) EXPECT_EQ(wrong_elements(v, begin, comm), 0);
      EXPECT_EQ(to_host(in), to_host(own(std::ssize(to_host(in)), comm))) << "the input must stay";
    }
    const auto v = own(extent(comm), comm), w = own(extent(comm), comm);
    comm.reduce_scatter(v);
    EXPECT_EQ(wrong_in_place(v, comm), 0);
    for (Request request = comm.ireduce_scatter(w, ReduceOp::max); !request.test();) {
    }
    EXPECT_EQ(wrong_in_place(w, comm, ReduceOp::max), 0);
  }
}

// Ranks start calls in the same order. They may wait in any order, and make other calls meanwhile.
TEST(LongReduceScatterOf, RequestsMayBeWaitedForInAnyOrder) {
  for (const CommOptions& way : long_ways()) {
    const Communicator comm = Communicator::world(way);
    const Size n = extent(comm);
    const auto a = own(n, comm), b = own(2 * n, comm), c = own(n, comm);
    const bool odd = comm.rank() % 2 == 1;
    Request first = comm.ireduce_scatter(a), second = comm.ireduce_scatter(b);
    comm.reduce_scatter(c);
    (odd ? second : first).wait();
    if (!odd) second.wait();
    comm.barrier();
    if (odd) first.wait();
    EXPECT_EQ(wrong_in_place(a, comm), 0);
    EXPECT_EQ(wrong_in_place(b, comm), 0);
    EXPECT_EQ(wrong_in_place(c, comm), 0);
  }
}

TEST(LongReduceScatterOf, AWarmCallAllocatesNothingAndTheEndFreesAll) {
  MpiSpy::reset();
  {
    const Communicator comm = Communicator::world();
    if (comm.size() == 1) GTEST_SKIP();
    const auto n = static_cast<std::size_t>(extent(comm));
    const Kokkos::View<float*, Kokkos::HostSpace> v("v", n), w("w", n);
    const auto call = [&] {
      Request one = comm.ireduce_scatter(v), other = comm.ireduce_scatter(w);
      one.wait();
      other.wait();
      comm.reduce_scatter(v);
    };
    call();
    EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 2);
    call();
    EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 2);
  }
  EXPECT_EQ(MpiSpy::count("MPI_Free_mem"), 2);
}

// The extent needs several calls of MPI, and is not a multiple of their pieces.
TEST(LongAllReduce, SumsEveryElementOnceAndIsOneCall) {
  const Communicator comm = Communicator::world();
  const Size n = (Size{5} << 19) * comm.size() + 7;
  const auto v = own(n, comm), w = own(n, comm);
  comm.all_reduce(v);
  comm.iall_reduce(w).wait();
  EXPECT_EQ(wrong_elements(v, 0, comm), 0);
  EXPECT_EQ(wrong_elements(w, 0, comm), 0);
  for (const LedgerRow& row : comm.ledger().rows()) EXPECT_EQ(row.calls, 2);
}

// The full extent, and whether the call blocks, decide between pairwise messages and MPI.
TEST(LongReduceScatterOf, ShortCallsUseMpi) {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) GTEST_SKIP();
  const auto additions = [&](Size n, bool blocking) {
    const auto v = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own(n, comm));
    MpiSpy::reset();
    if (blocking) {
      comm.reduce_scatter(v);
    } else {
      comm.ireduce_scatter(v).wait();
    }
    return MpiSpy::count("MPI_Reduce_local");
  };
  EXPECT_EQ(additions(4096 * comm.size() - 1, true), 0);
  // Long terms are added in runs of 2048 elements.
  EXPECT_EQ(additions(4096 * comm.size(), true), 2 * (comm.size() - 1));
  EXPECT_EQ(additions(64 * comm.size() - 1, false), 0);
  EXPECT_EQ(additions(64 * comm.size(), false), comm.size() - 1);
}

}  // namespace
}  // namespace tessera
