// SPDX-License-Identifier: Apache-2.0
// Ranks that are alike are shown together, and plans for 100,000 of them stay short.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/timer.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/plan/rank_groups.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

TEST(RankGroups, DescribesRanksInAFewWords) {
  EXPECT_EQ(describe_ranks({0, 1, 2}, 3), "every rank");
  EXPECT_EQ(describe_ranks({3}, 8), "rank 3");
  EXPECT_EQ(describe_ranks({0, 1, 2, 5}, 8), "ranks 0-2,5");
  std::vector<int> even;
  for (int rank = 0; rank < 12; rank += 2) even.push_back(rank);
  EXPECT_EQ(describe_ranks(even, 20), "ranks 0,2,4,6,8,10");
  even.push_back(12);
  EXPECT_EQ(describe_ranks(even, 20), "ranks 0,2,4,6,8,10,... (7 ranks)");
}

TEST(RankGroups, GroupsEqualValuesInTheOrderOfTheirFirstRank) {
  const std::vector<int> values = {5, 5, 2, 5, 2, 9};
  const auto groups = group_ranks<int>(
      {0, 1, 2, 3, 4, 5}, [&](Size rank) { return values[static_cast<std::size_t>(rank)]; });
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].value, 5);
  EXPECT_EQ(groups[0].ranks, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(groups[1].ranks, (std::vector<int>{2, 4}));
  EXPECT_EQ(groups[2].ranks, (std::vector<int>{5}));
}

bool same_memory(const MemoryPlan& a, const MemoryPlan& b) {
  return std::all_of(memory_rows.begin(), memory_rows.end(),
                     [&](const MemoryRow& row) { return a.*row.bytes == b.*row.bytes; });
}

void expect_groups_right(const Plan& plan) {
  const Size ranks = plan.input.mesh.num_ranks();
  std::set<int> seen;
  for (const std::vector<int>& alike : ranks_alike(plan))
    for (const int rank : alike) {
      EXPECT_TRUE(seen.insert(rank).second);
      EXPECT_TRUE(same_memory(plan.memory(rank), plan.memory(alike.front()))) << "rank " << rank;
      EXPECT_EQ(plan.collectives(rank), plan.collectives(alike.front())) << "rank " << rank;
    }
  EXPECT_EQ(static_cast<Size>(seen.size()), ranks);
  const ParameterLayout& layout = plan.stages.front().parameters;
  for (const Slot& tensor : plan.stages.front().slots)
    for (const RankGroup<LocalPart>& group : parts_of(plan, 0, tensor))
      for (const int rank : group.ranks) {
        const Block block = local_block(tensor.shape, tensor.placements, plan.input.mesh, rank);
        EXPECT_EQ(group.value.shape, block.extent) << tensor.path << ", rank " << rank;
        Size kept = num_elements(block.extent);
        if (tensor.in_shares) {
          const ParameterPlan& parameter = layout.parameters[tensor.parameter];
          const StatePlan state = plan.state(rank);
          kept = intersection({parameter.place.begin, kept}, state.buckets[parameter.bucket].share)
                     .count;
        }
        EXPECT_EQ(group.value.kept, kept) << tensor.path << ", rank " << rank;
      }
}

TEST(RankGroups, AnyOfThemSpeaksForAll) {
  const std::vector<std::vector<Axis>> meshes = {{{"data", 2}, {"fsdp", 3}},
                                                 {{"fsdp", 5}},
                                                 {{"model", 3}, {"data", 2}},
                                                 {{"data", 2}, {"fsdp", 2}, {"model", 3}},
                                                 {{"model", 7}}};
  for (const std::vector<Axis>& axes : meshes)
    for (std::size_t s = 0; s < strategies.size(); ++s)
      for (const bool rows : {false, true}) {
        PlanInput input = sharded(tutorial(axes), static_cast<Strategy>(s));
        input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});
        input.global_batch = 13;
        input.samples = 33;
        input.microbatches = 2;
        input.precision = MatmulPrecision::tf32;
        input.sequence_parallel = rows && axes.back().name == "model";
        SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << strategies[s].name);
        expect_groups_right(make_plan(input));
      }
}

// A first microbatch is split over the ranks as the plan shows its tensors.
TEST(RankGroups, MicrobatchesOverTwoAxesAreSplitAsTheirTensorsAre) {
  for (const Size batch : {5, 12, 13, 14, 23})
    for (const Size microbatches : {1, 2, 3, 5}) {
      PlanInput input = tutorial({{"data", 2}, {"fsdp", 3}});
      input.global_batch = batch;
      input.microbatches = microbatches;
      const Plan plan = make_plan(input);
      for (Size rank = 0; rank < 6; ++rank)
        EXPECT_EQ(local_block(plan.stages.front().slots[0].shape,
                              plan.stages.front().slots[0].placements, input.mesh, rank)
                      .extent[0],
                  plan.microbatch_rows(rank, 0).count)
            << batch << " rows, " << microbatches << " microbatches, rank " << rank;
    }
}

// Login nodes plan for machines; the time is shown, not judged.
TEST(RankGroups, HundredThousandRanksAreWrittenShortly) {
  const std::vector<std::vector<Axis>> meshes = {{{"data", 100000}},
                                                 {{"fsdp", 100000}},
                                                 {{"data", 250}, {"fsdp", 50}, {"model", 8}},
                                                 {{"model", 100000}},
                                                 {{"data", 50000}, {"model", 2}}};
  for (const std::vector<Axis>& axes : meshes)
    for (const Strategy strategy : {Strategy::zero1, Strategy::fsdp}) {
      PlanInput input = sharded(tutorial(axes), strategy);
      input.model = mlp({.widths = {1000, 4097, 3001, 5003, 777, 2049, 4099, 1021, 333, 2003, 10}});
      input.global_batch = 1234567;
      input.samples = 50000000;
      input.microbatches = 3;
      const Timer timer;
      const Plan plan = make_plan(input);
      const std::size_t text = to_text(plan).size();
      const double seconds = timer.seconds();
      std::printf("%-30s %-7s %4.2f s, %zu characters\n", input.mesh.to_string().c_str(),
                  std::string(name_of(strategy)).c_str(), seconds, text);
      EXPECT_LT(text, 150000u);
    }
}

}  // namespace
}  // namespace tessera
