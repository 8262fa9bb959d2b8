// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/predict/simulate.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

PlanInput on(const std::string& mesh, Size ranks, Strategy strategy) {
  PlanInput input = tutorial();
  input.mesh = MeshShape::parse(mesh, ranks);
  input.strategy = strategy;
  return input;
}

SimulatedStep simulated(const PlanInput& input, const CostOf& cost) {
  return simulate(make_plan(input), cost);
}

bool is_backward_product(const Work& work) {
  return work.pass == PassKind::backward && work.has_products;
}

/// Returns the plan with all microbatches listed.
Plan written_out(Plan plan) {
  for (StagePlan& stage : plan.stages) {
    stage.actions = plan_test::every_action(stage);
    stage.repeated = {};
  }
  return plan;
}

// A step of many equal microbatches is extrapolated from a few of them.
TEST(Simulate, RepeatedMicrobatchesTakeAsLongAsListedOnes) {
  const CostOf cost = [](const Work& work) {
    const double size = work.bytes;
    return work.call ? Cost{1 + size / 64, 0, 0.25} : Cost{size / 16, size / 100};
  };
  for (const Strategy strategy : {Strategy::data, Strategy::zero2, Strategy::fsdp})
    for (const Size microbatches : {1, 2, 7, 64, 65, 500}) {
      SCOPED_TRACE(testing::Message() << name_of(strategy) << ", " << microbatches);
      PlanInput input = on("data=3", 3, strategy);
      input.batch_size = 3007;  // 1003 or 1002 samples on a rank
      input.samples = 10'000;
      input.microbatches = microbatches;
      input.overlap = true;
      if (microbatches % 2 == 1) input.model.ignore_index = 0;  // an action before the microbatches
      const Plan plan = make_plan(input);
      const SimulatedStep few = simulate(plan, cost), all = simulate(written_out(plan), cost);
      const double tolerance = microbatches <= 64 ? 0 : 1e-9 * all.step_seconds;
      EXPECT_NEAR(few.step_seconds, all.step_seconds, tolerance);
      ASSERT_EQ(few.parts().size(), all.parts().size());
      for (std::size_t p = 0; p < few.parts().size(); ++p)
        EXPECT_NEAR(few.parts()[p].second, all.parts()[p].second, tolerance)
            << all.parts()[p].first;
      for (std::size_t c = 0; c < few.calls.size(); ++c)
        EXPECT_NEAR(few.calls[c].calls, all.calls[c].calls, 1e-9 * all.calls[c].calls);
    }
}

// Started reductions: S_k = max(R_k, E_{k-1}) and E_k = S_k + d. The step is longer by the time
// that the reductions take after the backward pass.
//
//   backward   |2p|1p|
//   reduce        |  2  |  1  |
TEST(Simulate, ReductionsThatOverlapFollowEachOther) {
  PlanInput input = on("data=2", 2, Strategy::data);
  input.bucket_bytes = 1;  // one for each layer
  const auto cost = [&](double exposed) {
    return [=](const Work& work) -> Cost {
      if (work.call) return {3, 0, exposed};
      return {is_backward_product(work) ? 1.0 : 0.0};
    };
  };
  input.overlap = true;
  const SimulatedStep hidden = simulated(input, cost(0));
  EXPECT_DOUBLE_EQ(hidden.step_seconds, 1 + 3 + 3);
  EXPECT_DOUBLE_EQ(hidden.communication(), 5) << "one second is hidden by the other product";
  EXPECT_DOUBLE_EQ(hidden.calls.at(0).lasting, 6);
  EXPECT_DOUBLE_EQ(simulated(input, cost(3)).step_seconds, 1 + 1 + 3 + 3) << "nothing is hidden";
  EXPECT_DOUBLE_EQ(simulated(input, cost(1)).step_seconds, 1 + 3 + 3);
  input.overlap = false;
  EXPECT_DOUBLE_EQ(simulated(input, cost(0)).step_seconds, 1 + 1 + 3 + 3);
}

