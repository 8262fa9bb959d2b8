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

using plan_test::tutorial;
using plan_test::with_each_strategy;

template <class Value>
std::vector<int> ranks_of(const RankGroups<Value>& all, const RankClasses::Numbers& classes) {
  std::vector<int> ranks;
  for (const Range& range : all.ranks.ranges(classes, 1'000'000))
    for (Size rank = range.begin; rank < range.end(); ++rank)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

TEST(RankClasses, AreRunsOfCoordinatesAlongEachAxis) {
  const MeshShape mesh = MeshShape::parse("data=4,fsdp=3,model=2", 24);
  AxisClasses axes(mesh);
  axes.cut({0}, 2);
  EXPECT_EQ(axes.cut_pieces({5}, {{0, {1}}}).front(), (std::set<Size>{1, 2}));  // 2, 2, 1
  const RankGroups<Size> all = groups_of(axes);
  const RankClasses& ranks = all.ranks;
  ASSERT_EQ(all.groups.size(), 4u);
  EXPECT_EQ(ranks.first_rank(3), mesh.rank_at({2, 2, 0}));
  EXPECT_EQ(ranks.class_along(0, ranks.first_rank(3)), 1);
  EXPECT_EQ(ranks.class_along(1, mesh.rank_at({3, 1, 1})), 0);
  EXPECT_EQ(ranks.group_size(0, {1}), 2);
  EXPECT_EQ(ranks.group_size(0, {0, 2}), 4);
  EXPECT_EQ(ranks.num_ranks({0}), 8);
  EXPECT_EQ(ranks_of(all, {0}), (std::vector<int>{0, 1, 2, 3, 6, 7, 8, 9}));
  EXPECT_EQ(ranks.describe({0}), "ranks 0-3,6-9");
  EXPECT_EQ(ranks.describe({0, 1}), "ranks 0-11");
  EXPECT_EQ(ranks.describe({0, 1, 2, 3}), "every rank");
  EXPECT_EQ(ranks.describe({1, 3}), "ranks 4-5,10-11,16-17,22-23");
}

TEST(RankClasses, FollowPartsOverSeveralAxes) {
  const MeshShape mesh = MeshShape::parse("data=3,model=2,fsdp=5", 30);
  for (const Size count : {0, 1, 4, 15, 16, 44, 100})
    for (Size element = 0; element < count; element += 3) {
      const Range range{element, 7};
      AxisClasses axes(mesh);
      axes.cut_range({{0, {0, 2}}}, count, range);
      const RankGroups<Size> all = groups_of(axes);
      std::vector<int> seen;
      for (const auto& group : all.groups) {
        const auto part = [&](Size rank) {
          return balanced_split(count, 15, mesh.coordinate(rank, AxisSet{0, 2}));
        };
        const Range first = part(all.first_rank(group));
        for (const int rank : ranks_of(all, group.classes)) {
          seen.push_back(rank);
          EXPECT_EQ(part(rank).count, first.count);
          EXPECT_EQ(intersection(part(rank), range).count, intersection(first, range).count)
              << "rank " << rank;
        }
      }
      std::sort(seen.begin(), seen.end());
      std::vector<int> every(30);
      std::iota(every.begin(), every.end(), 0);
      EXPECT_EQ(seen, every);
    }
}

TEST(RankClasses, FollowPartsOfParts) {
  const MeshShape mesh = MeshShape::parse("data=3,fsdp=4", 12);
  const Cuts cuts{{0, {1}}, {0, {0}}};
  for (const Size count : {0, 5, 12, 29, 100})
    for (Size element = 0; element < count; element += 3) {
      AxisClasses axes(mesh);
      axes.cut_range(cuts, count, {element, 7});
      const auto elements = [&](Size rank) {
        const Piece own = piece({count}, cuts, mesh, rank);
        return intersection({own.offset[0], own.extent[0]}, {element, 7}).count;
      };
      const RankGroups<Size> all = groups_of(axes);
      for (const auto& group : all.groups)
        for (const int rank : ranks_of(all, group.classes))
          EXPECT_EQ(elements(rank), elements(all.first_rank(group))) << "rank " << rank;
    }
}

TEST(RankClasses, ListOnlyTheFirstOfManyRanges) {
  const MeshShape mesh = MeshShape::parse("data=500000000,model=2", 1'000'000'000);
  AxisClasses axes(mesh);
  axes.cut({1}, 1);
  const RankClasses ranks(axes);
  EXPECT_EQ(ranks.describe({0}), "ranks 0,2,4,6,8,10,... (500,000,000 ranks)");
  EXPECT_LT(ranks.number_ranges({0}).size(), 50'000u);
  EXPECT_EQ(ranks.describe({0, 1}), "every rank");
}

TEST(RankGroups, JoinEqualValuesInTheOrderOfTheirFirstRank) {
  const MeshShape mesh = MeshShape::parse("data=6", 6);
  AxisClasses each(mesh);
  each.separate({0});
  const std::vector<int> values = {5, 5, 2, 5, 2, 9};
  const auto value = [&](Size rank) { return values[static_cast<std::size_t>(rank)]; };
  const RankGroups<int> groups = joined(groups_of(each), value);
  ASSERT_EQ(groups.groups.size(), 3u);
  EXPECT_EQ(groups.groups[0].value, 5);
  EXPECT_EQ(groups.groups[0].classes, (RankClasses::Numbers{0, 1, 3}));
  EXPECT_EQ(groups.groups[1].classes, (RankClasses::Numbers{2, 4}));
  EXPECT_EQ(groups.groups[2].classes, (RankClasses::Numbers{5}));
  const auto parity = joined(groups, [&](Size rank) { return value(rank) % 2; });
  ASSERT_EQ(parity.groups.size(), 2u);
  EXPECT_EQ(parity.groups[0].classes, (RankClasses::Numbers{0, 1, 3, 5}));
}

void expect_groups_right(const Plan& plan) {
  const Size ranks = plan.input.mesh.num_ranks();
  const auto alike = group_alike(plan);
  std::set<int> seen;
  for (const auto& group : alike.groups) {
    const Size first = alike.first_rank(group);
    for (const int rank : ranks_of(alike, group.classes)) {
      EXPECT_TRUE(seen.insert(rank).second);
      EXPECT_EQ(plan.memory(rank), plan.memory(first)) << "rank " << rank;
      EXPECT_EQ(plan.collectives(rank), plan.collectives(first)) << "rank " << rank;
    }
  }
  EXPECT_EQ(static_cast<Size>(seen.size()), ranks);
  const RankGroups<CheckpointBytes> bytes = group_checkpoint_bytes(plan);
  for (const auto& group : bytes.groups)
    for (const int rank : ranks_of(bytes, group.classes))
      EXPECT_EQ(checkpoint_bytes(plan, rank), group.value) << "rank " << rank;
  const ParameterLayout& layout = plan.stages.front().parameters;
  for (const Slot& tensor : plan.stages.front().slots) {
    const RankGroups<LocalPart> parts = group_parts(plan, 0, tensor);
    for (const auto& group : parts.groups)
      for (const int rank : ranks_of(parts, group.classes)) {
        const Piece block = piece(tensor.shape, tensor.cuts, plan.input.mesh, rank);
        EXPECT_EQ(group.value.shape, block.extent) << tensor.path << ", rank " << rank;
        Size kept = num_elements(block.extent);
        if (tensor.held != Held::whole) {
          const ParameterPlan& parameter = layout.parameters[tensor.parameter];
          const BucketPlace place = plan.state(rank).buckets[parameter.bucket];
          kept = intersection({parameter.place.begin, kept},
                              tensor.held == Held::share ? place.share : place.owned)
                     .count;
        }
        EXPECT_EQ(group.value.kept, kept) << tensor.path << ", rank " << rank;
      }
  }
}

/// Expects that the ranks of a group do equal work.
void expect_equal_work(const Plan& plan) {
  const auto alike = group_alike(plan, plan.input.clips_by_norm);
  for (const auto& group : alike.groups) {
    const WorkSizes wanted = work_sizes(plan, alike.first_rank(group));
    for (const int rank : ranks_of(alike, group.classes)) {
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
    for (PlanInput input : with_each_strategy(tutorial(axes)))
      for (const bool rows : {false, true}) {
        input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});
        input.batch_size = 13;
        input.samples = 33;
        input.microbatches = 2;
        input.precision = MatmulPrecision::tf32;
        input.sequence_parallel = rows && axes.back().name == "model";
        SCOPED_TRACE(testing::Message()
                     << input.mesh.to_string() << ", " << name_of(input.strategy));
        input.clips_by_norm = true;
        input.validation_samples = 19;  // 13 and 6
        const Plan plan = make_plan(input);
        expect_groups_right(plan);
        expect_equal_work(plan);
      }
}

TEST(RankGroups, OfRanksThatShareKeys) {
  for (const std::vector<Axis>& axes :
       {std::vector<Axis>{{"model", 6}}, {{"model", 6}, {"fsdp", 3}}, {{"data", 3}, {"model", 6}}})
    for (PlanInput input : with_each_strategy(tutorial(axes))) {
      input.model = transformer(
          {.context = 5, .width = 12, .heads = 6, .kv_heads = 2, .qk_norm = true, .tied = true});
      input.loss = LossKind::cross_entropy;
      input.clips_by_norm = true;
      SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << name_of(input.strategy));
      const Plan plan = make_plan(input);
      expect_groups_right(plan);
      expect_equal_work(plan);
    }
}

TEST(RankGroups, OfExpertsOnTheirRanks) {
  for (const std::vector<Axis>& axes : {std::vector<Axis>{{"expert", 4}},
                                        {{"data", 2}, {"expert", 3}},
                                        {{"expert", 4}, {"fsdp", 3}, {"model", 2}}})
    for (PlanInput input : with_each_strategy(tutorial(axes))) {
      input.model = transformer({.context = 5, .width = 6, .heads = 2, .experts = 10});
      input.loss = LossKind::cross_entropy;
      input.batch_size = 13;
      input.samples = 33;
      input.microbatches = 2;
      input.validation_samples = 19;
      input.clips_by_norm = true;
      SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << name_of(input.strategy));
      const Plan plan = make_plan(input);
      expect_groups_right(plan);
      expect_equal_work(plan);
    }
}

}  // namespace
}  // namespace tessera
