// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/plan/pipeline/pipeline_timeline.hpp>

#include "engine/random.hpp"
#include "expect_error.hpp"
#include "pass_text.hpp"

namespace tessera {
namespace {

using enum PipelineSchedule;

/// Calls `test` for every valid shape of up to 8 stages, 20 microbatches and 4 chunks.
void for_each_shape(const std::function<void(const PipelineShape&)>& test) {
  for (const PipelineSchedule schedule :
       {gpipe, one_f_one_b, interleaved, zero_bubble, zbv, dualpipev})
    for (Size p = 1; p <= 8; ++p)
      for (Size m = 1; m <= 20; ++m)
        for (Size v = schedule >= zbv ? 2 : 1; v <= (schedule == interleaved ? 4
                                                     : schedule >= zbv       ? 2
                                                                             : 1);
             ++v) {
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

// src/tessera/plan/SCHEDULES.md
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
      if (shape.schedule >= zbv) {
        if (m < 2 * p) continue;
        peak = 2 * p + (shape.schedule == dualpipev ? 1 : 0);
        for (const Size chunk : {0, 1}) {  // which have places in memory of their own
          std::vector<StagePass> own = passes[k];
          std::erase_if(own, [&](const StagePass& pass) { return pass.chunk != chunk; });
          EXPECT_EQ(peak_live(own, shape), chunk == 0 ? 2 * p - k : k + 1) << "stage " << k;
        }
      }
      EXPECT_EQ(peak_live(passes[k], shape), peak) << "stage " << k;
    }
  });
}

TEST(PipelineTimelines, OfTheVHaveTheBubblesOfTheClosedForms) {
  for (const PipelineTimes times :
       {PipelineTimes{1, 1, 1}, {2, 2, 1}, {4, 5, 3}, {2, 3, 1}, {5, 4, 3}})
    for_each_shape([&](const PipelineShape& shape) {
      const Size p = shape.stages, m = shape.microbatches;
      const auto [f, i, w, message] = times;
      if (shape.schedule < zbv || m < 2 * p) return;
      if (shape.schedule == zbv ? i < f : i > f) return;
      const double idle = static_cast<double>(p - 1) *
                          (shape.schedule == zbv ? std::max(i, 2 * (i - w)) : f + i - w) / 2;
      EXPECT_NEAR(timed(shape, times).bubble, idle / (static_cast<double>(m) * (f + i + w) + idle),
                  1e-12)
          << f << i << w;
    });
}

TEST(PipelineTimelines, HaveTheBubblesOfTheClosedForms) {
  const PipelineTimes times{2, 3, 1, 0};
  for_each_shape([&](const PipelineShape& shape) {
    if (shape.schedule >= zbv) return;
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
  EXPECT_EQ(test::error_of([&] {
              order_passes({one_f_one_b, 4, 8, 2});
            }),
            "distributed.virtual_stages = 2: must be 1 with schedule 1f1b; interleaved allows any "
            "number");
}

// Any order that can run without messages can run with them, and a file has what was written.
TEST(PassFiles, HaveAnyOrderThatCanRun) {
  train_test::Random random(1);
  for (int n = 0; n < 300; ++n) {
    PipelineShape shape{random.one_of(std::array{interleaved, zero_bubble, zbv}),
                        random.number(1, 5), random.number(1, 6)};
    shape.virtual_stages = shape.schedule == zbv           ? 2
                           : shape.schedule == interleaved ? random.number(1, 3)
                                                           : 1;
    const PassLists passes = test::random_passes(random, shape);
    const std::string text = test::text_of(passes, shape);
    SCOPED_TRACE(text);
    PipelineShape read = shape;
    read.table = read_passes(text, "passes.csv");
    EXPECT_EQ(read.table->virtual_stages, shape.virtual_stages);
    EXPECT_EQ(order_passes(read), passes);
    EXPECT_NO_THROW(timed(read));
  }
}

TEST(PassFiles, MayHaveEmptyCellsAndWholeBackwardPasses) {
  const auto table = read_passes("0F0, ,0I0 ,0W0,0F1,0B1\r\n ,1F0,1B0, 1F1,1B1,\n\n", "a.csv");
  const PipelineShape shape{.stages = 2, .microbatches = 2, .table = table};
  EXPECT_EQ(draw(timed(shape), shape),
            "  stage 0 F0 .. .. B0 W0 F1 .. .. B1 W1\n"
            "  stage 1 .. F0 B0 W0 .. .. F1 B1 W1 ..\n");
  EXPECT_FALSE(read_passes("0F0,0B0", "b.csv")->splits_backward);
}

TEST(PassFiles, NameRowAndColumnOfAMistake) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "has no passes"},
      {"0F0,0X0", "row 1, column 2, 0X0 must be a stage, one of F, I, W and B, and a microbatch"},
      {"0F0,F", "row 1, column 2, F must be"},
      {"0F0,0SEND_F0", "row 1, column 2, 0SEND_F0 must be"},
      {"0F0,0F-1", "row 1, column 2, 0F-1 must be"},
      {"0F0,0B0\n1F0\n", "row 2: backward of microbatch 0 is missing"},
      {"0F0,0I0\n1F0,1I0,1W0\n", "row 1: weight_gradients of microbatch 0 is missing"},
      {"0F0,0B0,0B0", "row 1, column 3, 0B0: microbatch 1 must come next, once and in order"},
      {"0F1,0F0,0B0,0B1", "row 1, column 1, 0F1: microbatch 0 must come next"},
      {"0F0,2F0\n1F0,0F1", "row 2, column 2, 0F1: must be in row 1, because stages lie as a loop"},
      {"0F0,3F0,2F0\n1F0\n",
       "row 1, column 2, 3F0: must be in row 2, because stages lie as a loop"},
      {"0F0,3F0\n1F0\n", "row 1: backward of microbatch 0 in chunk 0 is missing"},
      {"0B0,0F0", "row 1, column 1, 0B0: waits forever for forward of microbatch 0 in row 1"},
      {"0F0,0I0,0W0\n1F0,1W0,1I0\n",
       "row 1, column 2, 0I0: waits forever for input_gradients of microbatch 0 in row 2"},
      {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1",
       "row 1, column 2, 0B0: waits forever for backward of microbatch 0 in row 2"}};
  for (const auto& [text, error] : cases)
    EXPECT_EQ(test::error_of([&] {
                read_passes(text, "a.csv");
              }).find(std::string("distributed.schedule_file = \"a.csv\": ") + error),
              0U)
        << test::error_of([&] { read_passes(text, "a.csv"); });
  const PipelineShape shape{.stages = 2, .table = read_passes("0F0,0B0,0F1,0B1", "a.csv")};
  EXPECT_EQ(test::error_of([&] { order_passes(shape); }),
            "distributed.schedule_file = \"a.csv\": is for pipeline=1 and training.microbatches = "
            "2, not 2 and 1");
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
