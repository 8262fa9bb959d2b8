// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/plan/plan_text.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::schedule;
using plan_test::sharded;
using plan_test::tutorial;

const std::string forwards = "forward(1p) forward(1o) forward(2p) forward(2o) loss ";
const std::string backwards = "backward(2o) backward(2p) backward(1o) backward(1p) ";

TEST(Schedule, OneMicrobatch) {
  PlanInput input = tutorial();
  EXPECT_EQ(schedule(input), forwards + backwards + "reduce(1..2) update");
  input.bucket_bytes = 300;
  EXPECT_EQ(schedule(input), forwards + backwards + "reduce(2) reduce(1) update");
  input.clips_by_norm = true;
  input.bucket_bytes = 1 << 20;
  EXPECT_EQ(schedule(input), forwards + backwards + "reduce(1..2) clip update");
}

TEST(Schedule, OverlapStartsABucketBehindTheBackwardOfItsFirstLayer) {
  PlanInput input = tutorial();
  input.overlap = true;
  EXPECT_EQ(schedule(input),
            forwards + backwards + "start_reduce(1..2) finish_reduce(1..2) update");
  input.bucket_bytes = 1;
  EXPECT_EQ(schedule(input),
            forwards +
                "backward(2o) backward(2p) start_reduce(2) backward(1o) backward(1p) "
                "start_reduce(1) finish_reduce(2) finish_reduce(1) update");

  input.model = plan_test::three_layers();
  input.bucket_bytes = 84 + 48;
  EXPECT_EQ(schedule(input),
            "forward(1p) forward(1o) forward(2p) forward(2o) forward(3p) forward(3o) loss "
            "backward(3o) backward(3p) backward(2o) backward(2p) start_reduce(2..3) "
            "backward(1o) backward(1p) start_reduce(1) finish_reduce(2..3) finish_reduce(1) "
            "update");
}

TEST(Schedule, ThreeMicrobatchesReduceOnceInTheLast) {
  PlanInput input = tutorial();
  input.model = mlp({.widths = {4, 1}, .bias = false});
  input.microbatches = 3;
  const std::string passes =
      "forward(1o, m0) loss(m0) backward(1o, m0) forward(1o, m1) loss(m1) backward(1o, m1) "
      "forward(1o, m2) loss(m2) backward(1o, m2) ";
  EXPECT_EQ(schedule(input), passes + "reduce(1) update");
  input.overlap = true;
  input.clips_by_norm = true;
  EXPECT_EQ(schedule(input), passes + "start_reduce(1) finish_reduce(1) clip update");
}

