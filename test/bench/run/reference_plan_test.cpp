// SPDX-License-Identifier: Apache-2.0
#include "run/reference_plan.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "results/result_parts.hpp"

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

Size memory_of(const PlainRun& run) {
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

TEST(ReferencePlan, IsOneRankUnlessMoreAreAllowed) {
  const ReferencePlan plan = plan_reference(sharded_config(32), {}, {}, 1024);
  EXPECT_EQ(plan.run.ranks, 1);
  EXPECT_EQ(plan.run.config.training.microbatches, 1);
  EXPECT_EQ(plan.run.config.training.distributed.strategy, Strategy::data);
  EXPECT_TRUE(plan.trials.empty());
}

TEST(ReferencePlan, TakesRanksThatThereAreAndThatHaveSamples) {
  VerifyRules rules;
  rules.ranks = 100;
  EXPECT_EQ(plan_reference(sharded_config(1000), rules, {}, 1024).run.ranks, 100);
  EXPECT_EQ(plan_reference(sharded_config(1000), rules, {}, 7).run.ranks, 7);
  EXPECT_EQ(plan_reference(sharded_config(32), rules, {}, 1024).run.ranks, 32);
}

// Trials are short: three steps, of two samples per rank.
TEST(ReferencePlan, TrialsLeadFromOneRankToAll) {
  VerifyRules rules;
  rules.ranks = 500;
  const ReferencePlan plan = plan_reference(sharded_config(4096), rules, {}, 1024);
  ASSERT_EQ(plan.trials.size(), 3U);
  Size before = 1;
  for (const Trial& trial : plan.trials) {
    EXPECT_EQ(trial.fewer.ranks, before);
    before = trial.more.ranks;
    EXPECT_LE(before, 16 * trial.fewer.ranks);
    for (const PlainRun* run : {&trial.fewer, &trial.more}) {
      EXPECT_EQ(run->config.training.batch_size, 2 * trial.more.ranks);
      EXPECT_EQ(plan_of(run->config, run->ranks).steps_per_epoch(), 3);
      EXPECT_EQ(run->config.training.num_epochs, 1);
    }
  }
  EXPECT_EQ(before, 500);
}

TEST(ReferencePlan, TrialsAreValidWhateverIsValidated) {
  Config config = sharded_config(32);
  config.data.validation_samples = 8;
  config.training.validate_every = 2;
  VerifyRules rules;
  rules.ranks = 4;
  for (const Trial& trial : plan_reference(config, rules, {}, 8).trials)
    for (const PlainRun* run : {&trial.fewer, &trial.more})
      EXPECT_EQ(plan_of(run->config, run->ranks).input.validation_samples, 0);
}

TEST(ReferencePlan, FitsIntoMemoryByMicrobatchesThenByShards) {
  const Config config = sharded_config(64);
  Limits limits;
  const Size whole = memory_of(plan_reference(config, {}, limits, 8).run);
  limits.memory_bytes = whole - 1;
  const ReferencePlan split = plan_reference(config, {}, limits, 8);
  EXPECT_GT(split.run.config.training.microbatches, 1);
  EXPECT_LE(memory_of(split.run), whole - 1);

  // Four ranks hold the data of four samples each; the rest are parameters.
  VerifyRules rules;
  rules.ranks = 4;
  const PlainRun replicated = plan_reference(config, rules, {}, 8).run;
  Config smallest = replicated.config;
  smallest.training.microbatches = 16;
  limits.memory_bytes = memory_of({smallest, 4}) - 1;
  const ReferencePlan sharded = plan_reference(config, rules, limits, 8);
  EXPECT_EQ(sharded.run.config.training.distributed.strategy, Strategy::fsdp);
  EXPECT_EQ(sharded.trials[0].more.config.training.distributed.strategy, Strategy::fsdp);
  EXPECT_LE(memory_of(sharded.run), *limits.memory_bytes);

  limits.memory_bytes = 100;
  EXPECT_NE(
      test::error_of([&] { plan_reference(config, rules, limits, 8); }, ExitCode::out_of_memory)
          .find("does not fit into 100 B"),
      std::string::npos);
}

}  // namespace
}  // namespace tessera::bench
