// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/predict/wire_model.hpp>
#include <tessera/trace/waits.hpp>

#include "measure/case_run.hpp"

namespace tessera::bench {
namespace {

const MeshShape two({{"data", 2}});
const MeshShape four({{"data", 2}, {"model", 2}});

RankTrace trace(double compute, std::vector<TracedCall> calls) {
  RankTrace t{0, compute, 1, compute / 2, std::move(calls)};
  t.step = compute + 1 + 0.5;
  for (const TracedCall& call : t.calls) t.step += call.seconds;
  return t;
}

Breakdown break_down_on(const MeshShape& mesh, std::vector<RankTrace> ranks, Size steps) {
  find_waits(mesh, ranks);
  return break_down(ranks, steps);
}

TEST(Breakdown, ACallTakesTheTimeOfTheLastToArrive) {
  // Rank 0 computes for 4 s. Rank 1 arrives 2 s earlier and waits for it.
  const Breakdown b = break_down_on(two,
                                    {trace(4, {{"data", Operation::all_reduce, 1}}),
                                     trace(2, {{"data", Operation::all_reduce, 3}})},
                                    1);
  EXPECT_DOUBLE_EQ(b.compute.max_rank_seconds, 4);
  EXPECT_DOUBLE_EQ(b.compute.mean_rank_seconds, 3);
  EXPECT_DOUBLE_EQ(b.products.max_rank_seconds, 2);
  EXPECT_DOUBLE_EQ(b.products.mean_rank_seconds, 1.5);
  EXPECT_DOUBLE_EQ(b.communication.max_rank_seconds, 1);
  EXPECT_DOUBLE_EQ(b.communication.mean_rank_seconds, 1);
  EXPECT_DOUBLE_EQ(b.idle.max_rank_seconds, 2);
  EXPECT_DOUBLE_EQ(b.idle.mean_rank_seconds, 1);
  EXPECT_DOUBLE_EQ(b.optimizer.mean_rank_seconds, 1);
  EXPECT_DOUBLE_EQ(b.other.mean_rank_seconds, 0.5);
  EXPECT_DOUBLE_EQ(b.step_seconds, 6.5);
  ASSERT_EQ(b.calls.size(), 1u);
  EXPECT_DOUBLE_EQ(b.calls[0].seconds, 1);
  EXPECT_DOUBLE_EQ(b.calls[0].waiting, 1);
}

TEST(Breakdown, SharesAddUpToTheStep) {
  const Breakdown b = break_down_on(
      four,
      {trace(1, {{"model", Operation::all_reduce, 2}, {"data", Operation::all_gather, 1}}),
       trace(2, {{"model", Operation::all_reduce, 1}, {"data", Operation::all_gather, 4}}),
       trace(3, {{"model", Operation::all_reduce, 5}, {"data", Operation::all_gather, 2}}),
       trace(4, {{"model", Operation::all_reduce, 6}, {"data", Operation::all_gather, 3}})},
      2);
  EXPECT_NEAR(b.compute.mean_rank_seconds + b.communication.mean_rank_seconds +
                  b.idle.mean_rank_seconds + b.optimizer.mean_rank_seconds +
                  b.other.mean_rank_seconds,
              b.step_seconds, 1e-12);
  // Groups along model: {0, 1} and {2, 3}; along data: {0, 2} and {1, 3}. Over 2 steps and 4 ranks.
  ASSERT_EQ(b.calls.size(), 2u);
  EXPECT_EQ(b.calls[0].axis, "data");
  EXPECT_DOUBLE_EQ(b.calls[0].seconds, (1 + 1 + 3 + 3) / 8.0);
  EXPECT_DOUBLE_EQ(b.calls[1].seconds, (1 + 1 + 5 + 5) / 8.0);
  EXPECT_DOUBLE_EQ(b.calls[1].waiting, (1 + 0 + 0 + 1) / 8.0);
}

// Stage 0 receives after its message has arrived; stage 1 receives early and waits.
TEST(Breakdown, AMessageTakesAsLongAsTheShortest) {
  const Breakdown b = break_down_on(
      MeshShape({{"pipeline", 2}}),
      {trace(4, {{"pipeline", Operation::receive, 1}}),
       trace(2, {{"pipeline", Operation::receive, 4}, {"pipeline", Operation::receive, 2}})},
      1);
  EXPECT_DOUBLE_EQ(b.communication.mean_rank_seconds, 3 / 2.0);
  EXPECT_DOUBLE_EQ(b.idle.mean_rank_seconds, (3 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(b.idle.max_rank_seconds, 4);
}

// A stage that tests its messages during a pass computes, so it does not wait.
TEST(Breakdown, AStageThatComputesDoesNotWait) {
  RankTrace busy =
      trace(8, {{"pipeline", Operation::receive, 2}, {"pipeline", Operation::send, 1}});
  for (TracedCall& call : busy.calls) call.in_pass = true;
  busy.calls.push_back({"pipeline", Operation::receive, 4});
  const Breakdown b = break_down_on(MeshShape({{"pipeline", 2}}),
                                    {busy, trace(8, {{"pipeline", Operation::receive, 3}})}, 1);
  EXPECT_DOUBLE_EQ(b.communication.max_rank_seconds, 2 + 1 + 3);
  EXPECT_DOUBLE_EQ(b.idle.max_rank_seconds, 1);
}

TEST(Breakdown, UnequalNumbersOfCallsSplitNothing) {
  const Breakdown b = break_down_on(
      two,
      {trace(1, {{"data", Operation::all_reduce, 1}, {"data", Operation::all_reduce, 1}}),
       trace(1, {{"data", Operation::all_reduce, 3}})},
      1);
  EXPECT_DOUBLE_EQ(b.idle.max_rank_seconds, 0);
  EXPECT_DOUBLE_EQ(b.communication.max_rank_seconds, 3);
}

TEST(Breakdown, GroupsFollowTheNamesOfAxes) {
  EXPECT_EQ(axes_of_group(four, "data"), AxisSet{0});
  EXPECT_EQ(axes_of_group(four, "model"), AxisSet{1});
  EXPECT_EQ(axes_of_group(four, "data+model"), (AxisSet{0, 1}));
  EXPECT_EQ(axes_of_group(four, "world"), (AxisSet{0, 1}));
}

TEST(Breakdown, TracesPassBetweenRanks) {
  RankTrace sent = trace(2, {{"data+fsdp", Operation::reduce_scatter, 0.25, 3}});
  sent.regions = {{"tessera::loss", 1, 0.5}};
  const RankTrace got = nlohmann::json::parse(nlohmann::json(sent).dump());
  EXPECT_EQ(got.step, sent.step);
  ASSERT_EQ(got.calls.size(), 1u);
  EXPECT_EQ(got.calls[0].axis, "data+fsdp");
  EXPECT_EQ(got.calls[0].operation, Operation::reduce_scatter);
  EXPECT_EQ(got.calls[0].seconds, 0.25);
  EXPECT_EQ(got.calls[0].begin, 3);
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(got.regions[0].name, "tessera::loss");
}

TEST(WireModel, GivesFactorsAndRoundsOfARing) {
  EXPECT_DOUBLE_EQ(wire_factor(Operation::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(wire_factor(Operation::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(wire_factor(Operation::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(rounds(Operation::all_reduce, 4), 6);
  EXPECT_DOUBLE_EQ(rounds(Operation::reduce_scatter, 4), 3);
  EXPECT_DOUBLE_EQ(rounds(Operation::broadcast, 5), 3);
  EXPECT_DOUBLE_EQ(rounds(Operation::send, 2), 1);
}

}  // namespace
}  // namespace tessera::bench