// A piece of rows travels along `model` while another one is multiplied.
TEST(Simulate, PiecesOfRowsHideBehindProducts) {
  PlanInput input = on("model=3", 3, Strategy::data);
  input.model = mlp({.widths = {4, 64, 64, 64, 64, 1}});
  input.sequence_parallel = true;
  const auto messages = [&](double seconds) {
    const SimulatedStep step = simulated(input, [&](const Work& work) -> Cost {
      if (work.call) return {work.call->operation == Operation::receive ? seconds : 0};
      return {work.has_products ? 1.0 : 0};
    });
    for (const SimulatedStep::Call& call : step.calls)
      if (call.operation == Operation::receive) return std::pair(call.lasting, call.seconds);
    return std::pair(0.0, 0.0);
  };
  EXPECT_EQ(messages(1).first, 0);
  input.model_overlap = true;
  const auto [lasting, spent] = messages(1);
  EXPECT_GT(lasting, 10);
  EXPECT_EQ(spent, 0);
  EXPECT_GT(messages(1.5).second, 0);
}

// Gathers take 2 seconds and products 3, so the second gather is hidden.
TEST(Simulate, PrefetchHidesAGatherBehindALayer) {
  PlanInput input = on("fsdp=2", 2, Strategy::fsdp);
  const auto cost = [](const Work& work) -> Cost {
    if (work.call && work.call->operation == Operation::all_gather) return {2};
    return {work.pass == PassKind::forward && work.has_products ? 3.0 : 0.0};
  };
  input.keep_last_unit = input.reshard_after_forward = true;
  const double with_prefetch = simulated(input, cost).step_seconds;
  input.prefetch = false;
  const double without = simulated(input, cost).step_seconds;
  // The last unit stays gathered for its backward pass. The first one is gathered again.
  EXPECT_DOUBLE_EQ(without, 2 + 3 + 2 + 3 + 2);
  EXPECT_DOUBLE_EQ(with_prefetch, 2 + 3 + 3 + 2);
}

TEST(Simulate, RanksWaitForTheOneWithTheMostRows) {
  PlanInput input = on("data=3", 3, Strategy::data);  // 11, 11 and 10 rows
  const double flops_of_a_row = make_plan(input).flops.total() / 32;
  const auto cost = [&](const Work& work) -> Cost {
    if (work.call) return {1};
    return {work.flops / flops_of_a_row};
  };
  const SimulatedStep step = simulated(input, cost);
  EXPECT_NEAR(step.step_seconds, 11 + 1, 1e-9);
  EXPECT_NEAR(step.products.work, 32 / 3.0, 1e-9);
  EXPECT_NEAR(step.waiting(), 1 / 3.0, 1e-9);
  EXPECT_DOUBLE_EQ(step.communication(), 1);
}

TEST(Simulate, LagOfTheSlowestRankIsWaitedForOnce) {
  PlanInput input = on("data=2", 2, Strategy::data);
  input.bucket_bytes = 1;
  const SimulatedStep step = simulated(input, [](const Work& work) -> Cost {
    if (work.call) return {1};
    return {work.has_products ? 2.0 : 0.0, work.has_products ? 0.5 : 0.0};
  });
  EXPECT_DOUBLE_EQ(step.waiting(), 4 * 0.5);
  EXPECT_DOUBLE_EQ(step.step_seconds, 4 * 2.5 + 2);
}

/// Returns a transformer of three blocks whose logits have the table of the embedding.
ModelSpec tied_blocks() {
  return transformer({.context = 8, .width = 16, .heads = 4, .blocks = 3, .tied = true});
}

// Also calls without bytes: two ranks have no sample in a microbatch. Middle stages have no part of
// the sum of a tied table.
TEST(Simulate, AStepMakesThePlannedCalls) {
  struct Tried {
    std::string mesh;
    Size ranks;
    Strategy strategy;
    ModelSpec model = plan_test::three_layers();
    Size batch = 32;
  };
  for (const auto& [mesh, ranks, strategy, model, batch] :
       {Tried{"data=3", 3, Strategy::data}, Tried{"data=3", 3, Strategy::zero2},
        Tried{"data=2,fsdp=2", 4, Strategy::hybrid}, Tried{"fsdp=3,model=2", 6, Strategy::fsdp},
        Tried{"data=4,model=2", 8, Strategy::data, tied_blocks(), 4},
        Tried{"pipeline=4", 4, Strategy::data, tied_blocks()}})
    for (const bool overlap : {false, true}) {
      SCOPED_TRACE(mesh + " " + std::string(name_of(strategy)));
      PlanInput input = on(mesh, ranks, strategy);
      input.model = model;
      input.batch_size = batch;
      input.overlap = overlap;
      input.microbatches = 2;
      input.check_finite = input.clips_by_norm = true;
      const Plan plan = make_plan(input);
      EXPECT_EQ(simulate(plan, [](const Work&) { return Cost{}; }).step_seconds, 0);
      const SimulatedStep unit = simulate(plan, [](const Work& work) -> Cost {
        return {work.call ? 1.0 : 0.0, 0, 1};
      });
      std::map<std::string, double> planned, made;
      for (Size rank = 0; rank < ranks; ++rank)
        for (const CollectivePlan& row : plan.collectives(rank))
          if (row.cadence == Cadence::step && row.operation != Operation::send)
            planned[fmt::format("{} on {}", name_of(row.operation), row.axis)] +=
                static_cast<double>(row.calls) / static_cast<double>(ranks);
      for (const SimulatedStep::Call& call : unit.calls)
        made[fmt::format("{} on {}", name_of(call.operation), call.axis)] += call.calls;
      ASSERT_EQ(planned.size(), made.size());
      for (const auto& [what, calls] : planned) EXPECT_NEAR(made[what], calls, 1e-9) << what;
    }
}

