// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/region.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/trace/region_timer.hpp>

namespace tessera {
namespace {

std::map<std::string, Size> calls_by_axis(const RankTrace& trace) {
  std::map<std::string, Size> counts;
  for (const TracedCall& call : trace.calls) {
    EXPECT_EQ(call.operation, Operation::all_reduce) << call.axis;
    ++counts[call.axis];
  }
  return counts;
}

// With overlap, a reduction over `data` is in flight while `model` communicates.
TEST(RegionTimer, BooksAWaitToTheAxisOfItsCall) {
  const Communicator world = Communicator::world();
  if (world.size() < 4) GTEST_SKIP() << "needs two axes of several ranks";
  const Mesh mesh(world, MeshShape({{"data", world.size() / 2}, {"model", 2}}));
  const Vector<float> gradients("gradients", 1000), activations("activations", 10);
  const RegionTimer timer;
  {
    const Region step("tessera::step");
    Request request = mesh.axis("data").iall_reduce(gradients);
    mesh.axis("model").all_reduce(activations);
    mesh.axis("model").all_reduce(activations);
    request.wait();
  }
  // Start and wait of a request count as one call each.
  EXPECT_EQ(calls_by_axis(timer.trace()), (std::map<std::string, Size>{{"data", 2}, {"model", 2}}));
}

TEST(RegionTimer, TellsPhasesProductsAndCallsApart) {
  const Communicator world = Communicator::world();
  const Vector<float> values("values", 10);
  const Matrix<float> a("a", 64, 64), b("b", 64, 64), c("c", 64, 64);
  const auto before = Kokkos::Tools::Experimental::get_callbacks().push_region;
  { const RegionTimer earlier; }
  EXPECT_EQ(Kokkos::Tools::Experimental::get_callbacks().push_region, before);
  const RegionTimer timer;
  world.all_reduce(values);  // not in a step
  {
    const Region step("tessera::step");
    {
      const Region forward("tessera::forward");
      mark_event(action_event, [] { return "7"; });
      const Vector<double> allocated("tessera::more", 3);
      mark_event(action_event, [] { return "8"; });
      mark_event(tensor_event, [] { return "layer1"; });
      Gemm<float>()(Trans::no, Trans::no, a, b, 0, c);
      world.all_reduce(values);
    }
    const Region update("tessera::update");
  }
  const RankTrace& trace = timer.trace();
  EXPECT_EQ(trace.calls.size(), world.size() > 1 ? 1u : 0u);
  double calls = 0;
  for (const TracedCall& call : trace.calls) {
    calls += call.seconds;
    EXPECT_EQ(call.bytes, 40);
    EXPECT_EQ(call.tensor, "layer1");
    EXPECT_EQ(call.step, 0);
  }
  ASSERT_EQ(trace.memory.size(), 2u);
  EXPECT_EQ(trace.memory[1].action, 8);
  EXPECT_GE(trace.memory[1].begin, trace.memory[0].begin);
  EXPECT_EQ(trace.memory[0].measured, 0) << "nothing was allocated yet";
  EXPECT_EQ(trace.memory[1].measured - trace.memory[0].measured, 24);
  EXPECT_GT(trace.products, 0);
  EXPECT_GE(trace.compute, trace.products);
  EXPECT_GE(trace.optimizer, 0);
  EXPECT_GE(trace.step, trace.compute + trace.optimizer + calls);
  const auto has = [&](const std::string& name) {
    return std::any_of(trace.regions.begin(), trace.regions.end(),
                       [&](const TracedRegion& region) { return region.name == name; });
  };
  for (const char* name : {"tessera::step", "tessera::forward", "tessera::gemm", "tessera::update"})
    EXPECT_TRUE(has(name)) << name;
}

// Kokkos would wait for the kernel that the threads belong to.
TEST(RegionTimer, HearsNothingOfThreadsThatShareItems) {
  const RegionTimer timer;
  {
    const Region step("tessera::step");
    const Region products(products_region);
    share_items("tessera::shared"_label, 8, 8, Size{1} << 40, [](const Range&, Size) {
      const Region region("tessera::of_a_share");
      const Region inner(products_region);
    });
  }
  EXPECT_GT(timer.trace().products, 0);
  EXPECT_LE(timer.trace().products, timer.trace().step);
  for (const TracedRegion& region : timer.trace().regions)
    EXPECT_TRUE(!on_host || region.name != "tessera::of_a_share");
}

std::vector<std::string> seen;  // by the tool of the next test

TEST(RegionTimer, LeavesOutEventsBeyondItsLimitAndCallsAnEarlierTool) {
  namespace tools = Kokkos::Tools::Experimental;
  const auto before = tools::get_callbacks().push_region;
  tools::set_push_region_callback([](const char* name) { seen.emplace_back(name); });
  {
    const RegionTimer timer(2);
    {
      const Region step("tessera::step");
      for (const char* name : {"tessera::a", "tessera::b", "tessera::c"}) const Region inner(name);
    }
    ASSERT_EQ(timer.trace().regions.size(), 2u);
    EXPECT_EQ(timer.trace().regions.back().name, "tessera::b");
    EXPECT_EQ(timer.trace().left_out, 2);
    EXPECT_GT(timer.trace().step, 0) << "its time counts nevertheless";
  }
  tools::set_push_region_callback(before);
  EXPECT_EQ(seen,
            (std::vector<std::string>{"tessera::step", "tessera::a", "tessera::b", "tessera::c"}));
}

// A wait for all streams would hold up kernels until NCCL's calls in the background have ended.
TEST(RegionTimer, WaitsForTheStreamOfTheKernelsOnly) {
  static std::vector<std::string> waits;
  waits.clear();
  const RegionTimer timer;
  Kokkos::Tools::Experimental::set_begin_fence_callback(
      [](const char* name, std::uint32_t, std::uint64_t*) {
        // Kokkos waits by itself, unless Runtime has started it.
        if (!std::string_view(name).starts_with("Kokkos::Tools::")) waits.emplace_back(name);
      });
  { const Region step("tessera::step"); }
  Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
  EXPECT_EQ(waits, std::vector<std::string>(2, "tessera::trace"));
}

}  // namespace
}  // namespace tessera
