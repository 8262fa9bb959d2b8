// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "comm/comm_test_support.hpp"
#include "comm/mpi_spy.hpp"

namespace tessera {
namespace {

using test::expect_contains;
using test::make_vector;
using test::message_of;
using test::to_host;

CommOptions plain() {
  CommOptions options;
  options.check_collectives = false;
  return options;
}

/// For tests that count calls of MPI.
CommOptions of_mpi() {
  CommOptions options = plain();
  options.backend = Backend::mpi;
  return options;
}

TEST(Communicator, SplitGroupsRanksByColorInTheOrderOfKeys) {
  const Communicator world = Communicator::world(plain());
  const Communicator half = world.split(world.rank() % 2, -world.rank(), "half");
  const int members = (world.size() + 1 - world.rank() % 2) / 2;
  EXPECT_EQ(half.size(), members);
  EXPECT_EQ(half.rank(), members - 1 - world.rank() / 2);
  EXPECT_EQ(half.axis(), "half");
  const auto v = make_vector<std::int64_t>(1, [&](Size) { return world.rank(); });
  half.all_reduce(v, ReduceOp::max);
  EXPECT_EQ(to_host(v)[0], 2 * (members - 1) + world.rank() % 2);
}

TEST(Communicator, LedgerHoldsCallsAndBytesOfFullBuffersByAxisAndOperation) {
  for (const Size max_count : {Size{1} << 30, Size{3}}) {
    CommOptions options = plain();
    options.max_count = max_count;
    const Communicator world = Communicator::world(options);
    if (world.size() == 1) continue;
    const Communicator data = world.split(0, world.rank(), "data");
    const Size n = 2 * world.size() + 1;
    const Size share = balanced_split(n, world.size(), world.rank()).count;
    const Vector<float> v("v", 10), full("full", static_cast<std::size_t>(n)),
        part("part", static_cast<std::size_t>(share));
    const Vector<std::int64_t> wide("wide", 10);
    world.all_reduce(v);
    world.all_reduce(wide);
    world.iall_reduce(v).wait();
    data.all_reduce(v);
    data.reduce_scatter(full, part);
    data.all_gather(part, full);
    data.broadcast(v, 0);
    data.barrier();
    const std::vector<Size> ones(static_cast<std::size_t>(world.size()), 1);
    const Vector<double> from("from", ones.size()), to("to", ones.size());
    data.all_to_all(from, ones, to, ones);
    if (world.rank() == 0) data.send(v, 1, 5);
    if (world.rank() == 1) data.receive(v, 0, 5);
    using enum Operation;
    std::vector<LedgerRow> expected = {{"data", all_reduce, 1, 40},
                                       {"data", reduce_scatter, 1, 4 * n},
                                       {"data", all_gather, 1, 4 * n},
                                       {"data", broadcast, 1, 40},
                                       {"data", all_to_all, 1, 8 * world.size()}};
    if (world.rank() == 0) expected.push_back({"data", send, 1, 40});
    if (world.rank() == 1) expected.push_back({"data", receive, 1, 40});
    expected.push_back({"data", barrier, 1, 0});
    expected.push_back({"world", all_reduce, 3, 160});
    EXPECT_EQ(world.ledger().rows(), expected);
    world.ledger().reset();
    EXPECT_TRUE(data.ledger().rows().empty());
  }
}

TEST(Communicator, OneRankCallsNothingAndRecordsNothingButCopies) {
  const Communicator world = Communicator::world();
  const Communicator alone = world.alone("model"), single = world.split(world.rank(), 0, "single");
  test::MpiSpy::reset();
  for (const Communicator& comm : {alone, single}) {
    EXPECT_EQ(comm.size(), 1);
    EXPECT_EQ(comm.rank(), 0);
    const auto v = make_vector<float>(3, [](Size i) { return static_cast<float>(i); });
    const std::vector<float> values = {0, 1, 2};
    comm.all_reduce(v);
    comm.broadcast(v, 0);
    comm.barrier();
    EXPECT_EQ(to_host(v), values);
    const Vector<float> a("a", 3), b("b", 3), c("c", 3);
    comm.reduce_scatter(v);
    comm.ireduce_scatter(v).wait();
    comm.reduce_scatter(v, a);
    comm.iall_gather(v, b).wait();
    comm.all_to_all(v, std::vector<Size>{3}, c, std::vector<Size>{3});
    for (const auto& copy : {a, b, c}) EXPECT_EQ(to_host(copy), values);
    expect_contains(message_of([&] { comm.send(v, 0, 1); }), "cannot send a message to itself");
    EXPECT_EQ(comm.split(7, 0, "again").axis(), "again");
  }
  EXPECT_EQ(test::MpiSpy::calls(), 0);
  EXPECT_TRUE(world.ledger().rows().empty());
}

TEST(Communicator, BlockingCallsUseTheBlockingFunctionsOfMpiInPiecesOfMaxCount) {
  CommOptions options = of_mpi();
  options.max_count = 4;
  const Communicator world = Communicator::world(options);
  if (world.size() == 1) GTEST_SKIP();
  const Vector<float> v("v", 10);
  test::MpiSpy::reset();
  world.all_reduce(v);
  EXPECT_EQ(test::MpiSpy::count("MPI_Allreduce"), 3);
  EXPECT_EQ(test::MpiSpy::count("MPI_Iallreduce"), 0);
  world.iall_reduce(v).wait();
  EXPECT_EQ(test::MpiSpy::count("MPI_Allreduce"), 3);
  EXPECT_EQ(test::MpiSpy::count("MPI_Iallreduce"), 3);
}

TEST(Communicator, EveryHandleOfMpiIsFreedOnceWhenTheLastCopyGoes) {
  test::MpiSpy::reset();
  {
    Communicator world = Communicator::world(of_mpi());
    const Communicator copy = world;
    Communicator moved = std::move(world);
    {
      Communicator part = moved.split(0, moved.rank(), "part");
      Communicator other = std::move(part);
      part = std::move(other);
    }
    expect_contains(message_of([&] { world.barrier(); }), "moved-from");  // NOLINT
    moved = copy;
    if (moved.size() > 1) {
      EXPECT_LT(test::MpiSpy::count("MPI_Comm_free"), test::MpiSpy::communicators_made());
    }
  }
  EXPECT_GT(test::MpiSpy::communicators_made(), 0);
  EXPECT_EQ(test::MpiSpy::count("MPI_Comm_free"), test::MpiSpy::communicators_made());
}

TEST(Communicator, ARequestKeepsItsViewsAndItsCommunicatorAlive) {
  for (const bool stage : {false, true}) {
    CommOptions options = plain();
    options.stage_through_host = stage;
    auto world = std::make_unique<Communicator>(Communicator::world(options));
    if (world->size() == 1) GTEST_SKIP();
    auto v = make_vector<double>(1000, [](Size i) { return static_cast<double>(i); });
    EXPECT_EQ(v.use_count(), 1);
    Request request = world->iall_reduce(v);
    EXPECT_EQ(v.use_count(), 2);
    Request taken = std::move(request);
    EXPECT_TRUE(request.test()) << "nothing is left in a moved-from request";  // NOLINT
    const int size = world->size();
    world.reset();
    taken.wait();
    EXPECT_EQ(v.use_count(), 1);
    EXPECT_EQ(to_host(v)[999], 999.0 * size);
    taken.wait();
    EXPECT_TRUE(taken.test());
  }
}

TEST(Communicator, StagedCallsReuseTheirHostMemory) {
  CommOptions options = of_mpi();
  options.stage_through_host = true;
  test::MpiSpy::reset();
  {
    const Communicator world = Communicator::world(options);
    if (world.size() == 1) GTEST_SKIP();
    const Vector<float> v("v", 100);
    const auto call = [&] {
      world.all_reduce(v);
      world.iall_reduce(v).wait();
      world.broadcast(v, 0);
    };
    call();
    EXPECT_EQ(test::MpiSpy::count("MPI_Alloc_mem"), 1);
    call();
    EXPECT_EQ(test::MpiSpy::count("MPI_Alloc_mem"), 1);
  }
  EXPECT_EQ(test::MpiSpy::count("MPI_Free_mem"), 1);
}

TEST(Communicator, OptionsAreChecked) {
  CommOptions options;
  options.max_count = 0;
  EXPECT_THROW(Communicator::world(options), ConfigError);
  options.max_count = Size{1} << 31;
  EXPECT_THROW(Communicator::world(options), ConfigError);
  options = CommOptions();
  for (const double bad : {-1.0, 2e9, std::nan("")}) {
    options.timeout_seconds = bad;
    EXPECT_THROW(Communicator::world(options), ConfigError);
  }
}

}  // namespace
}  // namespace tessera
