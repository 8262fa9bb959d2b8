// SPDX-License-Identifier: Apache-2.0
// Plans of pipelines: layers, messages, gathers and memory of each stage.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>
#include <tessera/plan/pipeline/stages.hpp>
#include <tessera/plan/plan.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

PlanInput deep(const std::vector<Axis>& axes, PipelineSchedule schedule, Size microbatches) {
  PlanInput input = tutorial(axes);
  input.model = mlp({.widths = {8, 16, 16, 16, 16, 16, 16, 16, 4}});
  input.schedule = schedule;
  input.microbatches = microbatches;
  return input;
}

/// Returns the messages that a rank sends in a step.
Size sends(const Plan& plan, Size rank) {
  Size calls = 0;
  for (const CollectivePlan& call : plan.collectives(rank))
    if (call.operation == Operation::send && call.cadence == Cadence::step) calls += call.calls;
  return calls;
}

/// Returns the numbers of the layers of each stage, chunk by chunk.
std::vector<std::string> layers_of(const PlanInput& input) {
  std::vector<std::string> text;
  for (const std::vector<Range>& stage : split_into_stages(input)) {
    text.emplace_back();
    for (const Range& chunk : stage)
      for (Size l = chunk.begin; l < chunk.end(); ++l)
        if (!input.model.layers[l].parameters.empty() && input.model.layers[l].in() > 0 &&
            input.model.layers[l].name.ends_with("/product"))
          text.back() += input.model.layers[l].unit.substr(5);
  }
  return text;
}

TEST(Stages, HaveAsManyLayersOrAsManyFlops) {
  using Names = std::vector<std::string>;
  PlanInput input = deep({{"pipeline", 3}}, PipelineSchedule::one_f_one_b, 1);
  EXPECT_EQ(layers_of(input), (Names{"123", "456", "78"}));
  input.model = mlp({.widths = {8, 64, 64, 8, 8, 8}});
  EXPECT_EQ(layers_of(input), (Names{"12", "34", "5"}));
  input.stage_balance = StageBalance::flops;
  EXPECT_EQ(layers_of(input), (Names{"1", "2", "345"})) << "the 64 x 64 layer has most FLOPs";

  input = deep({{"pipeline", 2}}, PipelineSchedule::interleaved, 2);
  input.virtual_stages = 2;
  EXPECT_EQ(layers_of(input), (Names{"1256", "3478"}));
}

/// Returns the blocks of each chunk, in the order of layers: "embedding block1".
std::vector<std::string> blocks_of_chunks(const PlanInput& input) {
  const std::vector<std::vector<Range>> stages = split_into_stages(input);
  std::vector<std::string> text;
  for (std::size_t chunk = 0; chunk < stages.front().size(); ++chunk)
    for (const std::vector<Range>& stage : stages) {
      std::string_view last;
      text.emplace_back();
      for (Size l = stage[chunk].begin; l < stage[chunk].end(); ++l) {
        const std::string_view name = block_of(input.model.layers[l]);
        if (name != last) text.back() += (last.empty() ? "" : " ") + std::string(name);
        last = name;
      }
    }
  return text;
}

PlanInput of_blocks(Size blocks, Size stages, Size chunks) {
  PlanInput input = deep({{"pipeline", stages}}, PipelineSchedule::interleaved, 2 * stages);
  const TransformerConfig sizes{
      .vocabulary = 5, .context = 4, .width = 8, .heads = 2, .blocks = blocks, .inner_width = 6};
  input.model = transformer(sizes, {});
  input.virtual_stages = chunks;
  return input;
}