TEST(Simulate, GroupsOfAnAxisDoNotWaitForEachOther) {
  PlanInput input = on("data=2,model=2", 4, Strategy::data);
  input.model = plan_test::three_layers();
  const SimulatedStep step =
      simulated(input, [](const Work& work) { return Cost{work.call ? 1.0 : 0.0}; });
  EXPECT_DOUBLE_EQ(step.step_seconds, step.communication());
  EXPECT_DOUBLE_EQ(step.waiting(), 0);
}

TEST(Work, CountsTheBytesOfEveryAction) {
  const Plan plan = make_plan(on("data=2", 2, Strategy::data));
  const WorkSizes sizes = work_sizes(plan, 0);
  std::vector<std::string> found;
  for (const auto& [action, microbatch] : plan.stages.front().actions)
    for (const Work& work : work_of(action, microbatch, plan, sizes))
      found.push_back(fmt::format("{} {} B, {} FLOP", name_of(action), work.bytes, work.flops));
  // 16 rows of 4, 64 and 1 columns; 385 parameters.
  const Size x = 4 * 16 * 4, hidden = 4 * 16 * 64, y = 4 * 16;
  const Size w1 = 4 * 4 * 64, w2 = 4 * 64, b1 = 4 * 64, b2 = 4;
  const auto entry = [](const char* name, Size bytes, Size flops) {
    return fmt::format("{} {} B, {} FLOP", name, bytes, flops);
  };
  ASSERT_EQ(found.size(), 11u);
  EXPECT_EQ(std::vector(found.begin(), found.begin() + 5),
            (std::vector{entry("forward", x + w1 + hidden, 2 * 16 * 4 * 64),
                         entry("forward", 2 * hidden + b1, 0),
                         entry("forward", hidden + w2 + y, 2 * 16 * 64),
                         entry("forward", 2 * y + b2, 0), entry("loss", 3 * y, 0)}));
  EXPECT_EQ(found[9], entry("reduce", 4 * 385, 0));
  EXPECT_EQ(found[10], entry("update", 4 * 385 * (3 + 2 * plan.input.moments), 0));
}

/// Layers of one second forward and two backward; messages of `message` seconds.
CostOf layers_and_messages(double message) {
  return [=](const Work& work) -> Cost {
    if (work.is_message()) return {message};
    if (!work.has_products) return {};
    return {work.pass == PassKind::forward ? 1.0 : 2.0};
  };
}

PlanInput eight_layers(PipelineSchedule schedule, Size stages, Size microbatches, Size chunks) {
  PlanInput input = tutorial();
  input.model = mlp({.widths = std::vector<Size>(9, 16)});
  input.mesh = MeshShape({{"pipeline", stages}});
  input.schedule = schedule;
  input.microbatches = microbatches;
  input.virtual_stages = chunks;
  return input;
}

// Norms and activations have no products.
TEST(Simulate, RecomputedLayersTakeTheirForwardPassAgain) {
  PlanInput input = on("data=1", 1, Strategy::data);
  input.model = residual_mlp({5, 8, 16, 3, 2}, {.activation = Activation::gelu});
  const auto sum_of = [&](double Work::*what, Recomputed recomputed) {
    input.activation_checkpointing.what = recomputed;
    const CostOf cost = [what](const Work& work) { return Cost{work.*what}; };
    return simulated(input, cost).step_seconds;
  };
  const double flops = sum_of(&Work::flops, Recomputed::units),
               bytes = sum_of(&Work::bytes, Recomputed::units);
  EXPECT_EQ(sum_of(&Work::flops, Recomputed::cheap), flops);
  EXPECT_GT(sum_of(&Work::bytes, Recomputed::cheap), bytes);
  const double of_blocks = sum_of(&Work::flops, Recomputed::block);
  EXPECT_EQ(of_blocks, flops + make_plan(input).recomputed);
}

