// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>
#include <tessera/plan/memory_timeline.hpp>
#include <tessera/plan/pass/memory_placement.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::sharded;
using plan_test::tutorial;

// 3 ranks have 11, 11 and 10 of 32 rows, and 88, 88 and 80 of 8 batches. An output of 11 rows takes
// 2,816 bytes with 64 columns, and 44 bytes with one. Offsets are multiples of 64.
TEST(PlanMemory, TutorialOnThreeRanks) {
  const Plan plan = make_plan(tutorial({{"data", 3}}));
  const MemoryPlan largest = plan.memory(0);
  EXPECT_EQ(largest.parameters, 1544);  // 385 floats, rounded up to 8 bytes
  EXPECT_EQ(largest.gradients, 1544);
  EXPECT_EQ(largest.moments, 3080);
  // Output 1, its gradient and the gradient of output 2 are alive at the same time. Output 2 is no
  // longer needed then.
  EXPECT_EQ(largest.activations, 2 * 2816 + 48);
  EXPECT_EQ(largest.scratch, 0);
  EXPECT_EQ(largest.sums, 64);    // 8 losses
  EXPECT_EQ(largest.data, 1760);  // 88 (4 + 1) floats
  EXPECT_EQ(largest.persistent(), 6168);
  EXPECT_EQ(largest.total(), 6168 + 5680 + 64 + 1760);
  EXPECT_EQ(plan.memory(1).total(), largest.total());

  const MemoryPlan smallest = plan.memory(2);
  EXPECT_EQ(smallest.persistent(), 6168);
  EXPECT_EQ(smallest.activations, largest.activations)
      << "all ranks allocate the frame of the largest";
  EXPECT_EQ(smallest.data, 1600);
}

// Training samples are made before the buffers of shuffled batches are allocated, validation
// samples afterwards.
TEST(PlanMemory, ScratchToMakeSamplesSharesMemoryWithBatches) {
  PlanInput input = tutorial({{"data", 3}});
  const auto data = [&] { return make_plan(input).memory(0).data; };
  input.data_scratch_bytes = 1001;
  EXPECT_EQ(data(), 1760 + 1008);
  input.validation_samples = 32;
  EXPECT_EQ(data(), 1760 + 11 * 5 * 4 + 4 + 1008);
  input.shuffles = true;
  const Size samples = 256 * 5 * 4, batch = 11 * 5 * 4 + 4;
  EXPECT_EQ(data(), samples + 2 * batch + 1008);
  input.validation_samples = 0;
  EXPECT_EQ(data(), samples + 1008);
  input.data_scratch_bytes = 10;
  EXPECT_EQ(data(), samples + batch);
}

TEST(PlanMemory, BytesFollowTheTypes) {
  PlanInput input = tutorial({{"data", 3}});
  input.state_type = DType::float64;
  const MemoryPlan state = make_plan(input).memory(0);
  EXPECT_EQ(state.parameters, 3080);
  EXPECT_EQ(state.moments, 6160);
  EXPECT_EQ(state.copies, 1544);
  EXPECT_EQ(state.activations, 5680 + 192);  // with 11 rows of x in the compute type
  EXPECT_EQ(state.sums, 64);
  EXPECT_EQ(state.data, 3520);
  input.compute_type = DType::float64;
  const MemoryPlan both = make_plan(input).memory(0);
  EXPECT_EQ(both.copies, 0);
  EXPECT_EQ(both.activations, 2 * 5632 + 88);
  EXPECT_EQ(both.data, 3520);
}

TEST(PlanMemory, MicrobatchesShrinkActivations) {
  PlanInput input = tutorial({{"data", 3}});
  input.microbatches = 4;  // of 11 rows: 3, 3, 3, 2
  const MemoryPlan memory = make_plan(input).memory(0);
  EXPECT_EQ(memory.activations, 2 * 3 * 64 * 4 + 16);
  EXPECT_EQ(memory.sums, 8 * 4 * 8);
}

