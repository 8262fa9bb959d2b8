// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/mesh/placement.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;
using plan_test::tutorial_on;

TEST(Plan, TutorialHasTheLiteralSizes) {
  const Plan plan = make_plan(tutorial());
  EXPECT_EQ(plan.input.model.num_parameters(), 385);
  EXPECT_EQ(plan.stages.front().parameters.units[0].place.count, 320);
  EXPECT_EQ(plan.stages.front().parameters.units[1].place.count, 65);
  EXPECT_EQ(plan.flops.forward, 20480);
  EXPECT_EQ(plan.flops.total(), 45056);
  EXPECT_EQ(plan.steps_per_epoch(), 8);
}

TEST(Plan, PayloadIsTheFullBufferOnAnyNumberOfRanks) {
  for (Size ranks : {2, 3, 4, 8, 100}) {
    for (Size cap : {1, 300, 1 << 20}) {
      PlanInput input = tutorial_on(ranks);
      input.bucket_bytes = cap;
      const std::vector<CollectivePlan> list = make_plan(input).collectives(0);
      ASSERT_EQ(list.size(), 2u);
      EXPECT_EQ(list[0].axis, "data");
      EXPECT_EQ(list[0].operation, Operation::all_reduce);
      EXPECT_EQ(list[0].cadence, Cadence::step);
      EXPECT_EQ(list[0].calls, cap < 1540 ? 2 : 1);
      EXPECT_EQ(list[0].payload_bytes, 1540);
      EXPECT_EQ(list[1].cadence, Cadence::epoch);
      EXPECT_EQ(list[1].calls, 1);
      EXPECT_EQ(list[1].payload_bytes, 8 * 8);
    }
  }
}

TEST(Plan, OnlyDataAxesSplitTheBatch) {
  const Plan plan = make_plan(tutorial({{"data", 3}, {"model", 2}}));
  for (Size rank = 0; rank < 6; ++rank)
    EXPECT_EQ(plan.rows(rank), balanced_split(32, 3, rank / 2)) << rank;
  std::vector<std::string> axes;
  for (const CollectivePlan& c : plan.collectives(0)) axes.push_back(c.axis + ": " + c.what);
  EXPECT_EQ(axes,
            (std::vector<std::string>{"model: activations", "data: gradients", "data: loss sums"}));
}

TEST(Plan, TrafficOfARunAddsStepsAndEpochs) {
  PlanInput input = tutorial_on(4);
  input.microbatches = 3;
  input.bucket_bytes = 300;
  const Plan plan = make_plan(input);
  // 20 epochs of 8 steps with two buckets, and 8 x 3 loss sums in double after each epoch.
  const std::vector<LedgerRow> rows = planned_traffic({{&plan, 160, 20}}, 0);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0],
            (LedgerRow{"data", Operation::all_reduce, 160 * 2 + 20, 160 * 1540 + 20 * 8 * 3 * 8}));
  const Plan alone = make_plan(tutorial_on(1));
  EXPECT_TRUE(planned_traffic({{&alone, 160, 20}}, 0).empty());
}

/// Batches, ranks and microbatches that divide each other and that do not.
void for_splits(const std::function<void(const Plan&)>& check) {
  for (Size ranks : {1, 2, 3, 5, 8}) {
    for (Size batch : {1, 3, 7, 8, 31, 32}) {
      for (Size microbatches : {1, 2, 3, 5}) {
        SCOPED_TRACE(testing::Message() << "batch " << batch << " on " << ranks << " ranks, "
                                        << microbatches << " microbatches");
        PlanInput input = tutorial_on(ranks);
        input.global_batch = batch;
        input.samples = 3 * batch + batch / 2;
        input.microbatches = microbatches;
        check(make_plan(input));
      }
    }
  }
}

TEST(PlanRows, CoverTheBatchOnceAndDifferByOneAtMost) {
  for_splits([](const Plan& plan) {
    Size next = 0;
    const Size ranks = plan.input.mesh.num_ranks();
    for (Size rank = 0; rank < ranks; ++rank) {
      const Range rows = plan.rows(rank);
      EXPECT_EQ(rows.begin, next);
      EXPECT_LE(plan.rows(0).count - rows.count, 1);
      EXPECT_GE(plan.rows(0).count, rows.count);
      next = rows.end();
    }
    EXPECT_EQ(next, plan.input.global_batch);
  });
}

