// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/plan/pipeline/pipeline_timeline.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using enum PipelineSchedule;

/// Calls `test` for every valid shape of up to 8 stages, 20 microbatches and 4 chunks.
void for_each_shape(const std::function<void(const PipelineShape&)>& test) {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b, interleaved, zero_bubble})
    for (Size p = 1; p <= 8; ++p)
      for (Size m = 1; m <= 20; ++m)
        for (Size v = 1; v <= (schedule == interleaved ? 4 : 1); ++v) {
          SCOPED_TRACE(fmt::format("{} p={} m={} v={}", name_of(schedule), p, m, v));
          test({schedule, p, m, v});
        }
}

PipelineTimeline timed(const PipelineShape& shape, const PipelineTimes& times = {}) {
  return simulate_pipeline(add_messages(order_passes(shape), shape), shape, times);
}

TEST(PipelineSchedules, AreValidAndCannotDeadlock) {
  for_each_shape([](const PipelineShape& shape) { EXPECT_NO_THROW(timed(shape)); });
}

// src/tessera/plan/README.md, "Pipeline schedules and bubbles".
TEST(PipelineSchedules, KeepAsManyMicrobatchesAsTheClosedFormsSay) {
  for_each_shape([](const PipelineShape& shape) {
    const Size p = shape.stages, m = shape.microbatches, v = shape.virtual_stages;
    const Size groups = std::max<Size>(1, m / p), largest = (m + groups - 1) / groups;
    const PassLists passes = order_passes(shape);
    for (Size k = 0; k < p; ++k) {
      Size peak = m;
      if (shape.schedule == one_f_one_b) peak = std::min(p - k, m);
      if (shape.schedule == interleaved)
        peak = std::min(2 * (p - k - 1) + (v - 1) * largest + 1, m * v);
      if (shape.schedule == zero_bubble) peak = std::min(p, m);
      EXPECT_EQ(peak_live(passes[k], shape.schedule), peak) << "stage " << k;
    }
  });
}

TEST(PipelineTimelines, HaveTheBubblesOfTheClosedForms) {
  const PipelineTimes times{2, 3, 1, 0};
  for_each_shape([&](const PipelineShape& shape) {
    const auto p = static_cast<double>(shape.stages), m = static_cast<double>(shape.microbatches);
    const double whole = times.forward + times.input_gradients + times.weight_gradients;
    const PipelineTimeline timeline = timed(shape, times);
    if (shape.schedule == zero_bubble) {
      if (m < p) return;
      const double idle =
          (p - 1) * (times.forward + times.input_gradients - times.weight_gradients);
      EXPECT_NEAR(timeline.bubble, idle / (m * whole + idle), 1e-12);
      return;
    }
    const double v = static_cast<double>(shape.virtual_stages);
    const double makespan = std::max(m + (p - 1) / v, p + (m - 1) / v);
    EXPECT_NEAR(timeline.makespan, makespan * whole, 1e-9);
    const double bubble = m >= p ? (p - 1) / (v * m + p - 1) : 1 - v * m / (v * p + m - 1);
    EXPECT_NEAR(timeline.bubble, bubble, 1e-12);
  });
}

// With two stages and one microbatch: forward, message, forward, backward, message, backward.
TEST(PipelineTimelines, WaitForMessages) {
  const PipelineTimeline timeline = timed({gpipe, 2, 1}, {1, 1, 1, 0.5});
  EXPECT_DOUBLE_EQ(timeline.makespan, 1 + 0.5 + 1 + 2 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(timeline.stages[1][0].begin, 1.5);
  EXPECT_DOUBLE_EQ(timeline.stages[0][1].begin, 5);
  EXPECT_DOUBLE_EQ(timeline.bubble, 1 - 6 / 14.0);
}

TEST(PipelineTimelines, AreDrawn) {
  EXPECT_EQ(draw(timed({one_f_one_b, 2, 3}), {one_f_one_b, 2, 3}),
            "  stage 0 F0 F1 .. .. B0 B0 F2 B1 B1 .. B2 B2\n"
            "  stage 1 .. F0 B0 B0 F1 B1 B1 F2 B2 B2 .. ..\n");
}

TEST(PipelineTimelines, AreContinuedBelow) {
  const PipelineShape shape{interleaved, 2, 2, 2};
  const std::string text = draw(timed(shape), shape, 10 + 4 * 7);
  EXPECT_EQ(text.find("  stage 0 F0a F1a F0b F1b"), 0U) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8)
      << "15 units, of which 7 fit into a line\n"
      << text;
}

