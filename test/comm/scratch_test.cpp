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

struct Split {
  Size count, share, needed;
};

Split split_of(Size count, const Communicator& comm) {
  const Size share = balanced_split(count, comm.size(), comm.rank()).count;
  return {count, share, reduce_scatter_scratch(count, share, comm.size(), DType::float64)};
}

/// Short calls, calls at the limit, unequal shares, several pieces.
std::vector<Size> extents(const Communicator& comm) {
  return {0, 1, 32 * comm.size() - 1, 32 * comm.size(), 32 * comm.size() + 1, 300'001};
}

Size count_of(const HostView& view, double value) {
  Size found = 0;
  for (std::size_t i = 0; i < view.extent(0); ++i) found += view(i) == value;
  return found;
}

std::vector<CommOptions> scratch_ways() {
  std::vector<CommOptions> ways(3);
  ways[1].max_count = 1013;
  ways[2].check_collectives = true;
  return ways;
}

// Every rank sends -1, so the test can count the elements that arrive in the scratch.
TEST(Scratch, IsUsedWholeAndNoOtherMemoryIsAllocated) {
  for (const CommOptions& way : scratch_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : extents(comm)) {
      const Split split = split_of(n, comm);
      const Size spare = 3;
      for (const bool in_place : {false, true}) {
        const HostView in = view_of(n, -1), out = view_of(split.share, 0);
        const HostView scratch = view_of(split.needed + spare, untouched);
        MpiSpy::reset();
        if (in_place) {
          comm.ireduce_scatter(in, ReduceOp::sum, Scratch{scratch}).wait();
        } else {
          comm.ireduce_scatter(in, out, ReduceOp::sum, {}, Scratch{scratch}).wait();
        }
        EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 0) << n;
        EXPECT_EQ(count_of(scratch, -1), split.needed) << n;
        EXPECT_EQ(count_of(scratch, untouched), spare) << n;
        const Range own = balanced_split(n, comm.size(), comm.rank());
        const HostView share =
            in_place ? HostView(Kokkos::subview(in, std::pair(own.begin, own.end()))) : out;
        EXPECT_EQ(count_of(share, -comm.size()), split.share) << n;
      }
    }
  }
}

TEST(Scratch, MustBeLargeEnoughContiguousApartAndOfTheSameType) {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) GTEST_SKIP();
  const Split split = split_of(1000, comm);
  const HostView v = view_of(split.count, 1);
  const auto message = [&](const auto& scratch) {
    return message_of([&] { comm.ireduce_scatter(v, ReduceOp::sum, Scratch{scratch}).wait(); });
  };
  expect_contains(message(view_of(split.needed - 1, 0)),
                  "the scratch View has " + std::to_string(split.needed - 1) + " elements, but " +
                      std::to_string(split.needed) + " are needed");
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
