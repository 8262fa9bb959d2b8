// SPDX-License-Identifier: Apache-2.0
// Places of units, shares and buffers on every rank of many meshes.
#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

/// Calls `check` for models, meshes and strategies with uneven and empty shares and blocks.
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
      for (PlanInput input : plan_test::with_each_strategy(tutorial(axes)))
        for (const Size bucket_bytes : {1, 200, 1 << 20}) {
          input.model = mlp(model);
          input.bucket_bytes = bucket_bytes;
          SCOPED_TRACE(testing::Message()
                       << input.mesh.to_string() << ", " << name_of(input.strategy) << ", moments "
                       << input.shard_moments_over.size() << ", parameters "
                       << input.model.num_parameters() << ", buckets of " << bucket_bytes);
          check(make_plan(input));
        }
}

/// Returns, for each element of a bucket on `rank`, its index among all parameters of the model; -1
/// for padding.
std::vector<Size> global_places(const Plan& plan, Size rank, Size bucket) {
  const ParameterLayout& layout = plan.stages.front().parameters;
  std::vector<Size> places(static_cast<std::size_t>(layout.buckets[bucket].elements), -1);
  Size begin = 0;  // of the parameter among all
  for (const ParameterPlan& parameter : layout.parameters) {
    const Piece block = plan.piece(rank, parameter);
    const Size columns = block.extent.back();
    for (Size i = 0; parameter.bucket == bucket && i < num_elements(block.extent); ++i) {
      const Size row = parameter.shape.size() > 1 ? block.offset[0] + i / columns : 0;
      places[static_cast<std::size_t>(parameter.place.begin + i)] =
          begin + row * parameter.shape.back() + block.offset.back() + i % columns;
    }
    begin += num_elements(parameter.shape);
  }
  return places;
}

/// Returns true for a rank of the first replica of the state.
bool is_of_first_replica(const Plan& plan, Size rank) {
  const MeshShape& mesh = plan.input.mesh;
  return mesh.coordinate(rank, replicating_axes(mesh) - moment_axes(plan.input, mesh)) == 0;
}

TEST(Units, OfABlockAreGatheredInOneCall) {
  PlanInput input = sharded(tutorial({{"fsdp", 2}}), Strategy::fsdp);
  const TransformerConfig sizes{
      .vocabulary = 5, .context = 4, .width = 8, .heads = 2, .blocks = 2, .inner_width = 6};
  input.model = transformer(sizes, {});
  input.fsdp_unit = FsdpUnit::block;
  const Plan plan = make_plan(input);
  const ParameterLayout& layout = plan.stages.front().parameters;
  std::vector<std::string> names;
  for (const BucketPlan& bucket : layout.buckets) names.push_back(name_of(bucket, layout.units));
  EXPECT_EQ(names, (std::vector<std::string>{"embedding", "block1/ln1..block1/fc2",
                                             "block2/ln1..block2/fc2", "ln", "logits"}));
  Size gathers = 0;
  for (const CollectivePlan& call : plan.collectives(0))
    if (call.operation == Operation::all_gather && call.cadence == Cadence::step)
      gathers += call.calls;
  EXPECT_EQ(gathers, 2 * 5 - 1) << "the last one stays gathered";
}

TEST(Units, EveryElementCountsOnceOverTheRanksThatSplitTheState) {
  for_plans([](const Plan& plan) {
    std::vector<int> counted(static_cast<std::size_t>(plan.input.model.num_parameters()));
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) {
      if (!is_of_first_replica(plan, rank)) continue;
      const StatePlan state = plan.state(rank);
      Size last_end = 0;
      for (const Range& range : plan.unique_gradients(rank)) {
        ASSERT_GE(range.begin, last_end) << "ranges are ascending";
        ASSERT_GT(range.count, 0);
        ASSERT_LE(range.end(), state.gradients());
        last_end = range.end();
        for (Size at = range.begin; at < range.end(); ++at)
          for (Size b = 0; b < static_cast<Size>(state.buckets.size()); ++b) {
            const Range kept = state.owned_gradients(b, state.buckets[b].owned);
            if (at < kept.begin || at >= kept.end()) continue;
            const Size first = state.buckets[b].owned.begin;
            const Size place = global_places(plan, rank, b)[first + at - kept.begin];
            ASSERT_GE(place, 0) << "padding";
            ++counted[static_cast<std::size_t>(place)];
          }
      }
    }
    EXPECT_EQ(counted, std::vector<int>(counted.size(), 1));
  });
}

TEST(Units, NormsLeaveOutTheBiasesOfRouters) {
  PlanInput input = tutorial({{"data", 2}});
  input.model = transformer({.blocks = 2, .experts = 6, .balance = Balance::bias});
  Size counted = 0;
  for (const Range& range : make_plan(input).unique_gradients(0)) counted += range.count;
  EXPECT_EQ(counted, input.model.num_parameters() - 2 * 6);
}