// Layer 1 rounds x (11, 4) or its transpose on the left, and the kernel (4, 64) or dZ (11, 64) on
// the right. Layer 2 has one output, so it has no matrix-matrix product.
TEST(PlanMemory, Tf32RoundsOperandsOfMatrixProductsOnly) {
  PlanInput input = tutorial({{"data", 3}});
  input.precision = MatmulPrecision::tf32;
  EXPECT_EQ(make_plan(input).memory(0).scratch, (11 * 4 + 11 * 64) * 4);
  input.batch_size = 3;  // one row on each rank
  input.samples = 3;
  EXPECT_EQ(make_plan(input).memory(0).scratch, 0);
}

TEST(PlanMemory, GeluKeepsItsPreactivations) {
  PlanInput input = tutorial({{"data", 3}});
  input.model = mlp({.widths = {4, 64, 1}, .activation = Activation::gelu});
  EXPECT_EQ(make_plan(input).memory(0).activations, 5680 + 2816);
}

// Storages that are alive at the same time do not overlap, in every pass.
TEST(PlanMemory, SlotsThatAreAliveTogetherDoNotOverlap) {
  for (const bool rows : {false, true})
    for (const Activation activation : {Activation::tanh, Activation::gelu}) {
      PlanInput input = tutorial({{"data", 2}, {"model", 3}});
      input.model = residual_mlp({5, 7, 11, 3, 2}, {.activation = activation});
      input.sequence_parallel = rows;
      const StagePlan stage = make_plan(input).stages.front();
      for (const Slot& a : stage.slots) {
        if (!a.in_frame()) continue;
        const auto bytes = [&](const Slot& slot) {
          return num_elements(piece(slot.shape, slot.cuts, input.mesh, 0).extent) * 4;
        };
        const auto memory = [&](const Slot& slot) -> const Storage& {
          return stage.storages[slot.storage];
        };
        EXPECT_LE(memory(a).offset + bytes(a), stage.frame_bytes) << a.path;
        EXPECT_EQ(memory(a).offset % 64, 0);
        for (const Slot& b : stage.slots) {
          if (!b.in_frame() || a.storage == b.storage) continue;
          const Range of_a = memory(a).alive[0], of_b = memory(b).alive[0];
          if (of_a.begin >= of_b.end() || of_b.begin >= of_a.end()) continue;
          EXPECT_TRUE(memory(a).offset + bytes(a) <= memory(b).offset ||
                      memory(b).offset + bytes(b) <= memory(a).offset)
              << a.path << " and " << b.path;
        }
      }
    }
}

TEST(MemoryPlacement, TakesTheLowestPlaceThatIsFree) {
  // The first and the last storage are never alive at the same time. The second overlaps both.
  std::vector<Storage> storages{{100, {{0, 2}}}, {50, {{1, 2}}}, {100, {{2, 2}}}};
  EXPECT_EQ(place_in_memory(storages), 128 + 50);
  EXPECT_EQ(storages[0].offset, 0);
  EXPECT_EQ(storages[2].offset, 0);
  EXPECT_EQ(storages[1].offset, 128);
}

// Two microbatches need the first storage at a time, so it has two instances; the third microbatch
// uses the first instance. One microbatch at a time needs the second storage, so it has one
// instance.
TEST(MemoryPlacement, HasAnInstanceForEachMicrobatchAliveAtATime) {
  std::vector<Storage> storages{{100, {{0, 4}, {2, 4}, {4, 4}}}, {50, {{7, 1}, {8, 1}, {9, 1}}}};
  EXPECT_EQ(place_in_memory(storages), 128 + 100 + 28 + 50);
  EXPECT_EQ(storages[0].instances, 2);
  EXPECT_EQ(storages[0].stride, 128);
  EXPECT_EQ(storages[1].instances, 1);
  EXPECT_EQ(storages[1].offset, 256) << "the last microbatch is alive up to 8";
}

