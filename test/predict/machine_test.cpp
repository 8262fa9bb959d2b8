// SPDX-License-Identifier: Apache-2.0
// Kinds of ranks, and the cost of a plan's work on a machine.
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/predict/machine.hpp>
#include <tessera/predict/rank_kinds.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::three_on;

/// Returns a machine of three nodes with two ranks each.
Machine small_cluster() {
  Machine machine;
  machine.name = "small";
  machine.flops_per_second = {{"float32", 1e9}};
  machine.memory_bytes_per_second = 1e8;
  machine.memory_bytes = Size{1} << 30;
  machine.kernel_seconds = 1e-6;
  machine.network = {{"node", 2, 1e-6, 1e9}, {"cluster", 6, 1e-5, 1e8}};
  return machine;
}

/// Returns a kind for each rank.
RankKinds single_ranks(const Plan& plan) {
  const MeshShape& mesh = plan.input.mesh;
  RankKinds kinds;
  kinds.share.assign(mesh.num_ranks(), 1 / static_cast<double>(mesh.num_ranks()));
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
    kinds.first.push_back(rank);
    for (const AxisSet axes : axes_of_calls(plan))
      kinds.leader[axes].push_back(mesh.first_of_group(axes, rank));
  }
  return kinds;
}

// One clock per kind gives the same times as one clock per rank.
TEST(RankKinds, RepresentAllTheirRanks) {
  struct Tried {
    std::string mesh;
    Size ranks;
    Strategy strategy;
    std::size_t kinds;
  };
  for (const auto& [mesh, ranks, strategy, kinds] :
       {Tried{"data=6", 6, Strategy::data, 2}, Tried{"data=3,model=2", 6, Strategy::zero2, 6},
        Tried{"data=2,fsdp=3", 6, Strategy::hybrid, 3}, Tried{"fsdp=5", 5, Strategy::fsdp, 3},
        Tried{"pipeline=3,data=2", 6, Strategy::data, 3},
        Tried{"pipeline=2,fsdp=3", 6, Strategy::fsdp, 4},
        Tried{"data=2,model=3", 6, Strategy::data, 3},
        Tried{"pipeline=3,data=4,model=2", 24, Strategy::zero1, 18}})
    for (const bool overlap : {false, true}) {
      SCOPED_TRACE(mesh);
      PlanInput input = three_on(mesh, ranks, strategy);
      input.overlap = overlap;
      input.microbatches = 2;
      input.clips_by_norm = true;
      const Plan plan = make_plan(input);
      const RankKinds alike = rank_kinds(plan), apart = single_ranks(plan);
      EXPECT_EQ(apart.size(), static_cast<std::size_t>(ranks));
      EXPECT_EQ(alike.size(), kinds);
      const CostOf cost = [](const Work& work) {
        const double size = work.bytes;
        return work.call ? Cost{1 + size / 64, 0, 0.25} : Cost{size / 16, size / 100};
      };
      const SimulatedStep few = simulate(plan, cost, alike), all = simulate(plan, cost, apart);
      EXPECT_NEAR(few.step_seconds, all.step_seconds, 1e-9 * all.step_seconds);
      EXPECT_NEAR(few.products.work, all.products.work, 1e-9 * all.products.work);
      EXPECT_NEAR(few.communication(), all.communication(), 1e-9 * all.step_seconds);
      EXPECT_NEAR(few.waiting(), all.waiting(), 1e-9 * all.step_seconds);
      EXPECT_GT(all.step_seconds, 0);
    }
}