// The length of a list does not depend on the number of microbatches.
TEST(Schedule, AMillionMicrobatchesTakeNoMoreActionsThanThree) {
  for (const Strategy strategy : {Strategy::data, Strategy::zero2, Strategy::fsdp}) {
    PlanInput input = sharded(tutorial(), strategy);
    input.batch_size = input.samples = 4'000'003;
    input.validation_samples = 9;
    input.overlap = true;
    input.microbatches = 3;
    const StagePlan three = make_plan(input).stages.front();
    input.microbatches = 1'000'000;
    const Plan plan = make_plan(input);
    const StagePlan& stage = plan.stages.front();
    EXPECT_EQ(stage.actions.size(), three.actions.size());
    EXPECT_EQ(stage.evaluation.size(), three.evaluation.size());
    EXPECT_EQ(stage.storages.front().alive.size(), 2u);
    EXPECT_EQ(stage.repeated.times, 999'999);
    EXPECT_EQ(stage.actions.back().microbatch, 999'999);
    Size gathers = 0;
    for (const CollectivePlan& calls : plan.collectives(0))
      if (calls.operation == Operation::all_gather && calls.cadence == Cadence::step)
        gathers += calls.calls;
    EXPECT_EQ(gathers, strategy == Strategy::fsdp    ? 3 * input.microbatches
                       : strategy == Strategy::zero2 ? 1
                                                     : 0);
    EXPECT_LT(to_text(plan, 0, PlanParts::all()).size(), 10'000u);
    EXPECT_LT(to_json(plan, 0, PlanParts::all()).dump().size(), 20'000u);
  }
}

/// Returns the passes and messages of a stage: "F3 in 1", "receives m4", "started m4".
std::vector<std::string> passes_of(const PlanInput& input, const StagePlan& stage) {
  std::vector<std::string> all;
  for (const auto& [action, microbatch] : plan_test::every_action(stage)) {
    std::string text;
    if (const auto* message = std::get_if<Message>(&*action)) {
      text = fmt::format("{} {} m{}", message->sends ? "send" : "receive",
                         message->phase == Phase::start ? "starts" : "ends", microbatch);
    } else if (const Compute* compute = compute_of(action)) {
      const auto* backward = std::get_if<Backward>(&*action);
      Size chunk = 0;
      while (compute->layer >= stage.chunks[chunk].end() ||
             compute->layer < stage.chunks[chunk].begin)
        ++chunk;
      const bool delayed = backward && backward->gradients == Gradients::of_parameters &&
                           input.schedule == PipelineSchedule::zero_bubble;
      text = fmt::format("{}{} in {}",
                         backward == nullptr ? "F"
                         : delayed           ? "W"
                                             : "B",
                         microbatch, chunk);
    }
    if (!text.empty() && (all.empty() || all.back() != text)) all.push_back(text);
  }
  return all;
}

/// Returns the same for a list that has all microbatches.
std::vector<std::string> passes_of(const std::vector<PipelineAction>& list) {
  std::vector<std::string> all;
  for (const auto& [step, pass] : list) {
    const bool sends = step == PipelineStep::start_send || step == PipelineStep::finish_send,
               starts = step == PipelineStep::start_send || step == PipelineStep::start_receive;
    const char letter = "FBBW"[static_cast<int>(pass.kind)];
    all.push_back(step == PipelineStep::compute
                      ? fmt::format("{}{} in {}", letter, pass.microbatch, pass.chunk)
                      : fmt::format("{} {} m{}", sends ? "send" : "receive",
                                    starts ? "starts" : "ends", pass.microbatch));
  }
  return all;
}

// The repeated part of each stage stands for the passes and messages that are left out.
TEST(Schedule, PipelinesRepeatTheirSteadyState) {
  struct Case {
    PipelineSchedule schedule;
    Size stages, chunks, microbatches;
    bool repeats;
  };
  using enum PipelineSchedule;
  for (const auto& [schedule, stages, chunks, microbatches, repeats] :
       std::vector<Case>{{one_f_one_b, 2, 1, 64, false},
                         {one_f_one_b, 2, 1, 65, true},
                         {one_f_one_b, 4, 1, 200, true},
                         {zero_bubble, 2, 1, 70, true},
                         {zero_bubble, 4, 1, 200, true},
                         {gpipe, 3, 1, 200, false},
                         {interleaved, 2, 1, 80, true},
                         {interleaved, 2, 2, 80, true},
                         {interleaved, 2, 4, 99, false},
                         {interleaved, 3, 2, 200, false},
                         {interleaved, 3, 2, 240, true},
                         {interleaved, 4, 2, 400, true}}) {
    PlanInput input = tutorial({{"pipeline", stages}});
    input.model = mlp({.widths = std::vector<Size>(9, 4)});
    input.schedule = schedule;
    input.virtual_stages = chunks;
    input.batch_size = input.samples = 3 * microbatches;
    input.validation_samples = microbatches;
    input.microbatches = microbatches;
    SCOPED_TRACE(testing::Message() << name_of(schedule) << " " << stages << " " << microbatches);
    const Plan plan = make_plan(input);
    const PipelineShape shape = input.pipeline();
    const ActionLists lists = add_messages(order_passes(shape), shape);
    for (std::size_t s = 0; s < lists.size(); ++s) {
      const StagePlan& stage = plan.stages[s];
      EXPECT_EQ(stage.repeated.times > 1, repeats);
      EXPECT_EQ(passes_of(input, stage), passes_of(lists[s])) << "stage " << s;
      Size losses = 0, last = 0;
      for_each_action(stage.evaluation, stage.evaluation_repeated, [&](std::size_t i, Size m) {
        losses += stage.evaluation[i].as<Loss>() != nullptr;
        last = m;
      });
      EXPECT_EQ(losses, s + 1 == lists.size() ? microbatches : 0);
      EXPECT_EQ(last, microbatches - 1);
    }
  }
}

// A thousand times as many microbatches take no more memory for the plan, and no other frame.
TEST(Schedule, AMillionMicrobatchesOfAPipelineTakeNoMoreActionsThanAThousand) {
  const auto planned = [](Size microbatches) {
    PlanInput input = tutorial({{"pipeline", 4}});
    input.model = mlp({.widths = std::vector<Size>(9, 4)});
    input.schedule = PipelineSchedule::interleaved;
    input.virtual_stages = 2;
    input.batch_size = input.samples = input.microbatches = microbatches;
    return make_plan(input);
  };
  const Plan few = planned(1'000), many = planned(1'000'000);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(many.stages[s].actions.size(), few.stages[s].actions.size());
    EXPECT_EQ(many.stages[s].frame_bytes, few.stages[s].frame_bytes);
  }
  EXPECT_LT(to_text(many, 0, PlanParts::all()).size(), 200'000u);
}

TEST(Schedule, AxesOfSizeOneReduceNothing) {
  const std::vector<std::vector<Axis>> meshes = {
      {{"data", 1}}, {{"data", 1}, {"model", 1}}, {{"fsdp", 1}, {"data", 1}}};
  for (const std::vector<Axis>& axes : meshes) {
    for (bool overlap : {false, true}) {
      PlanInput input = tutorial(axes);
      input.overlap = overlap;
      EXPECT_EQ(schedule(input), forwards + backwards + "update");
      EXPECT_TRUE(make_plan(input).collectives(0).empty());
    }
  }
}

PlanInput fsdp() { return sharded(tutorial({{"fsdp", 4}}), Strategy::fsdp); }

TEST(ShardedSchedule, FsdpGathersOneUnitAhead) {
  EXPECT_EQ(schedule(fsdp()),
            "gather(1) start_gather(2) forward(1p) forward(1o) finish_gather(2) forward(2p) "
            "forward(2o) loss "
            "start_gather(1) backward(2o) backward(2p) reduce_scatter(2) "
            "finish_gather(1) backward(1o) backward(1p) reduce_scatter(1) update");
}

TEST(ShardedSchedule, FsdpWithoutPrefetchGathersWhatItNeeds) {
  PlanInput input = fsdp();
  input.prefetch = false;
  EXPECT_EQ(schedule(input),
            "gather(1) forward(1p) forward(1o) gather(2) forward(2p) forward(2o) loss "
            "backward(2o) backward(2p) reduce_scatter(2) gather(1) backward(1o) backward(1p) "
            "reduce_scatter(1) "
            "update");
  input.keep_last_unit = false;
  EXPECT_EQ(schedule(input),
            "gather(1) forward(1p) forward(1o) gather(2) forward(2p) forward(2o) loss "
            "gather(2) backward(2o) backward(2p) reduce_scatter(2) "
            "gather(1) backward(1o) backward(1p) reduce_scatter(1) update");
}

TEST(ShardedSchedule, FsdpThatKeepsUnitsGathersEachOnce) {
  PlanInput input = fsdp();
  input.reshard_after_forward = false;
  EXPECT_EQ(schedule(input),
            "gather(1) start_gather(2) forward(1p) forward(1o) finish_gather(2) forward(2p) "
            "forward(2o) loss "
            "backward(2o) backward(2p) reduce_scatter(2) backward(1o) backward(1p) "
            "reduce_scatter(1) update");
}

/// Returns two layers without biases, so that each one is one action.
PlanInput bare(PlanInput input) {
  input.model = mlp({.widths = {4, 64, 1}, .activation = Activation::identity, .bias = false});
  return input;
}

TEST(ShardedSchedule, FsdpThatKeepsUnitsGathersThemBeforeSeveralMicrobatches) {
  PlanInput input = bare(fsdp());
  input.reshard_after_forward = false;
  input.microbatches = 2;
  EXPECT_EQ(schedule(input),
            "gather(1) gather(2) "
            "forward(1o, m0) forward(2o, m0) loss(m0) backward(2o, m0) reduce_scatter(2) "
            "backward(1o, m0) reduce_scatter(1) "
            "forward(1o, m1) forward(2o, m1) loss(m1) backward(2o, m1) reduce_scatter(2) "
            "backward(1o, m1) reduce_scatter(1) update");
}

TEST(ShardedSchedule, Zero1ReducesInTheLastMicrobatchAndZero2InEvery) {
  PlanInput input = bare(sharded(tutorial({{"data", 4}}), Strategy::zero1));
  input.microbatches = 2;
  input.bucket_bytes = 1;
  input.check_finite = input.clips_by_norm = true;
  const std::string first = "forward(1o, m0) forward(2o, m0) loss(m0) ";
  const std::string last =
      "forward(1o, m1) forward(2o, m1) loss(m1) backward(2o, m1) reduce_scatter(2) "
      "backward(1o, m1) reduce_scatter(1) check_finite clip update gather(1) gather(2)";
  EXPECT_EQ(schedule(input), first + "backward(2o, m0) backward(1o, m0) " + last);
  input.strategy = Strategy::zero2;
  EXPECT_EQ(schedule(input), first +
                                 "backward(2o, m0) reduce_scatter(2) "
                                 "backward(1o, m0) reduce_scatter(1) " +
                                 last);
  input.bucket_bytes = 1 << 20;
  input.microbatches = 1;
  EXPECT_EQ(schedule(input),
            "forward(1o) forward(2o) loss backward(2o) backward(1o) reduce_scatter(1..2) "
            "check_finite clip update gather(1..2)");
}

TEST(ShardedSchedule, HybridWithOverlapReducesReplicasBehindEachScatter) {
  PlanInput input = bare(sharded(tutorial({{"data", 2}, {"fsdp", 2}}), Strategy::hybrid));
  input.overlap = true;
  EXPECT_EQ(schedule(input),
            "gather(1) start_gather(2) forward(1o) finish_gather(2) forward(2o) loss "
            "start_gather(1) backward(2o) start_reduce_scatter(2) finish_gather(1) backward(1o) "
            "finish_reduce_scatter(2) start_reduce(2) start_reduce_scatter(1) "
            "finish_reduce_scatter(1) start_reduce(1) finish_reduce(2) finish_reduce(1) update");
  input.shard_moments_over = {"data", "fsdp"};
  EXPECT_EQ(schedule(input),
            "gather(1) start_gather(2) forward(1o) finish_gather(2) forward(2o) loss "
            "start_gather(1) backward(2o) start_reduce_scatter(2) finish_gather(1) backward(1o) "
            "finish_reduce_scatter(2) start_reduce_scatter(2) start_reduce_scatter(1) "
            "finish_reduce_scatter(1) finish_reduce_scatter(2) start_reduce_scatter(1) "
            "finish_reduce_scatter(1) update gather(1) gather(2)");
}

}  // namespace
}  // namespace tessera
