// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::schedule;
using plan_test::tutorial;

TEST(Schedule, OneMicrobatch) {
  PlanInput input = tutorial();
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) loss backward(2) backward(1) reduce(bucket 0) update");
  input.bucket_bytes = 300;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) loss backward(2) backward(1) "
            "reduce(bucket 0) reduce(bucket 1) update");
  input.clips_by_norm = true;
  input.bucket_bytes = 1 << 20;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) loss backward(2) backward(1) reduce(bucket 0) clip update");
}

TEST(Schedule, ActionsNameLayerBucketAndMicrobatch) {
  const std::vector<Action> actions = {{ActionKind::forward, 0, 0},  {ActionKind::forward, 1, 0},
                                       {ActionKind::loss, 0, 0},     {ActionKind::backward, 1, 0},
                                       {ActionKind::backward, 0, 0}, {ActionKind::reduce, 0, 0},
                                       {ActionKind::update, 0, 0}};
  EXPECT_EQ(make_plan(tutorial()).actions, actions);
}

TEST(Schedule, OverlapStartsABucketBehindTheBackwardOfItsFirstLayer) {
  PlanInput input = tutorial();
  input.overlap = true;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) loss backward(2) backward(1) start_reduce(bucket 0) "
            "finish_reduce(bucket 0) update");
  input.bucket_bytes = 1;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) loss backward(2) start_reduce(bucket 0) "
            "backward(1) start_reduce(bucket 1) finish_reduce(bucket 0) finish_reduce(bucket 1) "
            "update");

  input.model = plan_test::three_layers();
  input.bucket_bytes = 84 + 48;
  EXPECT_EQ(schedule(input),
            "forward(1) forward(2) forward(3) loss backward(3) backward(2) start_reduce(bucket 0) "
            "backward(1) start_reduce(bucket 1) finish_reduce(bucket 0) finish_reduce(bucket 1) "
            "update");
}

TEST(Schedule, ThreeMicrobatchesReduceOnceInTheLast) {
  PlanInput input = tutorial();
  input.microbatches = 3;
  const std::string passes =
      "forward(1, m0) forward(2, m0) loss(m0) backward(2, m0) backward(1, m0) "
      "forward(1, m1) forward(2, m1) loss(m1) backward(2, m1) backward(1, m1) "
      "forward(1, m2) forward(2, m2) loss(m2) backward(2, m2) ";
  EXPECT_EQ(schedule(input), passes + "backward(1, m2) reduce(bucket 0) update");
  input.overlap = true;
  input.bucket_bytes = 1;
  input.clips_by_norm = true;
  EXPECT_EQ(schedule(input), passes +
                                 "start_reduce(bucket 0) backward(1, m2) start_reduce(bucket 1) "
                                 "finish_reduce(bucket 0) finish_reduce(bucket 1) clip update");
}

TEST(Schedule, AxesOfSizeOneReduceNothing) {
  const std::vector<std::vector<Axis>> meshes = {
      {{"data", 1}}, {{"data", 1}, {"model", 1}}, {{"fsdp", 1}, {"data", 1}}};
  for (const std::vector<Axis>& axes : meshes) {
    for (bool overlap : {false, true}) {
      PlanInput input = tutorial(axes);
      input.overlap = overlap;
      EXPECT_EQ(schedule(input), "forward(1) forward(2) loss backward(2) backward(1) update");
      EXPECT_TRUE(make_plan(input).collectives(0).empty());
    }
  }
}

}  // namespace
}  // namespace tessera