// A plan of two billion ranks has few boxes and few kinds.
TEST(RankKinds, AreAsFewForBillionsOfRanks) {
  for (const auto& [mesh, strategy] : {std::pair{"data=2147483647", Strategy::data},
                                       {"fsdp=2147483647", Strategy::fsdp},
                                       {"data=1048576,fsdp=2047", Strategy::hybrid},
                                       {"data=65536,fsdp=32767", Strategy::zero2},
                                       {"data=1000003,model=2047", Strategy::zero1},
                                       {"model=2147483647", Strategy::tensor}}) {
    SCOPED_TRACE(mesh);
    PlanInput input = three_on(mesh, MeshShape(parse_axes(mesh)).num_ranks(), strategy);
    input.batch_size = input.samples = 3'000'000'007;
    input.validation_samples = 12'345;
    input.clips_by_norm = true;
    const Plan plan = make_plan(input);
    const RankKinds kinds = rank_kinds(plan);
    EXPECT_LT(group_alike(plan, true).ranks.mesh().num_ranks(), 5000);
    EXPECT_LT(kinds.size(), 500u);
    EXPECT_NEAR(std::accumulate(kinds.share.begin(), kinds.share.end(), 0.0), 1, 1e-9);
    EXPECT_LT(to_text(plan, 0, PlanParts::all()).size(), 50'000u);
  }
}

TEST(Machine, KernelsAreBoundByFlopsOrBytes) {
  const Plan plan = make_plan(three_on("data=1", 1, Strategy::data));
  Machine exact = small_cluster();
  exact.product_overlap = 0.25;
  exact.side_efficiency = {{40, 2.0 / 3}};
  exact.function_seconds = 1e-9;
  struct Tried {
    Work work;
    double seconds;
  };
  for (const auto& [work, seconds] :
       {Tried{{.flops = 3e9, .bytes = 1e8}, 3 + 1e-6},
        {{.flops = 3e9, .bytes = 4e8}, 4 + 1e-6},
        // A product hides a part of the shorter time only.
        {{.flops = 3e9, .bytes = 4e8, .has_products = true}, 4 + 0.75 * 3 + 1e-6},
        {{.flops = 3e9, .bytes = 1e8, .has_products = true}, 3 + 0.75 * 1 + 1e-6},
        {{.kernels = 5}, 5e-6},
        // Arithmetic of narrow products, and of functions.
        {{.flops = 3e9, .flops_of_side = {{40, 3e9}}}, 4.5 + 1e-6},
        {{.flops = 3e9, .flops_of_side = {{40, 3e9}}, .functions = 5e8}, 5 + 1e-6}})
    EXPECT_DOUBLE_EQ(cost_on(exact, plan)(work).seconds, seconds);
}

// Linear in the logarithm of the side, and constant beyond the table.
TEST(Machine, ProductsReachTheRateOfTheirSide) {
  Machine machine = small_cluster();
  machine.side_efficiency = {{64, 0.2}, {1024, 1.0}};
  EXPECT_DOUBLE_EQ(1 / machine.slowdown(8), 0.2);
  EXPECT_DOUBLE_EQ(1 / machine.slowdown(64), 0.2);
  EXPECT_DOUBLE_EQ(1 / machine.slowdown(256), 0.6);
  EXPECT_DOUBLE_EQ(1 / machine.slowdown(5000), 1);
  const Plan plan = make_plan(three_on("data=1", 1, Strategy::data));
  const Work work{.flops = 3e9, .flops_of_side = {{8, 1e9}, {2048, 2e9}}};
  EXPECT_DOUBLE_EQ(cost_on(machine, plan)(work).seconds, 5 + 2 + 1e-6);
}

// The FLOPs of a product for each element of its matrices are 2/3 of the mean.
TEST(Machine, SidesOfProductsHaveAHarmonicMean) {
  EXPECT_EQ((GemmShape{64, 64, 64}.side()), 64);
  EXPECT_EQ((GemmShape{512, 32, 32}.side()), 47);
  EXPECT_EQ((GemmShape{32, 512, 512}.side()), 85);
  EXPECT_EQ((GemmShape{512, 512, 32}.side()), 85);
  const GemmShape many{512, 512, 512, 7};
  EXPECT_DOUBLE_EQ(many.flops() / static_cast<double>(many.elements()) * 1.5,
                   static_cast<double>(many.side()));
}

TEST(Machine, KernelsReachTheRateOfTheSmallestCacheThatHoldsAStep) {
  const Plan plan = make_plan(three_on("data=1", 1, Strategy::data));
  const MemoryPlan memory = plan.memory(0);
  const Size used = memory.total() - memory.data;
  Machine machine = small_cluster();
  Work work;
  work.bytes = 4e8;
  const auto seconds = [&](std::vector<CacheLevel> caches) {
    machine.caches = std::move(caches);
    return cost_on(machine, plan)(work).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds({{used / 2 - 1, 1e9}}), 4 + 1e-6);
  EXPECT_DOUBLE_EQ(seconds({{used / 2 - 2, 1e9}, {used, 8e8}, {used + 1, 4e8}}), 0.5 + 1e-6);
}

// Half an octave beyond a cache, a step finds half of its bytes there.
TEST(Machine, RatesFallFromACacheToTwiceItsBytes) {
  Machine machine = small_cluster();
  machine.memory_bytes_per_second = 1e9;
  machine.caches = {{1000, 9e9}, {1414, 7e9}, {100'000, 3e9}};
  EXPECT_DOUBLE_EQ(machine.memory_rate(10), 9e9);
  EXPECT_DOUBLE_EQ(machine.memory_rate(1000), 9e9);
  EXPECT_NEAR(machine.memory_rate(1189), 8e9, 5e6);
  EXPECT_DOUBLE_EQ(machine.memory_rate(1414), 7e9);
  EXPECT_NEAR(machine.memory_rate(2000), 5e9, 5e6);
  EXPECT_DOUBLE_EQ(machine.memory_rate(2828), 3e9);
  EXPECT_DOUBLE_EQ(machine.memory_rate(90'000), 3e9);
  EXPECT_NEAR(machine.memory_rate(141'421), 2e9, 1e5);
  EXPECT_DOUBLE_EQ(machine.memory_rate(1'000'000), 1e9);
  for (const Size bytes : {10, 1189, 2000, 90'000, 141'421, 1'000'000})
    for (const Size more : {bytes, 2 * bytes, 100 * bytes})
      EXPECT_GE(machine.highest_rate(bytes), machine.memory_rate(more)) << bytes << ' ' << more;
}

Work call(AxisSet ranks, Operation operation, double bytes) {
  Work work;
  work.call = ActionCall{.ranks = ranks, .operation = operation};
  work.bytes = bytes;
  return work;
}

TEST(Machine, CallsTakeRoundsAndTheSlowestLink) {
  const auto seconds = [](const std::string& mesh, const char* axis) {
    const Plan plan = make_plan(three_on(mesh, 6, Strategy::data));
    const AxisSet ranks = plan.input.mesh.axes_named({axis});
    return cost_on(small_cluster(), plan)(call(ranks, Operation::all_reduce, 6e8)).seconds;
  };
  // Within a node: 1 round with all bytes, at 1 GB/s.
  EXPECT_DOUBLE_EQ(seconds("data=3,model=2", "model"), 1e-6 + 6e8 / 1e9);
  // Over all ranks: one ring, which uses the link of each node once.
  EXPECT_DOUBLE_EQ(seconds("data=6", "data"), 6 * 1e-5 + 10.0 / 6 * 6e8 / 1e8);
  // Two groups, each with one rank per node: they share the links of the nodes.
  EXPECT_DOUBLE_EQ(seconds("data=3,model=2", "data"), 4 * 1e-5 + 4.0 / 3 * 6e8 / 5e7);
}

// One group of three ranks stays in each node of four; the second one does not.
TEST(Machine, CallsTakeAsLongAsThoseOfTheSlowestGroup) {
  Machine machine = small_cluster();
  machine.network = {{"node", 4, 1e-6, 1e9}, {"cluster", 12, 1e-5, 1e8}};
  const Plan plan = make_plan(three_on("data=4,model=3", 12, Strategy::data));
  const AxisSet ranks = plan.input.mesh.axes_named({"model"});
  // Both groups of the second node leave it.
  EXPECT_DOUBLE_EQ(cost_on(machine, plan)(call(ranks, Operation::all_gather, 6e8)).seconds,
                   2 * 1e-5 + 2.0 / 3 * 6e8 / 5e7);
}

// Of the messages between four stages, only those between the second and the third leave a node.
TEST(Machine, MessagesTakeTheLinksBetweenTheirStages) {
  Machine machine = small_cluster();
  PlanInput input = three_on("pipeline=4", 4, Strategy::data);
  input.model = mlp({.widths = {3, 5, 2, 7, 4}});
  const Plan plan = make_plan(input);
  const CostOf cost = cost_on(machine, plan);
  for (const auto& [from, to, rate] : {std::tuple(0, 1, 1e9), std::tuple(1, 2, 1e8),
                                       std::tuple(2, 1, 1e8), std::tuple(3, 2, 1e9)}) {
    Work message = call(plan.input.mesh.all_axes(), Operation::receive, 6e8);
    message.stage = from;
    message.peer = to;
    EXPECT_NEAR(cost(message).seconds, 6e8 / rate, 1e-4) << from << " to " << to;
  }
}

TEST(Machine, RejectsStepsThatTakeForEver) {
  Machine machine = small_cluster();
  machine.kernel_seconds = 1e308;
  const Plan plan = make_plan(three_on("data=2", 2, Strategy::data));
  EXPECT_TRUE(test::error_of([&] {
                simulate(plan, machine);
              }).starts_with("machine small: with its rates and latencies a step takes "));
}

TEST(Machine, LongMessagesTakeARendezvous) {
  constexpr double limit = 4096;  // bytes, which take a microsecond
  const NetworkLevel level{"node", 8, 1e-6, 1e6 * limit, 1e-5};
  const auto seconds = [&](Operation operation, double limits) {
    return call_seconds(level, operation, 8, limits * limit);
  };
  // The faster of two algorithms: three messages of all bytes each, or six messages of 1.75 times
  // the bytes together.
  EXPECT_DOUBLE_EQ(seconds(Operation::all_reduce, 1), 3e-6 + 3 * 1e-6);
  EXPECT_DOUBLE_EQ(seconds(Operation::all_reduce, 3), 6e-6 + 1.75 * 3e-6);
  EXPECT_DOUBLE_EQ(seconds(Operation::all_reduce, 6), 3 * 1.1e-5 + 3 * 6e-6);
  EXPECT_DOUBLE_EQ(seconds(Operation::all_reduce, 1000), 6 * 1.1e-5 + 1.75 * 1e-3);
  EXPECT_DOUBLE_EQ(seconds(Operation::all_gather, 1000), 3 * 1.1e-5 + 0.875 * 1e-3);
}

TEST(Machine, OnlyPartOfACallIsHidden) {
  Machine machine = small_cluster();
  machine.overlap = 0.75;
  const Plan plan = make_plan(three_on("data=2", 2, Strategy::data));
  const Cost cost = cost_on(machine, plan)(call({0}, Operation::all_gather, 2e9));
  EXPECT_DOUBLE_EQ(cost.seconds, 1e-6 + 1);
  EXPECT_DOUBLE_EQ(cost.exposed, 0.25 * cost.seconds);
  machine.overlaps = {{"gathers", 1.0}, {"messages", 0.5}};
  const CostOf by_call = cost_on(machine, plan);
  EXPECT_DOUBLE_EQ(by_call(call({0}, Operation::all_gather, 2e9)).exposed, 0);
  EXPECT_DOUBLE_EQ(by_call(call({0}, Operation::all_reduce, 1e9)).exposed, 0.25 * cost.seconds);
  EXPECT_DOUBLE_EQ(machine.hidden(Operation::receive), 0.5);
}

TEST(Machine, RejectsMissingRanksAndTypes) {
  const auto rejection = [](const std::string& mesh, Size ranks, DType type) {
    PlanInput input = three_on(mesh, ranks, Strategy::data);
    input.compute_type = type;
    return test::error_of([&] { product_rate(small_cluster(), input); });
  };
  EXPECT_EQ(rejection("data=7", 7, DType::float32),
            "mesh = data=7: needs 7 ranks; machine small has 6");
  EXPECT_EQ(rejection("data=2", 2, DType::bfloat16),
            "machine.flops_per_second = small: has no bfloat16");
}

TEST(Machine, CopiesOfSharesAreExposed) {
  const Plan plan = make_plan(three_on("data=2", 2, Strategy::fsdp));
  const Work call{.bytes = 1000, .copied = 2000, .call = ActionCall{plan.input.mesh.all_axes()}};
  Work in_place = call;
  in_place.copied = 0;
  const CostOf cost = cost_on(small_cluster(), plan);
  EXPECT_NEAR(cost(call).seconds - cost(in_place).seconds, 2000 / 1e8, 1e-12);
  EXPECT_NEAR(cost(call).exposed - cost(in_place).exposed, 2000 / 1e8, 1e-12);
}

}  // namespace
}  // namespace tessera
