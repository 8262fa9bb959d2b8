// SPDX-License-Identifier: Apache-2.0
// Linked with the stand-in, like all other tests of several ranks: they show that results, ledger
// and plans are those of MPI. These show what happens when something goes wrong.
#include <array>
#include <vector>

#include <tessera/comm/detail/transport.hpp>

#include "comm/comm_test_support.hpp"
#include "comm/nccl/stand_in.hpp"

namespace tessera {
namespace {

using test::expect_contains;
using test::make_vector;
using test::message_of;
using test::nccl_faults;
using test::to_host;

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (Communicator::world().size() == 1) GTEST_SKIP() << "one rank calls nothing";
    nccl_faults() = {};
  }
  void TearDown() override { nccl_faults() = {}; }

  static Vector<float> ones() {
    return make_vector<float>(5, [](Size) { return 1.0F; });
  }
};

TEST_F(Nccl, MovesTheBytesOfAllCollectives) {
  const Communicator comm = Communicator::world();
  EXPECT_EQ(comm.backend().backend, Backend::nccl);
  const Vector<float> all("all", static_cast<std::size_t>(5 * comm.size()));
  const std::vector<Size> counts(static_cast<std::size_t>(comm.size()), 5);
  comm.all_reduce(ones());
  comm.all_gather(ones(), all);
  comm.reduce_scatter(all, ones());
  comm.broadcast(all, 0);
  const Vector<float> others("others", all.extent(0));
  comm.all_to_all(all, counts, others, counts);
  EXPECT_EQ(nccl_faults().calls, 4 + 2 * comm.size());
}

TEST_F(Nccl, RequestsWaitForTheStream) {
  const Communicator comm = Communicator::world();
  const Vector<float> v = ones();
  nccl_faults().late_queries = 3;
  Request request = comm.iall_reduce(v);
  EXPECT_FALSE(request.test());
  request.wait();
  EXPECT_EQ(nccl_faults().late_queries, 0);
  EXPECT_EQ(to_host(v), std::vector<float>(5, static_cast<float>(comm.size())));
}

TEST_F(Nccl, AnErrorOfACallNamesItAndItsPlace) {
  const Communicator comm = Communicator::world();
  nccl_faults().failing = "ncclAllReduce";
  const std::string message = message_of([&] { comm.all_reduce(ones()); });
  expect_contains(message, "ncclAllReduce at faults_test.cpp:");
  expect_contains(message, "failed: an error of the stand-in");
}

TEST_F(Nccl, AnErrorOfAGroupStartsNoneOfItsCalls) {
  const Communicator comm = Communicator::world();
  const Size n = comm.size() + 1;  // shares of which one is larger
  nccl_faults().failing = "ncclGroupEnd";
  const Vector<float> v("v", static_cast<std::size_t>(n));
  const std::string message = message_of([&] { comm.reduce_scatter(v); });
  expect_contains(message, "ncclGroupEnd at faults_test.cpp:");
  comm.reduce_scatter(v);
}

TEST_F(Nccl, AnErrorFoundWhileWaitingAbortsAndStays) {
  const Communicator comm = Communicator::world();
  nccl_faults().late_queries = 1 << 30;
  nccl_faults().async_error = 6;  // ncclRemoteError
  const std::string message = message_of([&] { comm.all_reduce(ones()); });
  expect_contains(message, "NCCL call at faults_test.cpp:");
  EXPECT_EQ(nccl_faults().aborts, 1);
  nccl_faults().late_queries = nccl_faults().async_error = 0;
  expect_contains(message_of([&] { comm.all_reduce(ones()); }), "an earlier call has failed");
  EXPECT_EQ(nccl_faults().aborts, 1) << "only once";
}

TEST_F(Nccl, ARankThatDoesNotArriveEndsTheCallsOfOthers) {
  const Communicator world = Communicator::world();
  CommOptions options;
  options.timeout_seconds = 0.1;
  // The watchdog of a communicator would end the job before.
  const auto transport = make_nccl_transport(nullptr, MPI_COMM_WORLD, options, Site::current());
  static std::array<float, 5> values{};  // MPI may write to them until the last rank has come
  const Buffer buffer{values.data(), 5};
  const Call call{
      .operation = Operation::all_reduce, .site = Site::current(), .in = buffer, .out = buffer};
  if (world.rank() > 0) {
    expect_contains(message_of([&] { transport->run(call); }), "it has waited 0.2 s");
    EXPECT_EQ(nccl_faults().aborts, 1);
  }
  world.barrier();
  if (world.rank() == 0) transport->run(call);
}

}  // namespace
}  // namespace tessera