TEST(Units, BucketsAreEqualOnAllRanksOfModelAndHoldEveryParameterOnce) {
  for_plans([](const Plan& plan) {
    const ParameterLayout& layout = plan.stages.front().parameters;
    Size next_unit = 0, next_parameter = 0;
    for (const BucketPlan& bucket : layout.buckets) {
      EXPECT_EQ(bucket.units.begin, next_unit);
      next_unit = bucket.units.end();
      Size at = 0;
      for (Size u = bucket.units.begin; u < bucket.units.end(); ++u) {
        EXPECT_EQ(layout.units[u].parameters.begin, next_parameter);
        next_parameter = layout.units[u].parameters.end();
        for (Size p = layout.units[u].parameters.begin; p < next_parameter; ++p) {
          const ParameterPlan& parameter = layout.parameters[p];
          EXPECT_EQ(parameter.place.begin, at);
          at = parameter.place.end();
          for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank)
            EXPECT_LE(num_elements(plan.piece(rank, parameter).extent), parameter.place.count);
        }
      }
      EXPECT_EQ(bucket.elements, at);
    }
    EXPECT_EQ(next_unit, static_cast<Size>(layout.units.size()));
    EXPECT_EQ(next_parameter, static_cast<Size>(layout.parameters.size()));
  });
}

TEST(Units, BucketsFillFromTheLastUnitUpToTheCap) {
  const auto names = [](Size bytes, Strategy strategy = Strategy::data) {
    PlanInput input = sharded(tutorial({{"data", 2}}), strategy);
    input.model = plan_test::three_layers();  // 80, 48 and 84 bytes
    input.bucket_bytes = bytes;
    const ParameterLayout layout = make_plan(input).stages.front().parameters;
    std::string text;
    for (const BucketPlan& bucket : layout.buckets) text += name_of(bucket, layout.units) + " ";
    return text;
  };
  EXPECT_EQ(names(84 + 48 + 80), "layer1..layer3 ");
  EXPECT_EQ(names(84 + 48 + 80 - 1), "layer1 layer2..layer3 ");
  EXPECT_EQ(names(84 + 48), "layer1 layer2..layer3 ");
  EXPECT_EQ(names(84 + 48 - 1), "layer1..layer2 layer3 ");
  EXPECT_EQ(names(48 + 80 - 1), "layer1 layer2 layer3 ");
  EXPECT_EQ(names(1), "layer1 layer2 layer3 ") << "a unit above the limit is a bucket by itself";
  EXPECT_EQ(names(84 + 48, Strategy::zero2), "layer1 layer2..layer3 ");
  EXPECT_EQ(names(84 + 48 + 80, Strategy::fsdp), "layer1 layer2 layer3 ");
}

TEST(Units, SharesCoverEachBucketOnceAndFollowOneAnother) {
  for_plans([](const Plan& plan) {
    const MeshShape& mesh = plan.input.mesh;
    const std::vector<BucketPlan>& buckets = plan.stages.front().parameters.buckets;
    const AxisSet sharding = shard_axes(plan.input.strategy, mesh);
    std::vector<Size> next(buckets.size());
    Size shard = 0;
    for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
      if (mesh.coordinate(rank, sharding) != shard) continue;
      ++shard;
      const StatePlan state = plan_state(plan.input, buckets, rank);
      Size whole = 0, shares = 0, owned = 0;
      for (std::size_t b = 0; b < next.size(); ++b) {
        const BucketPlace& place = state.buckets[b];
        EXPECT_EQ(place.whole, (Range{whole, buckets[b].elements}));
        EXPECT_EQ(place.share.begin, next[b]);
        EXPECT_EQ(place.share_begin, shares);
        next[b] = place.share.end();
        whole = place.whole.end();
        shares += place.share.count;
        EXPECT_EQ(place.owned_begin, owned);
        EXPECT_EQ(intersection(place.owned, place.share), place.owned);
        owned += place.owned.count;
      }
      EXPECT_EQ(state.whole, whole);
      EXPECT_EQ(state.shares, shares);
      EXPECT_EQ(state.owned, owned);
      EXPECT_EQ(state.moments(), state.sharding.moments ? owned : whole);
    }
    for (std::size_t b = 0; b < next.size(); ++b) EXPECT_EQ(next[b], buckets[b].elements);
  });
}

bool overlap(Range a, Range b) {
  return a.count > 0 && b.count > 0 && a.begin < b.end() && b.begin < a.end();
}

