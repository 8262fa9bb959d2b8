// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/plan/grains.hpp>
#include <tessera/tensor/placement.hpp>

#include "expect_error.hpp"
#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::tutorial;

TEST(Plan, TutorialHasTheLiteralSizes) {
  const Plan plan = make_plan(tutorial());
  EXPECT_EQ(plan.input.model.num_parameters(), 385);
  EXPECT_EQ(plan.stages.front().parameters.units[0].place.count, 320);
  EXPECT_EQ(plan.stages.front().parameters.units[1].place.count, 65);
  EXPECT_EQ(plan.flops.forward, 20480);
  EXPECT_EQ(plan.flops.total(), 45056);
  EXPECT_EQ(plan.steps_per_epoch(), 8);
}

// Batches, ranks and microbatches that divide each other evenly and that do not.
TEST(Plan, BatchesMicrobatchesAndEpochsAreSplitOnce) {
  for (const std::vector<Axis>& axes : std::vector<std::vector<Axis>>{
           {{"data", 1}}, {{"data", 2}}, {{"data", 3}}, {{"data", 8}}, {{"data", 2}, {"fsdp", 3}}})
    for (const Size batch : {1, 3, 7, 8, 31, 32})
      for (const Size microbatches : {1, 2, 3, 5}) {
        PlanInput input = tutorial(axes);
        input.batch_size = batch;
        input.samples = 3 * batch + batch / 2;
        input.microbatches = microbatches;
        SCOPED_TRACE(testing::Message() << "batch " << batch << " on " << input.mesh.to_string()
                                        << ", " << microbatches << " microbatches");
        const Plan plan = make_plan(input);
        const Size ranks = input.mesh.num_ranks();
        Size next_row = 0, samples = 0;
        for (Size rank = 0; rank < ranks; ++rank) {
          const Range rows = plan.batch_samples(rank);
          EXPECT_EQ(rows.begin, next_row);
          next_row = rows.end();
          EXPECT_LE(plan.batch_samples(0).count - rows.count, 1);
          EXPECT_GE(plan.batch_samples(0).count, rows.count);
          samples += plan.data_samples(rank);
          const BatchSamples of_rank(input, batch, rank);
          const AxisSet axes = batch_axes(input.mesh);
          Size in_all = 0;
          for (Size m = 0; m < microbatches; ++m) {
            EXPECT_LE(of_rank.in(m, axes), of_rank.in(0, axes));
            in_all += of_rank.in(m, axes);
          }
          EXPECT_EQ(in_all, rows.count);
          for (const Slot& tensor : plan.stages.front().slots) {
            if (tensor.role != TensorRole::batch && !tensor.in_frame()) continue;
            EXPECT_EQ(piece(tensor.shape, tensor.cuts, input.mesh, rank).extent[0],
                      of_rank.in(0, axes))
                << tensor.path << " on rank " << rank;
          }
        }
        EXPECT_EQ(next_row, batch);
        EXPECT_EQ(samples, input.samples);
        EXPECT_EQ(plan.steps_per_epoch(), batch > 1 ? 4 : 3);
      }
}

TEST(Plan, RejectsInvalidInput) {
  const auto rejection = [](const std::function<void(PlanInput&)>& change) {
    PlanInput input = tutorial();
    change(input);
    return test::error_of([&] { make_plan(input); });
  };
  EXPECT_EQ(rejection([](PlanInput& i) { i.batch_size = 0; }),
            "training.batch_size = 0: must be positive");
  EXPECT_EQ(rejection([](PlanInput& i) { i.microbatches = 0; }),
            "training.microbatches = 0: must be positive");
  EXPECT_EQ(rejection([](PlanInput& i) { i.samples = -1; }), "data.samples = -1: must be positive");
  EXPECT_EQ(rejection([](PlanInput& i) { i.bucket_bytes = 0; }),
            "distributed.bucket_bytes = 0: must be positive");
  EXPECT_EQ(rejection([](PlanInput& i) { i.model.layers.clear(); }),
            "model.widths = []: must give at least one layer");
}

}  // namespace
}  // namespace tessera
