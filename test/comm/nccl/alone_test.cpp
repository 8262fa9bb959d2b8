// SPDX-License-Identifier: Apache-2.0
// A communicator of one rank, with the stand-in, or with NCCL itself on a GPU.
#include <tessera/comm/detail/transport.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

using test::make_vector;
using test::to_host;
using test::value_of;

template <class T>
class NcclAlone : public testing::Test {};
using NcclTypes = testing::Types<float, double, std::int32_t, std::int64_t, BFloat16, Float16>;
TYPED_TEST_SUITE(NcclAlone, NcclTypes);

TYPED_TEST(NcclAlone, EveryOperationKeepsTheValues) {
  using T = TypeParam;
  const auto transport = make_nccl_transport(nullptr, MPI_COMM_SELF, {}, Site::current());
  for (const Size n : {0, 1, 23}) {
    const auto in = make_vector<T>(n, [](Size i) { return value_of<T>(i, 2); });
    using enum Operation;
    for (const Operation operation :
         {all_reduce, broadcast, reduce_scatter, all_gather, all_to_all}) {
      const bool is_reduction = operation == all_reduce || operation == reduce_scatter;
      if (is_half_v<T> && is_reduction) continue;
      const Vector<T> out("out", static_cast<std::size_t>(n)),
          late("late", static_cast<std::size_t>(n));
      Call call{.operation = operation,
                .site = Site::current(),
                .in = buffer_of(in),
                .out = buffer_of(out)};
      call.peer = 0;
      call.counts = call.receive_counts = {&n, 1};
      transport->run(call);
      EXPECT_EQ(to_host(out), to_host(in)) << name_of(operation);
      call.out = buffer_of(late);
      const auto pending = transport->start(call);
      while (!pending->advance(false)) {
      }
      EXPECT_EQ(to_host(late), to_host(in)) << name_of(operation);
    }
  }
}

TEST(NcclAloneOf, AbandonedCallsAreAborted) {
  const auto transport = make_nccl_transport(nullptr, MPI_COMM_SELF, {}, Site::current());
  const auto v = make_vector<float>(5, [](Size i) { return static_cast<float>(i); });
  const Call call{.operation = Operation::all_reduce,
                  .site = Site::current(),
                  .in = buffer_of(v),
                  .out = buffer_of(v)};
  transport->run(call);
  transport->start(call)->abandon();
  test::expect_contains(test::message_of([&] { transport->run(call); }),
                        "an earlier call has failed");
}

}  // namespace
}  // namespace tessera
