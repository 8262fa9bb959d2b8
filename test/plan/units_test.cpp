// SPDX-License-Identifier: Apache-2.0
// Where units, shares and their buffers lie, on every rank of many meshes.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

/// Models, meshes and strategies, with shares and blocks that are uneven or empty.
void for_plans(const std::function<void(const Plan&)>& check) {
  const std::vector<MlpConfig> models = {{.widths = {3, 11, 13, 7, 5, 2}},
                                         {.widths = {1, 2, 1}},
                                         {.widths = {5, 3}},
                                         {.widths = {2, 9, 4, 4}, .bias = false}};
  const std::vector<std::vector<Axis>> meshes = {{{"data", 1}},
                                                 {{"data", 3}},
                                                 {{"fsdp", 8}},
                                                 {{"fsdp", 2}, {"data", 3}},
                                                 {{"data", 2}, {"fsdp", 4}},
                                                 {{"model", 5}},
                                                 {{"fsdp", 3}, {"model", 2}},
                                                 {{"model", 3}, {"data", 2}, {"fsdp", 2}}};
  for (const MlpConfig& model : models)
    for (const std::vector<Axis>& axes : meshes)
      for (std::size_t s = 0; s < strategies.size(); ++s) {
        PlanInput input = sharded(tutorial(axes), static_cast<Strategy>(s));
        input.model = mlp(model);
        SCOPED_TRACE(testing::Message() << input.mesh.to_string() << ", " << strategies[s].name
                                        << ", parameters " << input.model.num_parameters());
        check(make_plan(input));
      }
}

/// The place of an element among all parameters of the model.
Size global_place(const Plan& plan, Size rank, Size unit, Size element) {
  const ModelSpec& model = plan.input.model;
  const Block block =
      plan.layouts.kernel_block(model, unit, plan.local_rows(rank).model_coordinate);
  const LinearSpec& layer = model.layers[unit];
  const Size kernel = block.extent[0] * block.extent[1];
  const Size begin = model.unit_offset(unit);
  if (element >= kernel) {
    const bool split = plan.layouts[unit].bias().is_shard();
    return begin + layer.in * layer.out + (split ? block.offset[1] : 0) + element - kernel;
  }
  const Size row = element / block.extent[1], column = element % block.extent[1];
  return begin + (block.offset[0] + row) * layer.out + block.offset[1] + column;
}

/// Ranks that split one state among them: those at the begin of all axes that replicate it.
bool is_of_first_replica(const Plan& plan, Size rank) {
  for (const std::string& axis : replica_axes(plan.input.strategy, plan.input.mesh))
    if (plan.input.mesh.coordinate(rank, *plan.input.mesh.find(axis)) != 0) return false;
  return true;
}

TEST(Units, EveryElementCountsOnceOverTheRanksThatSplitTheState) {
  for_plans([](const Plan& plan) {
    std::vector<int> counted(static_cast<std::size_t>(plan.input.model.num_parameters()));
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) {
      if (!is_of_first_replica(plan, rank)) continue;
      const StatePlan state = plan.state(rank);
      Size last_end = 0;
      for (const Range& range : plan.unique_gradients(rank)) {
        ASSERT_GE(range.begin, last_end) << "in order, apart";
        ASSERT_GT(range.count, 0);
        ASSERT_LE(range.end(), state.gradients());
        last_end = range.end();
        for (Size at = range.begin; at < range.end(); ++at)
          for (Size u = 0; u < plan.layouts.size(); ++u) {
            const Range kept = state.gradient(u);
            if (at < kept.begin || at >= kept.end()) continue;
            const Size first = state.sharding.gradients ? state.units[u].share.begin : 0;
            ++counted[static_cast<std::size_t>(
                global_place(plan, rank, u, first + at - kept.begin))];
          }
      }
    }
    EXPECT_EQ(counted, std::vector<int>(counted.size(), 1));
  });
}