// A step takes (m + (p - 1) / v) (t_f + t_b), as in the timeline of the schedule.
TEST(Simulate, PipelinesTakeAsLongAsTheirSchedules) {
  for (const auto& [schedule, chunks] : {std::pair{PipelineSchedule::gpipe, Size{1}},
                                         {PipelineSchedule::one_f_one_b, Size{1}},
                                         {PipelineSchedule::interleaved, Size{2}}})
    for (const Size stages : {2, 4})
      for (const Size m : {4, 5, 8}) {
        SCOPED_TRACE(testing::Message() << name_of(schedule) << " " << stages << " " << m);
        const PlanInput input = eight_layers(schedule, stages, m, chunks);
        const double of_stage = 3 * 8 / static_cast<double>(stages);
        const SimulatedStep step = simulated(input, layers_and_messages(0));
        EXPECT_DOUBLE_EQ(step.step_seconds,
                         of_stage * (static_cast<double>(m) + static_cast<double>(stages - 1) /
                                                                  static_cast<double>(chunks)));
        EXPECT_DOUBLE_EQ(step.products.work, of_stage * static_cast<double>(m));
        EXPECT_NEAR(
            step.waiting() / step.step_seconds,
            simulate_pipeline(add_messages(order_passes(input.pipeline()), input.pipeline()),
                              input.pipeline())
                .bubble,
            1e-12);
      }
}

// The repeated part of a pipeline's list takes as long as all that it stands for: also with stages
// of different speed, slow messages, and microbatches or ranks of `data` with different samples.
TEST(Simulate, RepeatedPassesTakeAsLongAsListedOnes) {
  using enum PipelineSchedule;
  for (const auto& [schedule, chunks] :
       {std::pair{one_f_one_b, Size{1}}, {zero_bubble, Size{1}}, {interleaved, Size{2}}})
    for (const Size stages : {2, 4})
      for (const Size slow : {-1, 0, 1, 3})
        for (const double message : {0.0, 0.37, 20.0})
          for (const Size batch : {400, 1'201}) {
            SCOPED_TRACE(testing::Message() << name_of(schedule) << " " << stages << " " << slow
                                            << " " << message << " " << batch);
            PlanInput input = eight_layers(schedule, stages, 400, chunks);
            input.mesh = MeshShape({{"data", 1 + batch % 2}, {"pipeline", stages}});
            input.batch_size = input.samples = batch;
            if (slow >= 0) {
              std::vector<Size> widths(9, 16);
              widths[2 * slow + 1] = 40;
              input.model = mlp({.widths = widths});
            }
            const Plan plan = make_plan(input);
            ASSERT_GT(plan.stages.front().repeated.times, 50);
            const CostOf cost = [&, message = message](const Work& work) {
              if (work.is_message()) return Cost{message, 0, message / 3};
              return Cost{work.call ? 1 : work.bytes / 1000, work.bytes / 1e5};
            };
            const SimulatedStep few = simulate(plan, cost), all = simulate(written_out(plan), cost);
            const double tolerance = 1e-9 * all.step_seconds;
            EXPECT_NEAR(few.step_seconds, all.step_seconds, tolerance);
            for (std::size_t p = 0; p < all.parts().size(); ++p)
              EXPECT_NEAR(few.parts().at(p).second, all.parts()[p].second, tolerance)
                  << all.parts()[p].first;
          }
}

// One message travels between the forward passes of two stages, and one between the backward
// passes.
TEST(Simulate, StagesWaitForMessages) {
  const SimulatedStep step =
      simulated(eight_layers(PipelineSchedule::one_f_one_b, 2, 1, 1), layers_and_messages(0.5));
  EXPECT_DOUBLE_EQ(step.step_seconds, 8 + 16 + 2 * 0.5);
  ASSERT_EQ(step.calls.size(), 1U);
  EXPECT_EQ(step.calls[0].operation, Operation::receive);
  EXPECT_DOUBLE_EQ(step.calls[0].seconds, 2 * 0.5 / 2) << "the mean of two ranks";
}

}  // namespace
}  // namespace tessera
