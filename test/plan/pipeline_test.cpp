// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
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

/// Returns the makespan if a send waits until its receive has started. Messages take no time.
double with_waiting_sends(const PipelineShape& shape) {
  const ActionLists lists = add_messages(order_passes(shape), shape);
  std::vector<std::size_t> next(lists.size());
  std::vector<double> now(lists.size());
  std::map<PlacedPass, double> received, sent;  // when the receive and the send start
  const auto wait = [&](std::size_t k, const std::map<PlacedPass, double>& starts,
                        const PlacedPass& other) {
    const auto start = starts.find(other);
    if (start == starts.end()) return false;
    now[k] = std::max(now[k], start->second);
    return true;
  };
  const auto carry_out = [&](std::size_t k, const PipelineAction& action) {
    const PlacedPass pass{static_cast<Size>(k), action.pass};
    switch (action.step) {
      case PipelineStep::start_receive:
        received[pass] = now[k];
        return true;
      case PipelineStep::finish_receive:
        return wait(k, sent, producer_of(pass, shape).value());
      case PipelineStep::compute:
        now[k] += (action.pass.kind == PassKind::backward ? 2.0 : 1.0) /
                  static_cast<double>(shape.virtual_stages);
        return true;
      case PipelineStep::start_send:
        sent[pass] = now[k];
        return true;
      case PipelineStep::finish_send:
        return wait(k, received, consumer_of(pass, shape).value());
    }
    return false;
  };
  advance_stages(lists, next, carry_out);
  return *std::max_element(now.begin(), now.end());
}

TEST(PipelineTimelines, HoldIfSendsWaitForTheirReceives) {
  for_each_shape([](const PipelineShape& shape) {
    EXPECT_NEAR(with_waiting_sends(shape), timed(shape).makespan, 1e-9);
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
  const auto message = [](const PipelineShape& shape) {
    return test::error_of([&] { order_passes(shape); });
  };
  EXPECT_EQ(
      message({one_f_one_b, 4, 8, 2}),
      "distributed.virtual_stages = 2: must be 1 with schedule 1f1b; only interleaved allows more");
}

/// Returns the error of simulate_pipeline().
std::string verdict(const ActionLists& lists, const PipelineShape& shape) {
  return test::error_of([&] { simulate_pipeline(lists, shape); }, ExitCode::wrong_result);
}

/// Returns the position of an action in a list.
std::size_t find(const std::vector<PipelineAction>& list, PipelineStep step,
                 const StagePass& pass) {
  const auto at = std::find(list.begin(), list.end(), PipelineAction{step, pass});
  EXPECT_NE(at, list.end());
  return static_cast<std::size_t>(at - list.begin());
}

// simulate_pipeline() rejects an invalid schedule and names stage and pass.
TEST(PipelineChecks, NameStageAndPass) {
  using enum PipelineStep;
  using enum PassKind;
  const PipelineShape shape{one_f_one_b, 3, 4};
  const ActionLists good = add_messages(order_passes(shape), shape);
  const auto changed = [&](Size stage, const auto& change) {
    ActionLists lists = good;
    change(lists[stage]);
    return verdict(lists, shape);
  };
  const auto swapped = [&](Size stage, PipelineAction one, PipelineAction other) {
    return changed(stage, [&](auto& list) {
      std::swap(list[find(list, one.step, one.pass)], list[find(list, other.step, other.pass)]);
    });
  };
  const auto without = [&](Size stage, PipelineAction one) {
    return changed(stage, [&](auto& list) { std::erase(list, one); });
  };
  const std::string of = "pipeline schedule 1f1b: ";
  EXPECT_EQ(swapped(0, {compute, {forward, 1}}, {compute, {forward, 2}}),
            of + "stage 0, forward of microbatch 2: runs before microbatch 1");
  EXPECT_EQ(swapped(2, {compute, {forward, 1}}, {compute, {backward, 1}}),
            of + "stage 2, backward of microbatch 1: begins before its forward pass");
  EXPECT_EQ(swapped(1, {finish_receive, {forward, 2}}, {compute, {forward, 2}}),
            of + "stage 1, forward of microbatch 2: begins without its input");
  EXPECT_EQ(swapped(0, {start_send, {forward, 2}}, {compute, {forward, 2}}),
            of + "stage 0, forward of microbatch 2: sends an output that it does not have");
  EXPECT_EQ(without(1, {compute, {backward, 3}}),
            of + "stage 1, backward of microbatch 3: sends an output that it does not have");
  EXPECT_EQ(without(0, {compute, {backward, 3}}),
            of + "stage 0, backward of microbatch 3: is missing");
  EXPECT_EQ(without(1, {finish_receive, {backward, 0}}),
            of + "stage 1, backward of microbatch 0: begins without its input");
  EXPECT_EQ(changed(0,
                    [&](auto& list) {
                      list.push_back({compute, {backward, 4}});
                    }),
            of + "stage 0, backward of microbatch 4: is not a pass of this schedule");
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