TEST(Units, SharesCoverEachUnitOnceAndFollowOneAnother) {
  for_plans([](const Plan& plan) {
    const MeshShape& mesh = plan.input.mesh;
    const Size shards = mesh.group_size(shard_axes(plan.input.strategy, mesh));
    for (Size c = 0; c < mesh.size_of("model"); ++c) {
      const ModelSpec local = plan.layouts.local_model(plan.input.model, c);
      std::vector<Size> next(local.layers.size());
      for (Size shard = 0; shard < shards; ++shard) {
        const StatePlan state = plan_state(plan.input, local, shards, shard);
        Size whole = 0, shares = 0;
        for (std::size_t u = 0; u < next.size(); ++u) {
          const UnitPlan& unit = state.units[u];
          EXPECT_EQ(unit.whole, (Range{whole, local.layers[u].num_parameters()}));
          EXPECT_EQ(unit.share.begin, next[u]);
          EXPECT_EQ(unit.share_begin, shares);
          next[u] = unit.share.end();
          whole = unit.whole.end();
          shares += unit.share.count;
        }
        EXPECT_EQ(state.whole, whole);
        EXPECT_EQ(state.shares, shares);
        EXPECT_EQ(state.owned(), state.sharding.moments ? shares : whole);
      }
      for (std::size_t u = 0; u < next.size(); ++u)
        EXPECT_EQ(next[u], local.layers[u].num_parameters());
    }
  });
}

bool overlap(Range a, Range b) {
  return a.count > 0 && b.count > 0 && a.begin < b.end() && b.begin < a.end();
}

/// Places of the units in one buffer, of which neighbours, or all, live at the same time.
void expect_apart(const StatePlan& state, Size UnitPlan::*begin, Size buffer, std::size_t alive) {
  for (std::size_t u = 0; u < state.units.size(); ++u) {
    const UnitPlan& unit = state.units[u];
    const Range place{unit.*begin, unit.whole.count};
    EXPECT_GE(place.begin, 0);
    EXPECT_LE(place.end(), buffer);
    EXPECT_EQ(place.begin % 16, 0) << "products want their operands aligned";
    for (std::size_t v = u + 1; v < std::min(u + alive, state.units.size()); ++v)
      EXPECT_FALSE(overlap(place, {state.units[v].*begin, state.units[v].whole.count}))
          << "units " << u << " and " << v;
  }
}

TEST(Units, BuffersKeepApartWhatLivesAtTheSameTime) {
  for_plans([](const Plan& plan) {
    for (const bool prefetch : {false, true})
      for (const bool reshard : {false, true})
        for (const bool overlaps : {false, true}) {
          PlanInput input = plan.input;
          input.prefetch = prefetch;
          input.reshard_after_forward = reshard;
          input.overlap = overlaps;
          const StatePlan state = make_plan(input).state(0);
          const std::size_t all = state.units.size();
          if (state.sharding.parameters)
            expect_apart(state, &UnitPlan::gathered_begin, state.gathered,
                         !reshard   ? all
                         : prefetch ? 2
                                    : 1);
          else
            EXPECT_EQ(state.gathered, 0);
          if (state.sharding.gradients)
            expect_apart(state, &UnitPlan::gradient_begin, state.unit_gradients, overlaps ? 2 : 1);
          else
            EXPECT_EQ(state.unit_gradients, 0);
        }
  });
}

TEST(Units, AShareArrivesBesideOthersOnlyWithMicrobatches) {
  PlanInput input = sharded(tutorial({{"fsdp", 3}}), Strategy::fsdp);
  EXPECT_EQ(make_plan(input).state(0).incoming, 0);
  input.microbatches = 2;
  EXPECT_EQ(make_plan(input).state(0).incoming, 107);  // of 320 on 3 ranks
  EXPECT_EQ(make_plan(input).state(2).incoming, 106);
  input.strategy = Strategy::zero1;
  EXPECT_EQ(make_plan(input).state(0).incoming, 0);
}

}  // namespace
}  // namespace tessera
