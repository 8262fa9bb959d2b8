// SPDX-License-Identifier: Apache-2.0
#include "run/reference_plan.hpp"

#include <gtest/gtest.h>

#include <tessera/plan/layout/rank_groups.hpp>

#include "expect_error.hpp"

namespace tessera::bench {
namespace {

Config sharded_config(Size batch) {
  Config config;
  config.model.mlp.widths = {8, 64, 1};
  config.training.batch_size = batch;
  config.data.samples = 2 * batch;
  config.training.distributed.strategy = Strategy::zero2;
  config.training.distributed.mesh_shape = {4};
  config.training.distributed.overlap = true;
  config.training.microbatches = 4;
  return config;
}

Size memory_of(const ReferencePlan& run) {
  return largest_memory(plan_of(run.config, run.ranks)).memory.total();
}

// The reference does not depend on how ranks share the training.
TEST(ReferencePlan, HasOneNameForAllMeshes) {
  Config config = sharded_config(32);
  const std::string name = reference_name(config);
  config.training.distributed = DistributedConfig{};
  config.training.microbatches = 1;
  EXPECT_EQ(reference_name(config), name);
  config.model.mlp.seed += 1;
  EXPECT_NE(reference_name(config), name);
}

TEST(ReferencePlan, IsOneRankIfThatFits) {
  VerifyRules rules;
  rules.ranks = 8;
  const ReferencePlan plan = plan_reference(sharded_config(32), rules, {}, 1024);
  EXPECT_EQ(plan.ranks, 1);
  EXPECT_EQ(plan.config.training.microbatches, 1);
  EXPECT_EQ(plan.config.training.distributed.strategy, Strategy::data);
}

TEST(ReferencePlan, FitsIntoMemoryByMicrobatchesThenByTheSmallestMesh) {
  const Config config = sharded_config(64);
  Limits limits;
  const Size whole = memory_of(plan_reference(config, {}, limits, 8));
  limits.memory_bytes = whole - 1;
  const ReferencePlan split = plan_reference(config, {}, limits, 8);
  EXPECT_EQ(split.ranks, 1);
  EXPECT_GT(split.config.training.microbatches, 1);
  EXPECT_LE(memory_of(split), whole - 1);

  // Not even a microbatch of one sample fits on one rank.
  Config smallest = split.config;
  smallest.training.microbatches = 64;
  limits.memory_bytes = memory_of({"", smallest, 1}) - 1;
  VerifyRules rules;
  EXPECT_NE(
      test::error_of([&] { plan_reference(config, rules, limits, 8); }, ExitCode::out_of_memory)
          .find("does not fit into"),
      std::string::npos)
      << "verify.ranks is 1";
  rules.ranks = 6;
  const ReferencePlan sharded = plan_reference(config, rules, limits, 8);
  EXPECT_EQ(sharded.config.training.distributed.strategy, Strategy::fsdp);
  EXPECT_EQ(sharded.ranks, 2);
  EXPECT_LE(memory_of(sharded), *limits.memory_bytes);
  EXPECT_EQ(sharded.name, split.name);
  // The largest mesh has all the ranks that verify.ranks and the launch allow.
  limits.memory_bytes = memory_of(plan_reference(config, rules, limits, 8)) / 2;
  for (const Size available : {2, 3, 8}) {
    rules.ranks = available;
    const std::string said = test::error_of(
        [&] {
          const ReferencePlan run = plan_reference(config, rules, limits, available);
          EXPECT_LE(run.ranks, available);
          EXPECT_LE(memory_of(run), *limits.memory_bytes);
          throw Error(ExitCode::out_of_memory, "");
        },
        ExitCode::out_of_memory);
    EXPECT_TRUE(said.empty() || said.find("does not fit") != std::string::npos) << said;
  }
}

}  // namespace
}  // namespace tessera::bench
