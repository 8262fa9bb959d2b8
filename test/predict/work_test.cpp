// SPDX-License-Identifier: Apache-2.0
// The kernels and calls of a plan's actions with their FLOPs and bytes, of Tessera and of programs
// that do some things in another way.
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/predict/kernel_work.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::three_on;

/// Returns the work of the first layer of this kind in a pass over `samples` samples on one rank.
template <class Pass>
Work work_of_layer(ModelSpec model, std::string_view kind, Size samples) {
  PlanInput input = three_on("data=1", 1, Strategy::data);
  input.model = std::move(model);
  input.batch_size = input.samples = samples;
  const Plan plan = make_plan(input);
  const WorkSizes sizes = work_sizes(plan, 0);
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    if (const auto* pass = std::get_if<Pass>(&*action))
      if (sizes.layers.at(pass->layer).kind->name == kind)
        return work_of(action, microbatch, plan, sizes).front();
  throw std::invalid_argument("no such layer");
}

TEST(Work, OfAttentionRepeatsTheScoresInBackward) {
  const TransformerConfig config{.context = 7, .width = 10, .heads = 2, .blocks = 1};
  const Work forward = work_of_layer<Forward>(transformer(config), "attention", 3),
             backward = work_of_layer<Backward>(transformer(config), "attention", 3);
  const double product = 2.0 * 7 * 7 * 5 * 6;  // three samples with two heads of five columns
  EXPECT_DOUBLE_EQ(forward.flops, 2 * product);
  EXPECT_DOUBLE_EQ(backward.flops, 5 * product);
  // An exponential function for each score; the largest score and the sum take as long as twelve.
  EXPECT_DOUBLE_EQ(forward.functions, 6 * (7 * 7 + 2 * 12 * 7));
  // All products have sides of 7, 7 and 5.
  EXPECT_EQ(forward.flops_of_side, (std::map<Size, double>{{6, forward.flops}}));
}

/// Returns the sum over the work of a step on rank 0 of a program.
template <class Number>
double sum_of_work(const Plan& plan, const Software& software, const Number& number) {
  const WorkSizes sizes = work_sizes(plan, 0, software);
  double sum = 0;
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    for (const Work& work : work_of(action, microbatch, plan, sizes)) sum += number(work);
  return sum;
}

/// Returns a transformer of three blocks on a mesh, in bfloat16, with recomputed blocks.
Plan three_blocks(const std::string& mesh, Size ranks) {
  PlanInput input = three_on(mesh, ranks, Strategy::data);
  input.model =
      transformer({.context = 8, .width = 16, .heads = 4, .blocks = 3, .inner_width = 64});
  input.batch_size = input.samples = 6;
  input.compute_type = DType::bfloat16;
  input.activation_checkpointing.what = Recomputed::block;
  input.loss = LossKind::cross_entropy;
  return make_plan(input);
}

// Scores of 3 blocks, 6 samples, 4 heads and 8 x 8 positions; heads have 4 columns.
TEST(Software, WritesScoresAndReadsThem) {
  const Plan plan = three_blocks("data=1", 1);
  const auto more = [&](AttentionScores scores, double Work::*what) {
    const auto number = [&](const Work& work) { return work.*what; };
    return sum_of_work(plan, {.attention = scores}, number) - sum_of_work(plan, {}, number);
  };
  const double scores = 3 * 6 * 4 * 8 * 8;
  // Recomputed scores are written twice, and nothing is repeated in the backward pass.
  EXPECT_DOUBLE_EQ(more(AttentionScores::scores_in_memory, &Work::flops), -2 * 4 * scores);
  const double bytes = scores * 2 * (2 * (2 + 2) + 4 + 3);
  EXPECT_DOUBLE_EQ(more(AttentionScores::scores_in_memory, &Work::bytes), bytes);
  EXPECT_DOUBLE_EQ(more(AttentionScores::scores_and_dropout, &Work::bytes),
                   bytes + 3 * scores * (2 * 2 + 1));
}