TEST(PlanRows, MicrobatchesCoverTheRanksRowsOnce) {
  for_splits([](const Plan& plan) {
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) {
      Size next = 0;
      for (Size m = 0; m < plan.input.microbatches; ++m) {
        const Range rows = plan.microbatch_rows(rank, m);
        EXPECT_EQ(rows.begin, next);
        EXPECT_LE(rows.count, plan.microbatch_rows(rank, 0).count);
        next = rows.end();
      }
      EXPECT_EQ(next, plan.rows(rank).count);
    }
  });
}

TEST(PlanRows, EpochSeesEverySampleOnce) {
  for_splits([](const Plan& plan) {
    Size seen = 0;
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) seen += plan.data_rows(rank);
    EXPECT_EQ(seen, plan.input.samples);
    EXPECT_EQ(plan.steps_per_epoch(), plan.input.global_batch > 1 ? 4 : 3);
  });
}

TEST(PlanRows, ShapesOfTensorsAreThoseOfTheFirstMicrobatch) {
  for_splits([](const Plan& plan) {
    for (const Slot& tensor : plan.stages.front().slots) {
      if (tensor.role != TensorRole::batch && !tensor.in_frame()) continue;
      for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank)
        EXPECT_EQ(local_block(tensor.shape, tensor.placements, plan.input.mesh, rank).extent[0],
                  plan.microbatch_rows(rank, 0).count)
            << tensor.path << " on rank " << rank;
    }
  });
}

TEST(PlanRows, ThreeRowsOnEightRanks) {
  PlanInput input = tutorial_on(8);
  input.global_batch = 3;
  input.samples = 8;  // batches of 3, 3 and 2
  const Plan plan = make_plan(input);
  const std::vector<Size> counts = {1, 1, 1, 0, 0, 0, 0, 0}, data = {3, 3, 2, 0, 0, 0, 0, 0};
  for (Size rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(plan.rows(rank).count, counts[rank]);
    EXPECT_EQ(plan.data_rows(rank), data[rank]);
  }
  EXPECT_EQ(plan.steps_per_epoch(), 3);
}

TEST(PlanTensors, ParametersReplicatedWithTheirGradientsAndMoments) {
  const Plan plan = make_plan(tutorial());
  std::vector<std::string> paths;
  for (const Slot& tensor : plan.stages.front().slots) {
    paths.push_back(tensor.path);
    const bool by_rows = tensor.role == TensorRole::batch || tensor.in_frame();
    EXPECT_EQ(tensor.placements,
              Placements{by_rows ? Placement::shard(0) : Placement::replicate()});
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"batch/x",
                                             "batch/y",
                                             "layer1/product",
                                             "layer1/output",
                                             "layer2/product",
                                             "layer2/output",
                                             "layer2/output.gradient",
                                             "layer1/output.gradient",
                                             "layer1/product.gradient",
                                             "layer1/kernel",
                                             "layer1/kernel.gradient",
                                             "layer1/kernel.moment1",
                                             "layer1/kernel.moment2",
                                             "layer1/bias",
                                             "layer1/bias.gradient",
                                             "layer1/bias.moment1",
                                             "layer1/bias.moment2",
                                             "layer2/kernel",
                                             "layer2/kernel.gradient",
                                             "layer2/kernel.moment1",
                                             "layer2/kernel.moment2",
                                             "layer2/bias",
                                             "layer2/bias.gradient",
                                             "layer2/bias.moment1",
                                             "layer2/bias.moment2"}));
}

TEST(Plan, RefusesWhatNoStepCanServe) {
  const auto refuse = [](const std::function<void(PlanInput&)>& change,
                         const std::string& message) {
    PlanInput input = tutorial();
    change(input);
    try {
      make_plan(input);
      ADD_FAILURE() << "no error; expected " << message;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), message);
    }
  };
  refuse([](PlanInput& i) { i.global_batch = 0; }, "training.batch_size = 0: must be positive");
  refuse([](PlanInput& i) { i.microbatches = 0; }, "training.microbatches = 0: must be positive");
  refuse([](PlanInput& i) { i.samples = -1; }, "data.samples = -1: must be positive");
  refuse([](PlanInput& i) { i.bucket_bytes = 0; },
         "distributed.bucket_bytes = 0: must be positive");
  refuse([](PlanInput& i) { i.model.layers.clear(); },
         "model.widths = []: must give at least one layer");
}

}  // namespace
}  // namespace tessera
