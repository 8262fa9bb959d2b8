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
template <class T>
T element(Size i, int rank) {
  return static_cast<T>(i % 100'003 + 3 * rank);
}
template <class T>
Vector<T> own(Size n, int rank) {
  return make_vector<T>(n, [&](Size i) { return element<T>(i, rank); });
}

/// Returns how many elements of a part that begins at `first` are not the sum over all ranks, or
/// with another `op` the maximum.
template <class T>
Size wrong_elements(const Vector<T>& part, Size first, const Communicator& comm,
                    ReduceOp op = ReduceOp::sum) {
  Size wrong = 0, i = first;
  for (const T x : to_host(part)) {
    T sum = 0;
    for (int rank = 0; rank < comm.size(); ++rank) sum += element<T>(i, rank);
    if (x != (op == ReduceOp::sum ? sum : element<T>(i, comm.size() - 1))) ++wrong;
    ++i;
  }
  return wrong;
}
template <class T>
Size wrong_in_place(const Vector<T>& v, const Communicator& comm, ReduceOp op = ReduceOp::sum) {
  const Range share = balanced_split(static_cast<Size>(v.size()), comm.size(), comm.rank());
  const Vector<T> part = Kokkos::subview(v, std::pair(share.begin, share.end()));
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

template <class T>
class LongReduceScatter : public testing::Test {};
using LongElementTypes = testing::Types<float, std::int64_t>;
TYPED_TEST_SUITE(LongReduceScatter, LongElementTypes);

/// Shares have several pieces and different sizes.
template <class T>
Size extent(const Communicator& comm) {
  return comm.size() * Size{1'300'021} / static_cast<Size>(sizeof(T)) + 1;
}

TYPED_TEST(LongReduceScatter, GivesTheShareOfTheSumWithTwoViewsAndInPlace) {
  for (const CommOptions& way : long_ways()) {
    const Communicator comm = Communicator::world(way);
    const Size n = extent<TypeParam>(comm);
    const Range share = balanced_split(n, comm.size(), comm.rank());
    const auto in = own<TypeParam>(n, comm.rank());
    const Vector<TypeParam> out("out", static_cast<std::size_t>(share.count));
    comm.reduce_scatter(in, out);
    EXPECT_EQ(wrong_elements(out, share.begin, comm), 0);
    Kokkos::deep_copy(out, TypeParam(-1));
    comm.ireduce_scatter(in, out).wait();
    EXPECT_EQ(wrong_elements(out, share.begin, comm), 0);
    EXPECT_EQ(to_host(in), to_host(own<TypeParam>(n, comm.rank()))) << "the input must stay";
    comm.reduce_scatter(in);
    EXPECT_EQ(wrong_in_place(in, comm), 0);
    const auto v = own<TypeParam>(n, comm.rank());
    for (Request request = comm.ireduce_scatter(v, ReduceOp::max); !request.test();) {
    }
    EXPECT_EQ(wrong_in_place(v, comm, ReduceOp::max), 0);
    const auto rows = comm.ledger().rows();
    ASSERT_EQ(rows.size(), comm.size() == 1 ? 0U : 1U);
    for (const LedgerRow& row : rows) {
      EXPECT_EQ(row, (LedgerRow{"world", Operation::reduce_scatter, 4,
                                4 * n * static_cast<Size>(sizeof(TypeParam))}));
    }
  }
}

TEST(LongReduceScatterOf, UnequalAndEmptyShares) {
  for (const CommOptions& way : long_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Size> counts;
    for (int rank = 0; rank < comm.size(); ++rank) counts.push_back(rank % 2 == 0 ? 0 : 97'003);
    counts.back() += 31;
    const Size begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), Size{0});
    const auto in = own<float>(std::accumulate(counts.begin(), counts.end(), Size{0}), comm.rank());
    const Vector<float> out("out", counts[static_cast<std::size_t>(comm.rank())]);
    comm.reduce_scatter(in, out, ReduceOp::sum, counts);
    EXPECT_EQ(wrong_elements(out, begin, comm), 0);
    Kokkos::deep_copy(out, -1.F);
    comm.ireduce_scatter(in, out, ReduceOp::sum, counts).wait();
    EXPECT_EQ(wrong_elements(out, begin, comm), 0);
  }
}

// Ranks start calls in the same order. They may wait in any order, and make other calls meanwhile.
TEST(LongReduceScatterOf, RequestsMayBeWaitedForInAnyOrder) {
  for (const CommOptions& way : long_ways()) {
    const Communicator comm = Communicator::world(way);
    const Size n = extent<float>(comm);
    const auto a = own<float>(n, comm.rank()), b = own<float>(2 * n, comm.rank());
    const auto c = own<float>(n, comm.rank());
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
    const auto n = static_cast<std::size_t>(extent<float>(comm));
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
  const auto v = own<float>(n, comm.rank()), w = own<float>(n, comm.rank());
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
    const auto v =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own<double>(n, comm.rank()));
    MpiSpy::reset();
    if (blocking) {
      comm.reduce_scatter(v);
    } else {
      comm.ireduce_scatter(v).wait();
    }
    return MpiSpy::count("MPI_Reduce_local");
  };
  EXPECT_EQ(additions(2048 * comm.size() - 1, true), 0);
  EXPECT_EQ(additions(2048 * comm.size(), true), comm.size() - 1);
  EXPECT_EQ(additions(32 * comm.size() - 1, false), 0);
  EXPECT_EQ(additions(32 * comm.size(), false), comm.size() - 1);
}

}  // namespace
}  // namespace tessera