TEST(PipelineTimelines, AreCutAfterFiveBlocks) {
  const PipelineShape shape{one_f_one_b, 2, 100};
  const std::string text = draw(timed(shape), shape);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
  EXPECT_TRUE(text.ends_with("  ... and so on, up to unit 303\n")) << text;
}

TEST(PipelineSchedules, RejectInvalidShapes) {
  EXPECT_EQ(
      test::error_of([&] {
        order_passes({one_f_one_b, 4, 8, 2});
      }),
      "distributed.virtual_stages = 2: must be 1 with schedule 1f1b; only interleaved allows more");
}

/// Returns the error of simulate_pipeline().
std::string verdict(const ActionLists& lists, const PipelineShape& shape) {
  return test::error_of([&] { simulate_pipeline(lists, shape); }, ExitCode::wrong_result);
}

// simulate_pipeline() rejects an invalid schedule and names stage and pass.
TEST(PipelineChecks, NameStageAndPass) {
  using enum PipelineStep;
  using enum PassKind;
  const PipelineShape shape{one_f_one_b, 3, 4};
  struct Case {
    std::size_t stage;
    PipelineAction one;
    std::optional<PipelineAction> other;  ///< changes places with `one`; none: `one` is left out
    const char* error;
  };
  const std::vector<Case> cases{
      {0,
       {compute, {forward, 1}},
       {{compute, {forward, 2}}},
       "stage 0, forward of microbatch 2: runs before microbatch 1"},
      {2,
       {compute, {forward, 1}},
       {{compute, {backward, 1}}},
       "stage 2, backward of microbatch 1: begins before its forward pass"},
      {1,
       {finish_receive, {forward, 2}},
       {{compute, {forward, 2}}},
       "stage 1, forward of microbatch 2: begins without its input"},
      {1,
       {finish_receive, {backward, 0}},
       {},
       "stage 1, backward of microbatch 0: begins without its input"},
      {0, {compute, {backward, 3}}, {}, "stage 0, backward of microbatch 3: is missing"}};
  for (const Case& one : cases) {
    ActionLists lists = add_messages(order_passes(shape), shape);
    std::vector<PipelineAction>& list = lists[one.stage];
    const auto at = std::find(list.begin(), list.end(), one.one);
    if (one.other)
      std::iter_swap(at, std::find(list.begin(), list.end(), *one.other));
    else
      list.erase(at);
    EXPECT_EQ(verdict(lists, shape), std::string("pipeline schedule 1f1b: ") + one.error);
  }
}

// In 1F1B with blocking sends, both stages send at the same time, and each waits for a receive that
// the other stage starts only after its own send.
TEST(PipelineChecks, FindADeadlock) {
  const PipelineShape shape{one_f_one_b, 2, 4};
  ActionLists lists;
  for (const std::vector<StagePass>& passes : order_passes(shape)) {
    std::vector<PipelineAction> list;
    const Size stage = static_cast<Size>(lists.size());
    for (const StagePass& pass : passes) {
      if (producer_of({stage, pass}, shape)) {
        list.push_back({PipelineStep::start_receive, pass});
        list.push_back({PipelineStep::finish_receive, pass});
      }
      list.push_back({PipelineStep::compute, pass});
      if (consumer_of({stage, pass}, shape)) {
        list.push_back({PipelineStep::start_send, pass});
        list.push_back({PipelineStep::finish_send, pass});
      }
    }
    lists.push_back(std::move(list));
  }
  EXPECT_EQ(verdict(lists, shape),
            "pipeline schedule 1f1b: stage 0, forward of microbatch 1: finish_send never ends: the "
            "stages wait for each other");
}

}  // namespace
}  // namespace tessera
