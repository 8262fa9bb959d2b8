// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/allocation_tracker.hpp>
#include <tessera/base/view.hpp>

namespace tessera {
namespace {

namespace tools = Kokkos::Tools::Experimental;

TEST(AllocationScope, CountsAllocationsCurrentAndPeakBytes) {
  const AllocationScope scope;
  {
    const Vector<float> a("tessera::a", 10);
    const Vector<float> alias = a;
    const Matrix<float> window(a.data(), 2, 5);
    EXPECT_EQ(scope.allocations(), 1);
    const Vector<double> b("tessera::b", 10);
    EXPECT_EQ(scope.current_bytes(), 120);
  }
  EXPECT_EQ(scope.allocations(), 2);
  EXPECT_EQ(scope.total().deallocations, 2);
  EXPECT_EQ(scope.current_bytes(), 0);
  EXPECT_EQ(scope.peak_bytes(), 120);
}

TEST(AllocationScope, CountsOnlyDuringItsLife) {
  const Vector<float> before("before", 8);
  Vector<float> freed_inside("freed inside", 4);
  AllocationScope scope;
  EXPECT_EQ(scope.allocations(), 0);
  freed_inside = Vector<float>();
  EXPECT_EQ(scope.current_bytes(), -16);
  scope.reset();
  EXPECT_EQ(scope.current_bytes(), 0);
  EXPECT_EQ(scope.total().deallocations, 0);
}

TEST(AllocationScope, NestsAndFiltersByLabelAndSpace) {
  const AllocationScope outer, elsewhere("", "another space"), here("", MemSpace::name());
  const Vector<float> a("other", 1);
  const AllocationScope inner("tessera::");
  const Vector<float> b("tessera::x", 2);
  const Vector<float> c("other", 4);
  EXPECT_EQ(outer.allocations(), 3);
  EXPECT_EQ(here.allocations(), 3);
  EXPECT_EQ(elsewhere.allocations(), 0);
  EXPECT_EQ(inner.allocations(), 1);
  EXPECT_EQ(inner.current_bytes(), 8);
}

TEST(AllocationScope, CountsAllocationsOfAllThreads) {
  const AllocationScope scope;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) {
        void* memory = Kokkos::kokkos_malloc<Kokkos::HostSpace>("raw", 16);
        Kokkos::kokkos_free<Kokkos::HostSpace>(memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scope.allocations(), 400);
  EXPECT_EQ(scope.current_bytes(), 0);
}

int seen_by_tool = 0;
void tool_allocate(Kokkos::Tools::SpaceHandle, const char*, const void*, std::uint64_t) {
  ++seen_by_tool;
}

TEST(AllocationScope, CallsAnEarlierToolAndRestoresIt) {
  const bool loaded_before = Kokkos::Tools::profileLibraryLoaded();
  const auto original = tools::get_callbacks().allocate_data;
  tools::set_allocate_data_callback(tool_allocate);
  seen_by_tool = 0;
  {
    const AllocationScope scope;
    const Vector<float> a("a", 1);
    EXPECT_EQ(scope.allocations(), 1);
    EXPECT_EQ(seen_by_tool, 1);
  }
  EXPECT_EQ(tools::get_callbacks().allocate_data, tool_allocate);
  tools::set_allocate_data_callback(original);
  { const AllocationScope scope; }
  EXPECT_EQ(Kokkos::Tools::profileLibraryLoaded(), loaded_before) << "kernels must stay cheap";
}

}  // namespace
}  // namespace tessera
