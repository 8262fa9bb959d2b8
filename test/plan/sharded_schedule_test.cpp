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
            "gather(unit 1) start_gather(unit 2) forward(1) finish_gather(unit 2) forward(2) loss "
            "start_gather(unit 1) backward(2) reduce_scatter(unit 2) "
            "finish_gather(unit 1) backward(1) reduce_scatter(unit 1) update");
}

TEST(ShardedSchedule, FsdpWithoutPrefetchGathersWhatItNeeds) {
  PlanInput input = fsdp();
  input.prefetch = false;
  EXPECT_EQ(schedule(input),
            "gather(unit 1) forward(1) gather(unit 2) forward(2) loss "
            "backward(2) reduce_scatter(unit 2) gather(unit 1) backward(1) reduce_scatter(unit 1) "
            "update");
  input.keep_last_unit = false;
  EXPECT_EQ(schedule(input),
            "gather(unit 1) forward(1) gather(unit 2) forward(2) loss "
            "gather(unit 2) backward(2) reduce_scatter(unit 2) "
            "gather(unit 1) backward(1) reduce_scatter(unit 1) update");
}

TEST(ShardedSchedule, FsdpThatKeepsUnitsGathersEachOnceAMicrobatch) {
  PlanInput input = fsdp();
  input.reshard_after_forward = false;
  EXPECT_EQ(schedule(input),
            "gather(unit 1) start_gather(unit 2) forward(1) finish_gather(unit 2) forward(2) loss "
            "backward(2) reduce_scatter(unit 2) backward(1) reduce_scatter(unit 1) update");
}

TEST(ShardedSchedule, FsdpOfOneLayer) {
  PlanInput input = fsdp();
  input.model = mlp({.widths = {4, 1}});
  EXPECT_EQ(schedule(input),
            "gather(unit 1) forward(1) loss backward(1) reduce_scatter(unit 1) update");
}

TEST(ShardedSchedule, Zero1ReducesInTheLastMicrobatchAndZero2InEvery) {
  PlanInput input = sharded(tutorial({{"data", 4}}), Strategy::zero1);
  input.microbatches = 2;
  input.check_finite = input.clips_by_norm = true;
  const std::string first = "forward(1, m0) forward(2, m0) loss(m0) ";
  const std::string last =
      "forward(1, m1) forward(2, m1) loss(m1) backward(2, m1) reduce_scatter(unit 2) "
      "backward(1, m1) reduce_scatter(unit 1) check_finite clip update "
      "gather(unit 1) gather(unit 2)";
  EXPECT_EQ(schedule(input), first + "backward(2, m0) backward(1, m0) " + last);
  input.strategy = Strategy::zero2;
  EXPECT_EQ(schedule(input), first +
                                 "backward(2, m0) reduce_scatter(unit 2) "
                                 "backward(1, m0) reduce_scatter(unit 1) " +
                                 last);
}

TEST(ShardedSchedule, HybridWithOverlapReducesReplicasBehindEachScatter) {
  PlanInput input = sharded(tutorial({{"data", 2}, {"fsdp", 2}}), Strategy::hybrid);
  input.overlap = true;
  EXPECT_EQ(schedule(input),
            "gather(unit 1) start_gather(unit 2) forward(1) finish_gather(unit 2) forward(2) loss "
            "start_gather(unit 1) backward(2) start_reduce_scatter(unit 2) "
            "finish_gather(unit 1) backward(1) "
            "finish_reduce_scatter(unit 2) start_reduce(bucket 0) start_reduce_scatter(unit 1) "
            "finish_reduce_scatter(unit 1) start_reduce(bucket 1) "
            "finish_reduce(bucket 0) finish_reduce(bucket 1) update");
}

TEST(ShardedSchedule, HybridReducesReplicasOnceBehindAllMicrobatches) {
  PlanInput input = sharded(tutorial({{"data", 2}, {"fsdp", 2}}), Strategy::hybrid);
  input.prefetch = false;
  input.microbatches = 2;
  const auto pass = [](const std::string& m) {
    return "gather(unit 1) forward(1, " + m + ") gather(unit 2) forward(2, " + m + ") loss(" + m +
           ") backward(2, " + m + ") reduce_scatter(unit 2) gather(unit 1) backward(1, " + m +
           ") reduce_scatter(unit 1) ";
  };
  EXPECT_EQ(schedule(input), pass("m0") + pass("m1") + "reduce(bucket 0) reduce(bucket 1) update");
}

TEST(ShardedSchedule, TensorParallelColumnRowColumn) {
  PlanInput input = sharded(tutorial({{"model", 2}}), Strategy::tensor);
  input.model = plan_test::three_layers();
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) redistribute_output(2) activate(2) forward(3) "
            "redistribute_input(4) loss redistribute_gradient(4) "
            "backward(3) redistribute_gradient(3) backward(2) backward(1) update");
  input.sequence_parallel = true;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) redistribute_output(2) activate(2) "
            "redistribute_input(3) forward(3) redistribute_input(4) loss redistribute_gradient(4) "
            "redistribute_input(3) backward(3) redistribute_gradient(3) "
            "activate_backward(2) gather_gradient(2) backward(2) backward(1) update");
}

}  // namespace
}  // namespace tessera