/// Returns the bytes that a host reads and writes in a step beyond those of a GPU.
double bytes_of_host(const Plan& plan, double Work::*bytes) {
  Plan on_gpu = plan;
  on_gpu.input.traits.device = Device::gpu;
  const auto number = [&](const Work& work) { return work.*bytes; };
  return sum_of_work(plan, {}, number) - sum_of_work(on_gpu, {}, number);
}

// Caches of hosts read what is written, unless it takes the place of an operand.
TEST(Work, OfHostsReadsBeforeItWrites) {
  PlanInput input = three_on("data=1", 1, Strategy::data);
  EXPECT_EQ(bytes_of_host(make_plan(input), &Work::bytes), 0);  // biases and relu work in place
  input.model = transformer({.context = 8, .width = 16, .heads = 4, .blocks = 1});
  input.batch_size = input.samples = 6;
  input.loss = LossKind::cross_entropy;
  const double rows = 6 * 8;
  // Embedding and three norms, which keep two numbers of a row, forward; the two norms of the block
  // add to a gradient, and the last one begins it.
  const double forward = rows * (16 + 3 * (16 + 2)), backward = rows * 16 * 3;
  EXPECT_EQ(bytes_of_host(make_plan(input), &Work::bytes), 4 * (forward + backward));
}

// A share is copied where buckets are gathered, or reduced, into a buffer of their own.
TEST(Work, OfHostsCopiesShares) {
  const auto copied = [](Strategy strategy) {
    return bytes_of_host(make_plan(three_on("data=2", 2, strategy)), &Work::copied);
  };
  EXPECT_EQ(copied(Strategy::data), 0);
  EXPECT_EQ(copied(Strategy::zero1), 0);
  const Plan plan = make_plan(three_on("data=2", 2, Strategy::fsdp));
  double shares = 0, gathers = 0;
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    if (const auto* move = std::get_if<Gather>(&*action); move && move->phase != Phase::finish)
      gathers += static_cast<double>(plan.state(0).buckets[move->bucket].share.count);
  for (const BucketPlace& place : plan.state(0).buckets)
    shares += static_cast<double>(place.share.count);
  EXPECT_EQ(copied(Strategy::zero2), 3 * 4 * shares);
  EXPECT_EQ(copied(Strategy::fsdp), 3 * 4 * (shares + gathers));
}

TEST(Work, OfALossHasItsFunctions) {
  const auto functions = [](LossKind loss) {
    PlanInput input = three_on("data=1", 1, Strategy::data);
    input.loss = loss;
    return sum_of_work(make_plan(input), {}, [](const Work& work) { return work.functions; });
  };
  const PlanInput input = three_on("data=1", 1, Strategy::data);
  const auto elements = static_cast<double>(input.batch_size * input.model.layers.back().out());
  EXPECT_EQ(functions(LossKind::bce) - functions(LossKind::mse), 4 * elements);
}

// Of eight ranks, three have none of the five columns of the logits.
TEST(Work, OfALossWithoutColumnsIsNone) {
  PlanInput input = three_on("model=8", 8, Strategy::data);
  input.model = transformer({.vocabulary = 5, .context = 8, .width = 16, .heads = 8, .blocks = 1});
  input.batch_size = input.samples = 6;
  input.loss = LossKind::cross_entropy;
  const Plan plan = make_plan(input);
  for (Size rank = 0; rank < 8; ++rank) {
    const WorkSizes sizes = work_sizes(plan, rank);
    for (const auto& [action, microbatch] : plan.stages.front().actions)
      for (const Work& work : work_of(action, microbatch, plan, sizes))
        EXPECT_GE(work.functions, 0) << rank;  // false for NaN
  }
}

// The plan repeats all of a block but the last product and what follows it.
TEST(Software, RecomputesWholeBlocks) {
  const Plan plan = three_blocks("model=2", 2);
  const Software whole{.block_recomputation = BlockRecomputation::whole};
  const auto flops = [](const Work& work) { return work.flops; };
  const double again = 2 * 6 * 8 * 16 * (4 * 16) / 2.0;  // of a rank and block
  EXPECT_DOUBLE_EQ(sum_of_work(plan, whole, flops) - sum_of_work(plan, {}, flops), 3 * again);
  const auto sums = [](const Work& work) {
    return work.call && work.call->operation == Operation::all_reduce &&
           work.call->what == "activations";
  };
  EXPECT_EQ(sum_of_work(plan, whole, sums) - sum_of_work(plan, {}, sums), 3);
}

