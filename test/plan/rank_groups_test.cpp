// SPDX-License-Identifier: Apache-2.0
// Ranks with equal parts, memory, calls or work are grouped.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/work.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

std::vector<int> ranks_of(const RankBoxes& boxes, const RankBoxes::Group& group) {
  std::vector<int> ranks;
  for (const Range& range : boxes.ranges(group, 1'000'000))
    for (Size rank = range.begin; rank < range.end(); ++rank)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

TEST(RankBoxes, AreRunsOfCoordinatesAlongEachAxis) {
  const MeshShape mesh = MeshShape::parse("data=4,fsdp=3,model=2", 24);
  MeshCuts cuts(mesh);
  cuts.cut(0, 2);
  cuts.cut_split({1}, 5);  // 2, 2, 1
  const RankBoxes boxes(cuts);
  ASSERT_EQ(boxes.size(), 4);
  EXPECT_EQ(boxes.first_rank(3), mesh.rank_at({2, 2, 0}));
  EXPECT_EQ(boxes.group_size(0, {1}), 2);
  EXPECT_EQ(boxes.group_size(0, {0, 2}), 4);
  EXPECT_EQ(boxes.num_ranks({0}), 8);
  EXPECT_EQ(ranks_of(boxes, {0}), (std::vector<int>{0, 1, 2, 3, 6, 7, 8, 9}));
  EXPECT_EQ(boxes.describe({0}), "ranks 0-3,6-9");
  EXPECT_EQ(boxes.describe({0, 1}), "ranks 0-11");
  EXPECT_EQ(boxes.describe(boxes.all()), "every rank");
  EXPECT_EQ(boxes.describe({1, 3}), "ranks 4-5,10-11,16-17,22-23");
}

TEST(RankBoxes, FollowPlacesOverSeveralAxes) {
  const MeshShape mesh = MeshShape::parse("data=3,model=2,fsdp=5", 30);
  for (const Size count : {0, 1, 4, 15, 16, 44, 100})
    for (Size element = 0; element < count; element += 3) {
      MeshCuts cuts(mesh);
      cuts.cut_split({0, 2}, count);
      cuts.cut_around({0, 2}, count, element);
      const RankBoxes boxes(cuts);
      std::vector<int> seen;
      for (const Size box : boxes.all()) {
        const auto part = [&](Size rank) {
          return balanced_split(count, 15, mesh.coordinate(rank, std::vector<std::size_t>{0, 2}));
        };
        const auto holds = [&](Range range) {
          return range.begin <= element && element < range.end();
        };
        const Range first = part(boxes.first_rank(box));
        for (const int rank : ranks_of(boxes, {box})) {
          seen.push_back(rank);
          EXPECT_EQ(part(rank).count, first.count);
          EXPECT_EQ(holds(part(rank)), holds(first)) << "rank " << rank;
        }
      }
      std::sort(seen.begin(), seen.end());
      std::vector<int> all(30);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all);
    }
}

TEST(RankBoxes, ListOnlyTheFirstOfManyRanges) {
  const MeshShape mesh = MeshShape::parse("data=500000000,model=2", 1'000'000'000);
  MeshCuts cuts(mesh);
  cuts.cut(1, 1);
  const RankBoxes boxes(cuts);
  EXPECT_EQ(boxes.describe({0}), "ranks 0,2,4,6,8,10,... (500,000,000 ranks)");
  EXPECT_LT(boxes.number_ranges({0}).size(), 50'000u);
  EXPECT_EQ(boxes.describe({0, 1}), "every rank");
}

TEST(RankGroups, GroupsEqualValuesInTheOrderOfTheirFirstRank) {
  const MeshShape mesh = MeshShape::parse("data=6", 6);
  MeshCuts all(mesh);
  all.cut_all(0);
  const RankBoxes boxes(all);
  const std::vector<int> values = {5, 5, 2, 5, 2, 9};
  const auto groups = group_boxes<int>(
      boxes, boxes.all(), [&](Size rank) { return values[static_cast<std::size_t>(rank)]; });
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].value, 5);
  EXPECT_EQ(groups[0].boxes, (RankBoxes::Group{0, 1, 3}));
  EXPECT_EQ(groups[1].boxes, (RankBoxes::Group{2, 4}));
  EXPECT_EQ(groups[2].boxes, (RankBoxes::Group{5}));
}

