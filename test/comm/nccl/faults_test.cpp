// SPDX-License-Identifier: Apache-2.0
// Faults of the NCCL transport. The tests of collectives are linked with the stand-in, too: they
// show that results are the same as with MPI.
#include <array>
#include <vector>

#include <cuda_runtime_api.h>

#include <tessera/base/alias.hpp>
#include <tessera/comm/detail/transport.hpp>

#include "comm/comm_test_support.hpp"
#include "comm/mpi_spy.hpp"
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

  /// Returns memory to which MPI may write after the test has ended on this rank.
  static Vector<float> static_memory() {
    static std::array<float, 5> values{};
    return alias_vector(values.data(), 5);
  }
  static Vector<float> ones() {
    return make_vector<float>(5, [](Size) { return 1.0F; });
  }
  static void expect_values(const Vector<float>& v, float value) {
    EXPECT_EQ(to_host(v), std::vector<float>(5, value));
  }
  static void expect_earlier_failure(const Communicator& comm) {
    expect_contains(message_of([&] { comm.all_reduce(ones()); }), "an earlier call has failed");
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

TEST_F(Nccl, EqualSharesAreOneCallWhoeverCountsThem) {
  const Communicator comm = Communicator::world();
  const Vector<float> all("all", static_cast<std::size_t>(5 * comm.size()));
  const std::vector<Size> counts(static_cast<std::size_t>(comm.size()), 5);
  comm.all_gather(ones(), all, counts);
  comm.reduce_scatter(all, ones(), ReduceOp::sum, counts);
  EXPECT_EQ(nccl_faults().calls, 2);
}

TEST_F(Nccl, CallsWaitForTheStreamAndLetMpiMakeProgress) {
  const Communicator comm = Communicator::world();
  const Vector<float> v = ones();
  nccl_faults().late_queries = 4;
  Request request = comm.iall_reduce(v);
  EXPECT_FALSE(request.test());
  test::MpiSpy::reset();
  request.wait();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a kernel would report that the call was late";
  EXPECT_EQ(nccl_faults().late_queries, 0);
  EXPECT_GE(test::MpiSpy::count("MPI_Iprobe"), 3);
  expect_values(v, static_cast<float>(comm.size()));
}

TEST_F(Nccl, CallsRunAfterTheKernelsBeforeThem) {
  const Communicator comm = Communicator::world();
  const Vector<float> v = ones();
  test::launch_kernel();
  Request request = comm.iall_reduce(v);
  EXPECT_FALSE(request.test());
  Kokkos::deep_copy(v, 2.0F);  // what the kernel writes
  test::finish_kernels();
  request.wait();
  expect_values(v, 2.0F * static_cast<float>(comm.size()));
}

// A rank that waited for one before it started the other would never return.
TEST_F(Nccl, CallsOfTwoCommunicatorsMayStartInAnyOrder) {
  CommOptions options;
  options.check_collectives = false;  // which waits for all ranks
  const Communicator one = Communicator::world(options);
  const Communicator other = one.split(0, one.rank(), "other");
  one.all_reduce(ones());  // the first call makes connections
  const Vector<float> a = ones(), b = ones();
  std::vector<Request> requests;
  for (const bool is_one : {one.rank() == 0, one.rank() != 0})
    requests.push_back(is_one ? one.iall_reduce(a) : other.iall_reduce(b));
  for (Request& request : requests) request.wait();
  for (const auto& v : {a, b}) expect_values(v, static_cast<float>(one.size()));
}

// `distributed.backend = mpi` must work without a working NCCL.
TEST_F(Nccl, OnlyCommunicatorsThatNeedItConnect) {
  nccl_faults().failing = "ncclGetUniqueId";
  const Communicator comm = Communicator::world();
  comm.barrier();
  EXPECT_FALSE(nccl_faults().failing.empty());
  nccl_faults() = {};
  EXPECT_NO_THROW(static_cast<void>(comm.split(0, comm.rank(), "other")));
}

TEST_F(Nccl, AnErrorOfTheFirstRankIsThrownOnAll) {
  const Communicator comm = Communicator::world();
  if (comm.rank() == 0) nccl_faults().failing = "ncclGetUniqueId";
  const std::string message = message_of([&] { comm.all_reduce(ones()); });
  expect_contains(message, "ncclGetUniqueId at faults_test.cpp:");
  expect_earlier_failure(comm);
}

TEST_F(Nccl, AnErrorNamesTheFunctionAndTheCall) {
  for (const char* const function :
       {"ncclCommInitRank", "ncclAllReduce", "cudaStreamCreateWithFlags",
        "cudaEventCreateWithFlags", "cudaEventRecord", "cudaStreamWaitEvent", "cudaEventQuery"}) {
    const Communicator comm = Communicator::world();
    nccl_faults().failing = function;
    const Vector<float> v = static_memory();
    const std::string message = message_of([&] { comm.all_reduce(v); });
    expect_contains(message, std::string(function) + " at faults_test.cpp:");
    expect_contains(message, "an error of the stand-in");
    if (function[0] == 'n') expect_contains(message, ": its detail");
    EXPECT_EQ(nccl_faults().failing, "");
    comm.barrier();
  }
}

TEST_F(Nccl, AnErrorOfAGroupStartsNoneOfItsCalls) {
  for (const char* const function : {"ncclGroupStart", "ncclReduce", "ncclGroupEnd"}) {
    const Communicator comm = Communicator::world();
    const Size n = comm.size() + 1;  // shares of which one is larger
    nccl_faults().failing = function;
    const Vector<float> v("v", static_cast<std::size_t>(n));
    const std::string message = message_of([&] { comm.reduce_scatter(v); });
    expect_contains(message, std::string(function) + " at faults_test.cpp:");
    expect_earlier_failure(comm);
  }
}

// Its kernel would occupy the device, and cudaFree would wait for it.
TEST_F(Nccl, ARequestThatAnExceptionLeavesBehindIsAborted) {
  const Communicator comm = Communicator::world();
  const Vector<float> v = static_memory();
  const auto leave = [&] {
    const Request request = comm.iall_reduce(v);
    throw Error(ExitCode::communication, "something else");
  };
  expect_contains(message_of(leave), "something else");
  EXPECT_EQ(nccl_faults().aborts, 1);
  expect_earlier_failure(comm);
}

TEST_F(Nccl, AnErrorFoundWhileWaitingAbortsAndStays) {
  const Communicator comm = Communicator::world();
  nccl_faults().late_queries = 1 << 30;
  nccl_faults().async_error = 6;  // ncclRemoteError
  const std::string message = message_of([&] { comm.all_reduce(ones()); });
  expect_contains(message, "NCCL call at faults_test.cpp:");
  EXPECT_EQ(nccl_faults().aborts, 1);
  nccl_faults().late_queries = nccl_faults().async_error = 0;
  expect_earlier_failure(comm);
  EXPECT_EQ(nccl_faults().aborts, 1) << "only once";
}

TEST_F(Nccl, ARankThatDoesNotArriveEndsTheCallsOfOthers) {
  const Communicator world = Communicator::world();
  CommOptions options;
  options.timeout_seconds = 0.1;
  // The watchdog of a communicator would end the job earlier.
  const auto transport = make_nccl_transport(nullptr, MPI_COMM_WORLD, options, Site::current());
  transport->connect(Site::current());
  static std::array<float, 5> values{};  // MPI may write to them until the last rank has come
  const Buffer buffer{values.data(), 5};
  const Call call{
      .operation = Operation::all_reduce, .site = Site::current(), .in = buffer, .out = buffer};
  if (world.rank() > 0) {
    expect_contains(message_of([&] { transport->run(call); }), "it has waited ");
    EXPECT_EQ(nccl_faults().aborts, 1);
  }
  world.barrier();
  if (world.rank() == 0) transport->run(call);
}

}  // namespace
}  // namespace tessera