// Of qkv, proj, attention and fc1, which the plan repeats, half of the linear products is left.
TEST(Software, KeepsAttentionAndEverySecondProduct) {
  const Plan plan = three_blocks("data=1", 1);
  const Software half{.block_recomputation = BlockRecomputation::half_of_products};
  const auto flops = [](const Work& work) { return work.flops; };
  const double linear = 2 * 6 * 8 * 16 * (3 * 16 + 16 + 64);
  double attention = 0;
  for (const LayerSpec& layer : plan.input.model.layers)
    if (!layer.kind->expression.streamed.empty())
      attention += layer_work(layer, 6, plan.input, PassKind::forward).flops;
  EXPECT_GT(attention, 0);
  EXPECT_DOUBLE_EQ(sum_of_work(plan, {}, flops) - sum_of_work(plan, half, flops),
                   3 * linear / 2 + attention);
}

TEST(Software, WidensLogits) {
  const Plan plan = three_blocks("data=1", 1);
  const auto bytes = [](const Work& work) { return work.bytes; };
  const double logits = 6 * 8 * static_cast<double>(TransformerConfig{}.vocabulary);
  EXPECT_DOUBLE_EQ(
      sum_of_work(plan, {.loss_logits = LossLogits::float32}, bytes) - sum_of_work(plan, {}, bytes),
      logits * (2 * (2 + 4) + 6 * 4 - 3 * 2));
}

// Two tensors of 6 x 8 x 16 cross the boundary of stages inside a block, and their gradients.
TEST(Software, ScattersMessages) {
  const Plan plan = three_blocks("pipeline=2,model=2", 4);
  const Software scattered{.stage_messages = BoundaryMessages::scattered};
  const auto bytes_of = [](Operation operation) {
    return [=](const Work& work) {
      return work.call && work.call->operation == operation ? work.bytes : 0;
    };
  };
  const double whole = 2 * 6 * 8 * 16 * 2;
  EXPECT_DOUBLE_EQ(sum_of_work(plan, {}, bytes_of(Operation::receive)), whole);
  EXPECT_DOUBLE_EQ(sum_of_work(plan, scattered, bytes_of(Operation::receive)), whole / 2);
  EXPECT_DOUBLE_EQ(sum_of_work(plan, scattered, bytes_of(Operation::all_gather)) -
                       sum_of_work(plan, {}, bytes_of(Operation::all_gather)),
                   whole);
}

/// Returns the numbers of pieces of work of each action on a rank.
std::vector<std::size_t> pieces_of(const Plan& plan, Size rank, const Software& software) {
  const WorkSizes sizes = work_sizes(plan, rank, software);
  std::vector<std::size_t> numbers;
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    numbers.push_back(work_of(action, microbatch, plan, sizes).size());
  return numbers;
}

// Ranks without parameters, or without positions, have empty pieces where others have work.
TEST(Work, HasAsManyPiecesOnIdleRanks) {
  PlanInput columns = three_on("model=8", 8, Strategy::data);
  columns.model = mlp({.widths = {8, 16, 8}});
  columns.numerics = {.reproducible = true, .grains = 2, .model_grains = 4};
  columns.microbatches = 2;
  PlanInput positions = three_on("context=8", 8, Strategy::data);
  positions.model = transformer({.context = 7, .width = 16, .heads = 4, .blocks = 1});
  positions.batch_size = positions.samples = 6;
  positions.zigzag = false;
  for (const PlanInput& input : {columns, positions}) {
    const Plan plan = make_plan(input);
    const Software scores{.attention = AttentionScores::scores_and_dropout};
    for (Size rank = 1; rank < 8; ++rank)
      EXPECT_EQ(pieces_of(plan, rank, scores), pieces_of(plan, 0, scores)) << rank;
  }
}

}  // namespace
}  // namespace tessera