/// Expects that any `alive` consecutive units do not overlap in one buffer.
void expect_apart(const StatePlan& state, Size BucketPlace::*begin, Size buffer,
                  std::size_t alive) {
  for (std::size_t u = 0; u < state.buckets.size(); ++u) {
    const BucketPlace& unit = state.buckets[u];
    const Range place{unit.*begin, unit.whole.count};
    EXPECT_GE(place.begin, 0);
    EXPECT_LE(place.end(), buffer);
    EXPECT_EQ(place.begin % 16, 0) << "operands of products are aligned";
    for (std::size_t v = u + 1; v < std::min(u + alive, state.buckets.size()); ++v)
      EXPECT_FALSE(overlap(place, {state.buckets[v].*begin, state.buckets[v].whole.count}))
          << "units " << u << " and " << v;
  }
}

TEST(Units, BucketsThatLiveAtTheSameTimeDoNotOverlap) {
  for_plans([](const Plan& plan) {
    for (const bool prefetch : {false, true})
      for (const bool reshard : {false, true})
        for (const bool overlaps : {false, true}) {
          PlanInput input = plan.input;
          input.prefetch = prefetch;
          input.reshard_after_forward = reshard;
          input.overlap = overlaps;
          const StatePlan state = make_plan(input).state(0);
          const std::size_t all = state.buckets.size();
          if (state.sharding.parameters)
            expect_apart(state, &BucketPlace::gathered_begin, state.gathered,
                         !reshard   ? all
                         : prefetch ? 2
                                    : 1);
          else
            EXPECT_EQ(state.gathered, 0);
          if (state.sharding.gradients)
            expect_apart(state, &BucketPlace::gradient_begin, state.bucket_gradients,
                         overlaps ? 2 : 1);
          else
            EXPECT_EQ(state.bucket_gradients, 0);
        }
  });
}

TEST(Units, KernelsAreFactorsOfProducts) {
  PlanInput input = tutorial({{"data", 1}});
  const auto others = [&] {
    const Plan plan = make_plan(input);
    std::vector<std::string> paths;
    for (const ParameterPlan& parameter : plan.stages.front().parameters.parameters)
      if (!parameter.is_kernel) paths.push_back(parameter.path);
    return paths;
  };
  EXPECT_EQ(others(), (std::vector<std::string>{"layer1/bias", "layer2/bias"}));
  input.model = transformer({.vocabulary = 5, .context = 4, .width = 6, .heads = 2, .blocks = 1},
                            {.bias = false});
  input.loss = LossKind::cross_entropy;
  EXPECT_EQ(others(),
            (std::vector<std::string>{"embedding/table", "embedding/position", "block1/ln1/scale",
                                      "block1/ln2/scale", "ln/scale"}));
  input.model = fno({.grid = 8, .modes = 2, .width = 3, .layers = 1}, {.bias = false});
  input.loss = LossKind::relative_l2;
  EXPECT_EQ(others(), std::vector<std::string>{"layer1/bias"});
}

// Four ranks of `model` have two heads of keys, of 3 columns each for keys and for values.
TEST(Units, RanksOfAKeyHeadStoreItAndSumItsGradient) {
  PlanInput input = tutorial({{"model", 4}, {"data", 2}});
  input.model = transformer({.width = 24, .heads = 8, .blocks = 1, .kv_heads = 2, .qk_norm = true});
  input.loss = LossKind::cross_entropy;
  const Plan plan = make_plan(input);
  const MeshShape& mesh = plan.input.mesh;
  const ParameterLayout& layout = plan.stages.front().parameters;
  const auto parameter =
      std::find_if(layout.parameters.begin(), layout.parameters.end(),
                   [](const ParameterPlan& one) { return one.path == "block1/kv/kernel"; });
  ASSERT_EQ(parameter->shape, (Shape{24, 12}));
  for (Size rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(plan.piece(rank, *parameter), (Piece{{0, rank / 4 * 6}, {24, 6}})) << rank;
    EXPECT_EQ(plan.is_copy(rank, *parameter), rank / 2 % 2 == 1) << rank;
  }
  EXPECT_EQ(layout.buckets[parameter->bucket].sums, mesh.axes_named({"data", "repeats"}));
  EXPECT_FALSE(parameter->partial_gradient);
  const ParameterPlan& scale =
      *std::find_if(parameter, layout.parameters.end(),
                    [](const ParameterPlan& one) { return one.path == "block1/kv/scale"; });
  EXPECT_TRUE(scale.partial_gradient) << "is that of all keys";
  EXPECT_EQ(layout.buckets[scale.bucket].sums, mesh.axes_named({"data"}));
  const Size bytes = (24 * 6 + 6) * 4;  // kernel and bias
  const auto has_call = [&](const std::string& axis, Size of) {
    const std::string calls = plan_test::calls_of(input);
    return calls.find(fmt::format("{} all_reduce 1 x, {} B", axis, of)) != calls.npos;
  };
  EXPECT_TRUE(has_call("data+repeats", bytes));
  input.strategy = Strategy::zero1;
  EXPECT_TRUE(has_call("repeats", bytes / 2)) << "only shares are complete";
}

TEST(Units, IncomingShareExistsOnlyWithMicrobatches) {
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
