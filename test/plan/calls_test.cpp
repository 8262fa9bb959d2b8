// SPDX-License-Identifier: Apache-2.0
// The calls and payload bytes of one step, compared with numbers computed by hand.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/plan/replica_check.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

using plan_test::calls_of;
using plan_test::sharded;
using plan_test::tutorial;

/// Five layers of prime widths with 44, 156, 98, 40 and 12 parameters: 350 together, 1400 bytes.
PlanInput primes(Strategy strategy, std::vector<Axis> axes, Size microbatches = 1) {
  PlanInput input = sharded(tutorial(std::move(axes)), strategy);
  input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});
  input.batch_size = input.samples = 12;
  input.microbatches = microbatches;
  return input;
}

std::string n(Size number) { return std::to_string(number); }

TEST(Calls, TutorialTensorParallelHasLocalParameters) {
  for (const auto& [ranks, parameters] : {std::pair<Size, Size>{2, 193}, {4, 97}, {8, 49}}) {
    const PlanInput input = sharded(tutorial({{"model", ranks}}), Strategy::tensor);
    for (Size rank = 0; rank < ranks; ++rank) {
      Size local = 0;
      for (const LayerSpec& layer : make_plan(input).local_layers(rank))
        local += layer.num_parameters();
      EXPECT_EQ(local, parameters);
    }
    EXPECT_EQ(calls_of(input), "model all_reduce 1 x, " + n(32 * 1 * 4) + " B");
  }
}

// A rank has microbatches of up to 3, 3, 2, 2 and 2 samples. The plan counts the calls of equal
// microbatches together; the test counts each.
TEST(Calls, AreTheSumOverMicrobatches) {
  for (const Strategy strategy : {Strategy::data, Strategy::zero2, Strategy::fsdp})
    for (const std::vector<Axis>& axes : {std::vector<Axis>{{"data", 3}, {"model", 2}},
                                          {{"fsdp", 4}},
                                          {{"data", 2}, {"fsdp", 2}}}) {
      PlanInput input = primes(strategy, axes, 5);
      input.batch_size = input.samples = 49;
      const Plan plan = make_plan(input);
      for (Size rank = 0; rank < input.mesh.num_ranks(); ++rank) {
        const StagePlan& stage = plan.stages.front();
        EXPECT_EQ(stage.repeated.times, 4);
        const CallSizes sizes = call_sizes(plan, rank);
        std::map<std::pair<std::string, Operation>, std::pair<Size, Size>> made, planned;
        for (const auto& [action, microbatch] : plan_test::every_action(stage)) {
          const auto call = call_of(action, microbatch, plan, sizes);
          if (!call || !call->is_issued) continue;
          const std::string axis = input.mesh.group_name(call->ranks);
          if (axis.empty()) continue;
          auto& [calls, bytes] = made[{axis, call->operation}];
          ++calls, bytes += call->bytes;
        }
        for (const CollectivePlan& row : plan.collectives(rank)) {
          if (row.cadence != Cadence::step) continue;
          auto& [calls, bytes] = planned[{row.axis, row.operation}];
          calls += row.calls, bytes += row.payload_bytes;
        }
        EXPECT_EQ(made, planned) << input.mesh.to_string() << ", rank " << rank;
      }
    }
}