// Chunks have their most microbatches alive at different times, and share memory. No two of them
// use a byte at the same time.
TEST(MemoryPlacement, ChunksTakeTurns) {
  for (const Size chunks : {2, 3, 4})
    for (const Size microbatches : {3, 12, 16}) {
      PlanInput input = tutorial({{"pipeline", 4}});
      input.model = mlp({.widths = std::vector<Size>(17, 64)});
      input.schedule = PipelineSchedule::interleaved;
      input.virtual_stages = chunks;
      input.microbatches = input.batch_size = input.samples = microbatches;
      SCOPED_TRACE(testing::Message() << chunks << " chunks, " << microbatches);
      const Plan plan = make_plan(input);
      const StagePlan& stage = plan.stages.front();
      struct Use {
        Range bytes, alive;
      };
      std::vector<Use> uses;
      Size most = 0;  // bytes at a time
      std::vector<Size> in_use(stage.actions.size());
      for (const Storage& storage : stage.storages)
        for (Size m = 0; m < microbatches; ++m) {
          uses.push_back({{storage.place(m), storage.bytes}, storage.alive[m]});
          EXPECT_LE(uses.back().bytes.end(), stage.frame_bytes);
          for (Size at = storage.alive[m].begin; at < storage.alive[m].end(); ++at)
            most = std::max(most, in_use[at] += storage.bytes);
        }
      const auto meet = [](Range a, Range b) { return a.begin < b.end() && b.begin < a.end(); };
      for (std::size_t a = 0; a < uses.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          EXPECT_FALSE(meet(uses[a].bytes, uses[b].bytes) && meet(uses[a].alive, uses[b].alive));
      if (microbatches > 3) {
        EXPECT_LE(stage.frame_bytes, most + most / 5);
      }
    }
}

TEST(PlanMemory, RankWithoutRowsKeepsTheState) {
  PlanInput input = tutorial({{"data", 8}});
  input.batch_size = 3;
  input.samples = 6;
  const Plan plan = make_plan(input);
  EXPECT_EQ(plan.memory(2).data, 2 * (4 + 1) * 4);
  EXPECT_EQ(plan.memory(3).data, 0);
  EXPECT_EQ(plan.memory(3).persistent(), 6168);
}

// At the peak, output 1, its gradient and the gradient of output 2 are alive; the frame is rounded
// up to 8 bytes.
TEST(MemoryTimeline, OfTheTutorial) {
  const Plan plan = make_plan(tutorial({{"data", 3}}));
  const nlohmann::json timeline = memory_timeline(plan, 2), &peak = timeline["peak"];
  EXPECT_EQ(timeline["memory"]["total"], plan.memory(2).total());
  ASSERT_EQ(timeline["actions"].size(), plan.stages[0].actions.size());
  EXPECT_EQ(timeline["actions"][0]["text"], "forward(layer1/product)");
  EXPECT_EQ(timeline["actions"][0]["activations"], 2816);
  EXPECT_EQ(timeline["actions"].back()["text"], "update");
  EXPECT_EQ(timeline["actions"].back()["in_use"], plan.memory(2).total() - 5680);
  EXPECT_EQ(timeline["actions"][peak["action"].get<Size>()]["text"], "backward(layer2/product)");
  EXPECT_EQ(peak["in_use"], plan.memory(2).total() - 4);
  std::string tensors;
  for (const nlohmann::json& tensor : peak["tensors"])
    tensors += fmt::format("{} {} {}; ", tensor["role"].get<std::string>(),
                           tensor["path"].get<std::string>(), tensor["bytes"].get<Size>());
  EXPECT_EQ(tensors,
            "activation layer1/output 2816; gradient layer1/output.gradient 2816; gradient "
            "layer2/output.gradient 44; ");
}

// The largest extent is the memory of the rank, and no tensor lies outside of its action's extent.
TEST(MemoryTimeline, ReachesTheWholeMemoryInEveryKindOfPlan) {
  const auto change = [](const std::string& what, PlanInput& input) {
    if (what == "units") input.activation_checkpointing.units = 1;
    if (what == "full") input.activation_checkpointing.units = 100;
    if (what == "overlap") input.overlap = true;
    if (what == "rows") input.sequence_parallel = true;
    if (what == "gpipe") input.schedule = PipelineSchedule::gpipe;
    if (what == "zero_bubble") input.schedule = PipelineSchedule::zero_bubble;
    if (what == "interleaved")
      input.schedule = PipelineSchedule::interleaved, input.virtual_stages = 2;
    if (what == "ring") input.context_attention = ContextAttention::ring;
    if (what == "all_to_all") input.context_attention = ContextAttention::all_to_all;
    if (what == "bfloat16") input.compute_type = DType::bfloat16;
    if (what == "fixed_order" && input.mesh.size_of("context") * input.mesh.size_of("expert") == 1)
      input.numerics.reproducible = true, input.microbatches = 1;
  };
  const std::vector<std::pair<Strategy, std::vector<Axis>>> meshes{
      {Strategy::data, {{"data", 2}}},
      {Strategy::zero1, {{"data", 2}}},
      {Strategy::fsdp, {{"fsdp", 2}, {"model", 2}}},
      {Strategy::data, {{"pipeline", 2}}},
      {Strategy::fsdp, {{"pipeline", 2}, {"fsdp", 2}}},
      {Strategy::data, {{"context", 2}, {"model", 2}}},
      {Strategy::data, {{"expert", 2}, {"data", 2}}}};
  for (const auto& [strategy, axes] : meshes)
    for (const char* what : {"", "units", "full", "overlap", "rows", "gpipe", "zero_bubble",
                             "interleaved", "ring", "all_to_all", "bfloat16", "fixed_order"}) {
      PlanInput input = sharded(tutorial(axes), strategy);
      TransformerConfig config{
          .vocabulary = 11, .context = 8, .width = 8, .heads = 4, .blocks = 4, .inner_width = 12};
      if (input.mesh.size_of("expert") > 1) config.experts = 4, config.top_k = 2;
      input.model = transformer(config);
      input.loss = LossKind::cross_entropy;
      input.microbatches = 4;
      change(what, input);
      const Plan plan = make_plan(input);
      for (Size rank = 0; rank < input.mesh.num_ranks(); ++rank) {
        const nlohmann::json timeline = memory_timeline(plan, rank);
        Size reached = 0, used = 0;
        for (const nlohmann::json& action : timeline["actions"]) {
          EXPECT_LE(action["in_use"], action["reaches"]);
          reached = std::max(reached, action["reaches"].get<Size>());
          used = std::max(used, action["in_use"].get<Size>());
        }
        EXPECT_EQ(reached, plan.memory(rank).total()) << input.mesh.to_string() << " " << what;
        EXPECT_EQ(timeline["peak"]["in_use"], used);
        Size tensors = plan.memory(rank).total() - plan.memory(rank).activations;
        for (const nlohmann::json& tensor : timeline["peak"]["tensors"])
          tensors += tensor["bytes"].get<Size>();
        EXPECT_EQ(tensors, used) << input.mesh.to_string() << " " << what;
      }
    }
}

// Steady memory of each strategy, float32 with Adam, as in the table of src/tessera/plan/README.md.
constexpr Size P = 32 + 128 + 128;

/// Units of 32, 128 and 128 elements, which 2, 4 and 8 ranks and 64 bytes divide evenly.
MemoryPlan memory(Strategy strategy, std::vector<Axis> axes,
                  const std::function<void(PlanInput&)>& change = {}) {
  PlanInput input = sharded(tutorial(std::move(axes)), strategy);
  input.model = mlp({.widths = {4, 8, 16, 8}, .bias = false});
  if (change) change(input);
  const Plan plan = make_plan(input);
  const MemoryPlan first = plan.memory(0);
  for (Size rank = 1; rank < input.mesh.num_ranks(); ++rank)
    EXPECT_EQ(plan.memory(rank).persistent(), first.persistent());
  return first;
}

TEST(ShardedMemory, PersistentBytesAreThoseOfTheTable) {
  for (const Size d : {2, 4, 8}) {
    EXPECT_EQ(memory(Strategy::data, {{"data", d}}).persistent(), 16 * P);
    EXPECT_EQ(memory(Strategy::zero1, {{"data", d}}).persistent(), 8 * P + 8 * P / d);
    EXPECT_EQ(memory(Strategy::zero2, {{"data", d}}).persistent(), 4 * P + 12 * P / d);
    EXPECT_EQ(memory(Strategy::fsdp, {{"fsdp", d}}).persistent(), 16 * P / d);
    EXPECT_EQ(memory(Strategy::hybrid, {{"data", 3}, {"fsdp", d}}).persistent(), 16 * P / d);
    for (const Size replicas : {2, 4})
      EXPECT_EQ(memory(Strategy::hybrid, {{"data", replicas}, {"fsdp", d}},
                       [](PlanInput& input) {
                         input.shard_moments_over = {"data", "fsdp"};
                       })
                    .persistent(),
                8 * P / d + 8 * P / (replicas * d));
    EXPECT_EQ(memory(Strategy::tensor, {{"model", d}}).persistent(), 16 * P / d);
    EXPECT_EQ(memory(Strategy::fsdp, {{"fsdp", d}, {"model", 2}}).persistent(), 16 * P / (2 * d));
  }
  EXPECT_EQ(memory(Strategy::zero2, {{"data", 2}, {"fsdp", 4}}).persistent(), 4 * P + 12 * P / 8);
  EXPECT_EQ(memory(Strategy::fsdp, {{"data", 2}, {"fsdp", 4}}).persistent(), 16 * P / 8);
  EXPECT_EQ(memory(Strategy::hybrid, {{"data", 4}, {"fsdp", 1}}).persistent(), 16 * P);
}

TEST(ShardedMemory, OneGatheredUnitAndOneOnItsWay) {
  const auto gathered = [](const std::function<void(PlanInput&)>& change) {
    return memory(Strategy::fsdp, {{"fsdp", 4}}, change).gathered_units;
  };
  EXPECT_EQ(gathered({}), 4 * (128 + 128));
  EXPECT_EQ(gathered([](PlanInput& i) { i.prefetch = false; }), 4 * 128);
  EXPECT_EQ(gathered([](PlanInput& i) { i.reshard_after_forward = false; }), 4 * P);
  for (const Strategy strategy : {Strategy::data, Strategy::zero1, Strategy::zero2})
    EXPECT_EQ(memory(strategy, {{"data", 4}}).gathered_units, 0);
}

TEST(ShardedMemory, OneGradientOfAWholeUnitAndOneOnItsWay) {
  for (const Strategy strategy : {Strategy::zero2, Strategy::fsdp}) {
    const auto bytes = [&](bool overlap, Size microbatches) {
      return memory(strategy, {{"data", 4}},
                    [&](PlanInput& i) {
                      i.bucket_bytes = 1;
                      i.overlap = overlap;
                      i.microbatches = microbatches;
                    })
          .unit_gradients;
    };
    EXPECT_EQ(bytes(false, 1), 4 * 128);
    EXPECT_EQ(bytes(true, 1), 4 * (128 + 128));
    EXPECT_EQ(bytes(false, 3), 4 * 128 + 4 * 128 / 4) << "plus a share that is added";
  }
  EXPECT_EQ(memory(Strategy::zero1, {{"data", 4}}).unit_gradients, 0);
}

TEST(ShardedMemory, LiveUnitsAreRoundedUpTo64BytesEach) {
  PlanInput input = sharded(tutorial({{"fsdp", 4}}), Strategy::fsdp);
  input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});  // 44, 156, 98, 40 and 12 parameters
  const Size bytes = make_plan(input).memory(0).gathered_units;
  EXPECT_EQ(bytes, 4 * (160 + 112));
  EXPECT_LT(bytes - 4 * (156 + 98), 2 * 64);
}

}  // namespace
}  // namespace tessera