TEST(Stages, HaveWholeBlocks) {
  using Names = std::vector<std::string>;
  PlanInput input = of_blocks(5, 2, 2);
  input.stage_balance = StageBalance::blocks;
  EXPECT_EQ(blocks_of_chunks(input),
            (Names{"embedding block1 block2", "block3", "block4", "block5 ln logits"}));
  input.stage_balance = StageBalance::layers;
  input.stage_layout = {0, 4, 1, 0};
  EXPECT_EQ(blocks_of_chunks(input),
            (Names{"embedding", "block1 block2 block3 block4", "block5", "ln logits"}));
  for (const std::vector<Size>& layout : std::vector<std::vector<Size>>{
           {1, 2, 1}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 0, 1, 1}, {-1, 3, 2, 1}}) {
    input.stage_layout = layout;
    EXPECT_TRUE(test::error_of([&] {
                  split_into_stages(input);
                }).starts_with("distributed.stage_layout = ["));
  }
  input.stage_layout = {};
  input.stage_balance = StageBalance::blocks;
  input.mesh = MeshShape({{"pipeline", 3}});
  EXPECT_EQ(test::error_of([&] { split_into_stages(input); }),
            "distributed.stage_balance = \"blocks\": needs a block for each of 6 chunks, and the "
            "model has 5 blocks");

  input = of_blocks(105, 35, 3);  // Korthikanti et al. 2022: 530B
  input.stage_balance = StageBalance::blocks;
  const Names chunks = blocks_of_chunks(input);
  EXPECT_EQ(chunks[0], "embedding block1");
  for (std::size_t c = 1; c < 104; ++c) EXPECT_EQ(chunks[c], "block" + std::to_string(c + 1));
  EXPECT_EQ(chunks[104], "block105 ln logits");
}

// Stage k sends m messages to each neighbour. All stages of an interleaved pipeline together send
// 2 m (p v - 1) messages (src/tessera/plan/README.md).
TEST(Stages, SendAsOftenAsTheClosedFormsSay) {
  const Size p = 4, m = 8;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    const Plan plan = make_plan(deep({{"pipeline", p}}, schedule, m));
    for (Size k = 0; k < p; ++k) EXPECT_EQ(sends(plan, k), m * ((k < p - 1) + (k > 0)));
  }
  for (const Size any : {1, 6, 8}) {
    PlanInput input = deep({{"pipeline", p}}, PipelineSchedule::interleaved, any);
    input.virtual_stages = 2;
    const Plan plan = make_plan(input);
    Size messages = 0;
    for (Size k = 0; k < p; ++k) messages += sends(plan, k);
    EXPECT_EQ(messages, 2 * any * (p * 2 - 1));
  }
}

// 1F1B keeps fewer microbatches on later stages than GPipe, which keeps all.
TEST(Stages, KeepAsManyMicrobatchesAsTheScheduleSays) {
  const auto most_copies = [](PipelineSchedule schedule, Size rank) {
    Size most = 0;
    const Plan plan = make_plan(deep({{"pipeline", 4}}, schedule, 8));
    for (const Storage& storage : plan.stage(rank).storages)
      most = std::max(most, storage.instances);
    return most;
  };
  for (Size k = 0; k < 4; ++k) {
    EXPECT_EQ(most_copies(PipelineSchedule::gpipe, k), 8);
    // A received tensor needs memory one pass earlier, when its receive is started.
    EXPECT_EQ(most_copies(PipelineSchedule::one_f_one_b, k), k == 0 ? 4 : 4 - k + 1);
  }
  const auto activations = [](PipelineSchedule schedule, Size rank) {
    return make_plan(deep({{"pipeline", 4}}, schedule, 8)).memory(rank).activations;
  };
  for (Size k = 0; k < 4; ++k)
    EXPECT_LT(activations(PipelineSchedule::one_f_one_b, k),
              activations(PipelineSchedule::gpipe, k));
}

TEST(Stages, OneStageIsScheduledAsWithoutAPipeline) {
  PlanInput input = tutorial({{"data", 1}});
  input.microbatches = 3;
  const std::vector<ListedAction> without = make_plan(input).stages.front().actions;
  input.mesh = MeshShape({{"pipeline", 1}, {"data", 1}});
  input.schedule = PipelineSchedule::zero_bubble;
  EXPECT_TRUE(make_plan(input).stages.front().actions == without);
}

}  // namespace
}  // namespace tessera