// The tables of src/tessera/plan/README.md, "Strategies and their calls". There are U = 5 units.
// `data` has B = 1 bucket, `zero1` and `zero2` have B = 5. L_r = 2 layers are row-parallel, L_c = 2
// are column-parallel with an input that needs a gradient. The last layer is column-parallel.
TEST(Calls, TableOfCallsPerStep) {
  for (const Size m : {1, 3}) {
    SCOPED_TRACE(testing::Message() << m << " microbatches");
    const auto calls = [&](Strategy strategy, std::vector<Axis> axes) {
      PlanInput input = primes(strategy, std::move(axes), m);
      if (strategy == Strategy::zero1 || strategy == Strategy::zero2) input.bucket_bytes = 1;
      return calls_of(input);
    };
    EXPECT_EQ(calls(Strategy::data, {{"data", 4}}), "data all_reduce 1 x, 1400 B");
    EXPECT_EQ(calls(Strategy::zero1, {{"data", 4}}),
              "data reduce_scatter 5 x, 1400 B; data all_gather 5 x, 1400 B");
    EXPECT_EQ(calls(Strategy::zero2, {{"data", 2}, {"fsdp", 2}}),
              "data+fsdp reduce_scatter " + n(5 * m) + " x, " + n(1400 * m) +
                  " B; data+fsdp all_gather 5 x, 1400 B");
    const std::string fsdp = "fsdp reduce_scatter " + n(5 * m) + " x, " + n(1400 * m) +
                             " B; fsdp all_gather " + n(9 * m) + " x, " + n((2800 - 48) * m) + " B";
    EXPECT_EQ(calls(Strategy::fsdp, {{"fsdp", 4}}), fsdp);
    EXPECT_EQ(calls(Strategy::hybrid, {{"data", 2}, {"fsdp", 2}}),
              "data all_reduce 5 x, 700 B; " + fsdp);
    EXPECT_EQ(calls(Strategy::hybrid, {{"data", 3}, {"fsdp", 1}}), "data all_reduce 1 x, 1400 B");
    EXPECT_EQ(calls(Strategy::hybrid, {{"data", 1}, {"fsdp", 4}}), fsdp);
    // The microbatches have 12 rows together. Sums of 13 and 5 columns forward, 13 and 5 backward.
    EXPECT_EQ(calls(Strategy::tensor, {{"model", 2}}),
              "model all_reduce " + n(4 * m) + " x, " + n((13 + 5 + 13 + 5) * 12 * 4) +
                  " B; model all_gather " + n(m) + " x, " + n(2 * 12 * 4) + " B");
    // 6 rows. Buckets hold local units of 24, 91, 56, 25 and 6 elements, 202 together, on both
    // ranks.
    const std::string model = "model all_reduce " + n(4 * m) + " x, " + n(36 * 6 * 4) +
                              " B; model all_gather " + n(m) + " x, " + n(2 * 6 * 4) + " B";
    EXPECT_EQ(calls(Strategy::data, {{"data", 2}, {"model", 2}}),
              "data all_reduce 1 x, 808 B; " + model);
    EXPECT_EQ(calls(Strategy::fsdp, {{"fsdp", 2}, {"model", 2}}),
              "fsdp reduce_scatter " + n(5 * m) + " x, " + n(808 * m) + " B; fsdp all_gather " +
                  n(9 * m) + " x, " + n((2 * 808 - 24) * m) + " B; " + model);
  }
}

// Each reduces one scalar in double: the norm over the axes that split parameters, the flag over
// all axes.
TEST(Calls, ClippingAndFiniteFlagSendOneScalarEach) {
  const auto extra = [](Strategy strategy, std::vector<Axis> axes, bool norm, bool finite) {
    PlanInput input = primes(strategy, std::move(axes));
    const Plan without = make_plan(input);
    input.clips_by_norm = norm;
    input.clips_by_value = true;
    input.check_finite = finite;
    const Plan with = make_plan(input);
    std::vector<CollectivePlan> added;
    const std::vector<CollectivePlan> before = without.collectives(0);
    for (const CollectivePlan& call : with.collectives(0))
      if (std::find(before.begin(), before.end(), call) == before.end()) added.push_back(call);
    std::string text;
    for (const CollectivePlan& call : added)
      text += call.axis + " " + std::string(name_of(call.operation)) + " " + n(call.calls) + " " +
              n(call.payload_bytes) + "; ";
    return text;
  };
  EXPECT_EQ(extra(Strategy::data, {{"data", 4}}, false, false), "");
  EXPECT_EQ(extra(Strategy::data, {{"data", 4}}, true, false), "");
  for (const Strategy strategy : {Strategy::zero1, Strategy::zero2, Strategy::fsdp})
    EXPECT_EQ(extra(strategy, {{"data", 2}, {"fsdp", 2}}, true, false),
              "data+fsdp all_reduce 1 8; ");
  EXPECT_EQ(extra(Strategy::hybrid, {{"data", 2}, {"fsdp", 2}}, true, false),
            "fsdp all_reduce 1 8; ");
  EXPECT_EQ(extra(Strategy::data, {{"data", 2}, {"model", 2}}, true, true),
            "data+model all_reduce 1 8; model all_reduce 1 8; ");
  EXPECT_EQ(extra(Strategy::fsdp, {{"data", 2}, {"fsdp", 2}, {"model", 2}}, true, true),
            "data+fsdp+model all_reduce 1 8; data+fsdp+model all_reduce 1 8; ");
  EXPECT_EQ(extra(Strategy::hybrid, {{"data", 2}, {"fsdp", 2}, {"model", 2}}, true, true),
            "data+fsdp+model all_reduce 1 8; fsdp+model all_reduce 1 8; ");
}

