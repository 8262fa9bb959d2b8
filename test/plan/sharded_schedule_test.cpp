// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::schedule;
using plan_test::sharded;
using plan_test::tutorial;

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
}

TEST(ShardedSchedule, HybridReducesReplicasOnceBehindAllMicrobatches) {
  PlanInput input = bare(sharded(tutorial({{"data", 2}, {"fsdp", 2}}), Strategy::hybrid));
  input.prefetch = false;
  input.microbatches = 2;
  const auto pass = [](const std::string& m) {
    return "gather(1) forward(1o, " + m + ") gather(2) forward(2o, " + m + ") loss(" + m +
           ") backward(2o, " + m + ") reduce_scatter(2) gather(1) backward(1o, " + m +
           ") reduce_scatter(1) ";
  };
  EXPECT_EQ(schedule(input), pass("m0") + pass("m1") + "reduce(2) reduce(1) update");
}

TEST(ShardedSchedule, TensorParallelColumnRowColumn) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  input.model = plan_test::three_layers();
  EXPECT_EQ(schedule(input),
            "forward(1p) forward(1o) forward(2p) redistribute(2p, all_reduce) forward(2o) "
            "forward(3p) forward(3o) redistribute(3o, all_gather) loss "
            "redistribute(3o.gradient, slice) backward(3o) backward(3p) "
            "redistribute(2o.gradient, all_reduce) backward(2o) backward(2p) "
            "backward(1o) backward(1p) update");
  input.sequence_parallel = true;
  EXPECT_EQ(
      schedule(input),
      "forward(1p) forward(1o) forward(2p) redistribute(2p, reduce_scatter) forward(2o) "
      "redistribute(2o, all_gather) forward(3p) forward(3o) redistribute(3o, all_gather) loss "
      "redistribute(3o.gradient, slice) backward(3o) backward(3p) "
      "redistribute(2o.gradient, reduce_scatter) backward(2o) "
      "redistribute(2p.gradient, all_gather) backward(2p) backward(1o) backward(1p) "
      "reduce_rows(2) update");
}

}  // namespace
}  // namespace tessera