bool same_memory(const MemoryPlan& a, const MemoryPlan& b) {
  return std::all_of(memory_rows.begin(), memory_rows.end(),
                     [&](const MemoryRow& row) { return a.*row.bytes == b.*row.bytes; });
}

void expect_groups_right(const Plan& plan) {
  const Size ranks = plan.input.mesh.num_ranks();
  const AlikeRanks alike = ranks_alike(plan);
  std::set<int> seen;
  for (const RankBoxes::Group& group : alike.groups) {
    const Size first = alike.first_rank(group);
    for (const int rank : ranks_of(alike.boxes, group)) {
      EXPECT_TRUE(seen.insert(rank).second);
      EXPECT_TRUE(same_memory(plan.memory(rank), plan.memory(first))) << "rank " << rank;
      EXPECT_EQ(plan.collectives(rank), plan.collectives(first)) << "rank " << rank;
    }
  }
  EXPECT_EQ(static_cast<Size>(seen.size()), ranks);
  const GroupedRanks<CheckpointBytes> bytes = group_checkpoint_bytes(plan);
  for (const RankGroup<CheckpointBytes>& group : bytes.groups)
    for (const int rank : ranks_of(bytes.boxes, group.boxes))
      EXPECT_EQ(checkpoint_bytes(plan, rank), group.value) << "rank " << rank;
  const ParameterLayout& layout = plan.stages.front().parameters;
  for (const Slot& tensor : plan.stages.front().slots) {
    const GroupedRanks<LocalPart> parts = parts_of(plan, 0, tensor);
    for (const RankGroup<LocalPart>& group : parts.groups)
      for (const int rank : ranks_of(parts.boxes, group.boxes)) {
        if (tensor.parameter < 0 && tensor.experts > 0) continue;
        const Piece block =
            tensor.parameter >= 0
                ? plan.piece(rank, layout.parameters[tensor.parameter])
                : piece(tensor.shape, cuts_of(tensor.placements), plan.input.mesh, rank);
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
}

/// Expects that the ranks of a box do equal work.
void expect_equal_work(const Plan& plan) {
  const EqualWork equal = ranks_with_equal_work(plan);
  for (const Size box : equal.boxes.all()) {
    const Size first = equal.first[static_cast<std::size_t>(box)];
    const WorkSizes wanted = work_sizes(plan, first);
    for (const int rank : ranks_of(equal.boxes, {box})) {
      const WorkSizes sizes = work_sizes(plan, rank);
      for (const auto& [action, microbatch] : plan.stage(rank).actions)
        EXPECT_EQ(work_of(action, microbatch, plan, sizes),
                  work_of(action, microbatch, plan, wanted))
            << "rank " << rank;
    }
  }
}

TEST(RankGroups, FirstRankRepresentsItsGroup) {
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
        input.batch_size = 13;
        input.samples = 33;
        input.microbatches = 2;
        input.precision = MatmulPrecision::tf32;
        input.sequence_parallel = rows && axes.back().name == "model";
        SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << strategies[s].name);
        input.clips_by_norm = true;
        input.validation_samples = 19;  // 13 and 6
        const Plan plan = make_plan(input);
        expect_groups_right(plan);
        expect_equal_work(plan);
      }
}

TEST(RankGroups, OfExpertsOnTheirRanks) {
  for (const std::vector<Axis>& axes : {std::vector<Axis>{{"expert", 4}},
                                        {{"data", 2}, {"expert", 3}},
                                        {{"expert", 4}, {"fsdp", 3}, {"model", 2}}})
    for (std::size_t s = 0; s < strategies.size(); ++s) {
      PlanInput input = sharded(tutorial(axes), static_cast<Strategy>(s));
      input.model = transformer({.context = 5, .width = 6, .heads = 2, .experts = 10});
      input.loss = LossKind::cross_entropy;
      input.batch_size = 13;
      input.samples = 33;
      input.microbatches = 2;
      input.validation_samples = 19;
      input.clips_by_norm = true;
      SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << strategies[s].name);
      const Plan plan = make_plan(input);
      expect_groups_right(plan);
      expect_equal_work(plan);
    }
}

}  // namespace
}  // namespace tessera