// Ranks along `data` update halves of their shares, and check that these are equal afterwards.
TEST(Calls, OfMomentsThatAreShardedWider) {
  for (const Size m : {1, 3}) {
    PlanInput input = primes(Strategy::hybrid, {{"data", 2}, {"fsdp", 2}}, m);
    input.shard_moments_over = {"data", "fsdp"};
    const std::string data = "data reduce_scatter 5 x, 700 B; data all_gather 5 x, 700 B; ",
                      norm = "data+fsdp all_reduce 1 x, 8 B; ",
                      fsdp = "fsdp reduce_scatter " + n(5 * m) + " x, " + n(1400 * m) +
                             " B; fsdp all_gather " + n(9 * m) + " x, " + n((2800 - 48) * m) + " B";
    EXPECT_EQ(calls_of(input), data + fsdp);
    input.clips_by_norm = true;
    EXPECT_EQ(calls_of(input), data + norm + fsdp);
    const std::vector<CheckCall> check = plan_replica_check(make_plan(input), 0);
    ASSERT_EQ(check.size(), 1u);
    EXPECT_EQ(input.mesh.group_name(check[0].ranks), "data");
    EXPECT_EQ(check[0].checksums, (Range{0, 10})) << "of parameters";
  }
}

/// Returns the calls of a check, such as "data+fsdp 0+4; ...": axes, first checksum, number of
/// checksums.
std::string check_calls(Strategy strategy, std::vector<Axis> axes, Size moments) {
  PlanInput input = sharded(tutorial(std::move(axes)), strategy);
  input.moments = moments;
  std::string text;
  for (const CheckCall& call : plan_replica_check(make_plan(input), 0)) {
    text += input.mesh.group_name(call.ranks) + " " + n(call.checksums.begin) + "+" +
            n(call.checksums.count) + "; ";
    EXPECT_EQ(call.payload_bytes(), call.checksums.count * 16);
  }
  return text;
}

// A model of four parameters with eight moments.
TEST(Calls, ReplicaChecksCompareCopies) {
  EXPECT_EQ(check_calls(Strategy::data, {{"data", 1}}, 2), "");
  EXPECT_EQ(check_calls(Strategy::data, {{"data", 2}, {"fsdp", 2}}, 2), "data+fsdp 0+12; ");
  EXPECT_EQ(check_calls(Strategy::zero1, {{"data", 4}}, 2), "data 0+4; ");
  EXPECT_EQ(check_calls(Strategy::zero2, {{"data", 4}}, 0), "data 0+4; ");
  EXPECT_EQ(check_calls(Strategy::fsdp, {{"data", 2}, {"fsdp", 2}}, 2), "");
  EXPECT_EQ(check_calls(Strategy::hybrid, {{"data", 2}, {"fsdp", 2}}, 1), "data 0+8; ");
  EXPECT_EQ(check_calls(Strategy::hybrid, {{"data", 2}, {"fsdp", 1}}, 1), "data 0+8; ");
  EXPECT_EQ(check_calls(Strategy::tensor, {{"model", 2}}, 1), "model 0+8; ");
  EXPECT_EQ(check_calls(Strategy::fsdp, {{"fsdp", 2}, {"model", 2}}, 1), "model 0+8; ");
  // Buckets have equal sizes on 3 ranks, which do not divide 64 columns evenly.
  EXPECT_EQ(check_calls(Strategy::data, {{"data", 3}, {"model", 3}}, 0), "data 0+4; model 0+4; ");
}

}  // namespace
}  // namespace tessera
