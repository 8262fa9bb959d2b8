// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/split.hpp>
#include <tessera/comm/scratch.hpp>

#include "comm/comm_test_support.hpp"
#include "comm/mpi_spy.hpp"

namespace tessera {
namespace {

using test::expect_contains;
using test::message_of;
using test::MpiSpy;

using HostView = Kokkos::View<double*, Kokkos::HostSpace>;
constexpr double untouched = -77;

HostView view_of(Size n, double value) {
  const HostView view("view", static_cast<std::size_t>(n));
  Kokkos::deep_copy(view, value);
  return view;
}

Size count_of(const HostView& view, double value) {
  Size found = 0;
  for (std::size_t i = 0; i < view.extent(0); ++i) found += view(i) == value;
  return found;
}

// Every rank sends -1, so the test can count the elements that arrive in the scratch. There are
// short calls, calls at the limit, unequal shares, and several pieces.
TEST(Scratch, IsUsedWholeAndNoOtherMemoryIsAllocated) {
  for (const Size max_count : {Size{1} << 30, Size{1013}}) {
    CommOptions options;
    options.max_count = max_count;
    const Communicator comm = Communicator::world(options);
    for (const Size n : {0, 1, 32 * comm.size() - 1, 32 * comm.size() + 1, 300'001}) {
      const Range own = balanced_split(n, comm.size(), comm.rank());
      const Size needed = reduce_scatter_scratch(n, own.count, comm.size(), DType::float64);
      const Size spare = 3;
      for (const bool in_place : {false, true}) {
        const HostView in = view_of(n, -1), out = view_of(own.count, 0);
        const HostView scratch = view_of(needed + spare, untouched);
        MpiSpy::reset();
        if (in_place) {
          comm.ireduce_scatter(in, ReduceOp::sum, Scratch{scratch}).wait();
        } else {
          comm.ireduce_scatter(in, out, ReduceOp::sum, {}, Scratch{scratch}).wait();
        }
        EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 0) << n;
        EXPECT_EQ(count_of(scratch, -1), needed) << n;
        EXPECT_EQ(count_of(scratch, untouched), spare) << n;
        const HostView own_part = Kokkos::subview(in, std::pair(own.begin, own.end()));
        EXPECT_EQ(count_of(in_place ? own_part : out, -comm.size()), own.count) << n;
      }
    }
  }
}

TEST(Scratch, MustBeLargeEnoughContiguousApartAndOfTheSameType) {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) GTEST_SKIP();
  const Size share = balanced_split(1000, comm.size(), comm.rank()).count;
  const Size needed = reduce_scatter_scratch(1000, share, comm.size(), DType::float64);
  const HostView v = view_of(1000, 1);
  const auto message = [&](const auto& scratch) {
    return message_of([&] { comm.ireduce_scatter(v, ReduceOp::sum, Scratch{scratch}).wait(); });
  };
  expect_contains(message(view_of(needed - 1, 0)),
                  "the scratch View has " + std::to_string(needed - 1) + " elements, but " +
                      std::to_string(needed) + " are needed");
  expect_contains(message(v), "the scratch View overlaps another View");
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> columns("columns", 1000, 2);
  expect_contains(message(Kokkos::subview(columns, Kokkos::ALL, 0)),
                  "the scratch View is not contiguous");
  const Kokkos::View<float*, Kokkos::HostSpace> floats("floats", 2000);
  expect_contains(message(floats), "the scratch View has a different element type");
  comm.barrier();
}

}  // namespace
}  // namespace tessera
