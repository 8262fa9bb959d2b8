// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/predict/advice.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

Config wide_mlp() {
  Config config;
  config.model.mlp.widths = {64, 512, 512, 64};
  config.data.kind = DataKind::random;
  config.training.batch_size = config.data.samples = 64;
  return config;
}

Machine machine_with(double bytes_per_second, Size memory_bytes) {
  Machine machine;
  machine.name = "test";
  machine.flops_per_second = {{"float32", 1e11}};
  machine.memory_bytes_per_second = 1e11;
  machine.memory_bytes = memory_bytes;
  machine.kernel_seconds = 1e-6;
  machine.network = {{"all", 64, 1e-6, bytes_per_second}};
  return machine;
}

const Machine roomy = machine_with(1e10, Size{1} << 40);
const SearchOptions exhaustive{.best = 1'000'000};

Config small_transformer() {
  Config config;
  config.model.kind = ModelKind::transformer;
  config.model.transformer = {
      .vocabulary = 64, .context = 32, .width = 64, .heads = 4, .blocks = 1, .inner_width = 128};
  config.data.kind = DataKind::copy_task;
  config.training.loss = LossKind::cross_entropy;
  config.training.batch_size = config.data.samples = 16;
  return config;
}

std::string name_of(const Candidate& one) {
  const TrainingConfig& training = one.config.training;
  return fmt::format(
      "{} on {}, {}, {} microbatches, {} units: {} s, {} B", name_of(training.distributed.strategy),
      one.mesh.to_string(), name_of(training.distributed.context_attention), training.microbatches,
      training.activation_checkpointing.units, one.step.step_seconds, one.memory_bytes);
}

TEST(Advice, IsSortedAndEachCandidateIsValid) {
  const Advice advice = advise(wide_mlp(), 8, roomy, exhaustive);
  ASSERT_GT(advice.fits.size(), 10u);
  EXPECT_TRUE(advice.too_large.empty());
  double before = 0;
  for (const Candidate& one : advice.fits) {
    EXPECT_EQ(one.mesh.num_ranks(), 8);
    EXPECT_GE(one.step.step_seconds, before);
    before = one.step.step_seconds;
    const Plan plan = make_plan(plan_input(resolve(one.config, 8), one.mesh));
    EXPECT_EQ(simulate(plan, cost_on(roomy, plan)).step_seconds, one.step.step_seconds);
    Size most = 0;
    for (Size rank = 0; rank < 8; ++rank) most = std::max(most, plan.memory(rank).total());
    EXPECT_EQ(most, one.memory_bytes);
  }
}

// Bounds leave out only what cannot be among the fastest.
TEST(Advice, FindsTheSameAsAnExhaustiveSearch) {
  const Machine slow = machine_with(1e8, Size{1} << 40), tight = machine_with(1e9, 1'000'000);
  Size planned = 0, of_all = 0;
  struct Tried {
    Config config;
    Size ranks;
    const Machine& machine;
  };
  for (const Tried& tried : {Tried{wide_mlp(), 16, roomy},
                             {wide_mlp(), 64, slow},
                             {wide_mlp(), 16, tight},
                             {small_transformer(), 16, roomy},
                             {small_transformer(), 16, tight}}) {
    const Advice all = advise(tried.config, tried.ranks, tried.machine, exhaustive),
                 found = advise(tried.config, tried.ranks, tried.machine);
    ASSERT_EQ(found.fits.size(), std::min<std::size_t>(10, all.fits.size()));
    for (std::size_t i = 0; i < found.fits.size(); ++i)
      EXPECT_EQ(name_of(found.fits[i]), name_of(all.fits[i])) << i;
    EXPECT_LE(found.planned, all.planned);
    planned += found.planned;
    of_all += all.planned;
    EXPECT_LE(all.planned, all.candidates);
  }
  EXPECT_LT(3 * planned, 2 * of_all);
}

TEST(Advice, FindsOnlyStepsBelowALimit) {
  const double best = advise(wide_mlp(), 8, roomy).fits.front().step.step_seconds;
  EXPECT_TRUE(advise(wide_mlp(), 8, roomy, {.below = best}).fits.empty());
  const Advice two = advise(wide_mlp(), 8, roomy, {.best = 2, .below = 1.5 * best});
  ASSERT_EQ(two.fits.size(), 2U);
  EXPECT_LT(two.fits.back().step.step_seconds, 1.5 * best);
}

TEST(Advice, TellsTheBestSoFar) {
  Size planned = 0;
  double seconds = std::numeric_limits<double>::infinity();
  const auto progress = [&](const SearchState& state) {
    EXPECT_EQ(state.planned, ++planned);
    if (state.best == nullptr) return;
    EXPECT_LE(state.best->step.step_seconds, seconds);
    seconds = state.best->step.step_seconds;
  };
  const Advice advice = advise(wide_mlp(), 8, roomy, {.progress = progress});
  EXPECT_EQ(advice.planned, planned);
  EXPECT_EQ(advice.fits.front().step.step_seconds, seconds);
}

TEST(Advice, TriesTheAxisOfExperts) {
  Config config;
  config.model.kind = ModelKind::transformer;
  config.model.transformer.experts = 4;
  config.data.kind = DataKind::copy_task;
  config.training.loss = LossKind::cross_entropy;
  Size with_experts = 0;
  for (const Candidate& one : advise(config, 4, roomy, exhaustive).fits)
    if (one.mesh.size_of("expert") > 1) {
      ++with_experts;
      const Plan plan = make_plan(plan_input(resolve(one.config, 4), one.mesh));
      EXPECT_EQ(simulate(plan, cost_on(roomy, plan)).step_seconds, one.step.step_seconds);
    }
  EXPECT_GT(with_experts, 5);
}

// On a slow network, candidates with few bytes win.
TEST(Advice, FollowsTheMachine) {
  const Advice slow = advise(wide_mlp(), 4, machine_with(1e6, Size{1} << 40), exhaustive);
  Size fewest = slow.fits.front().sent_bytes;
  for (const Candidate& one : slow.fits)
    if (one.mesh.size_of("pipeline") == 1) fewest = std::min(fewest, one.sent_bytes);
  EXPECT_LE(slow.fits.front().sent_bytes, 2 * fewest);
  EXPECT_GT(slow.fits.back().step.communication(), slow.fits.front().step.communication());
}

TEST(Advice, ChoosesLessMemoryIfNeeded) {
  Size most = 0, least = Size{1} << 60;
  for (const Candidate& one : advise(wide_mlp(), 8, roomy, exhaustive).fits) {
    most = std::max(most, one.memory_bytes);
    least = std::min(least, one.memory_bytes);
  }
  const Machine tight = machine_with(1e10, (most + least) / 2);
  const Advice advice = advise(wide_mlp(), 8, tight);
  ASSERT_FALSE(advice.fits.empty());
  for (const Candidate& one : advice.fits) EXPECT_LE(one.memory_bytes, tight.memory_bytes);
  const Advice none = advise(wide_mlp(), 8, machine_with(1e10, 1000));
  EXPECT_TRUE(none.fits.empty());
  ASSERT_FALSE(none.too_large.empty());
  for (const Candidate& one : none.too_large) EXPECT_GT(one.memory_bytes, 1000);
  EXPECT_LE(none.too_large.front().memory_bytes, none.too_large.back().memory_bytes);
}

TEST(Advice, KeepsOnlyOptionsThatAMeshCanUse) {
  Config config = wide_mlp();
  config.training.distributed.sequence_parallel = true;
  config.training.distributed.prefetch = false;
  bool with = false, without = false;
  for (const Candidate& one : advise(config, 4, roomy, exhaustive).fits) {
    const DistributedConfig& its = one.config.training.distributed;
    EXPECT_EQ(its.sequence_parallel, one.mesh.size_of("model") > 1);
    EXPECT_EQ(its.prefetch, !row_of(its.strategy).shards.parameters);
    (its.sequence_parallel ? with : without) = true;
  }
  EXPECT_TRUE(with && without);
}

// A long sequence in one sample leaves nothing else to split over many ranks.
TEST(Advice, SplitsPositionsOfLongSequences) {
  Config config;
  config.model.kind = ModelKind::transformer;
  config.model.transformer = {
      .vocabulary = 16, .context = 2048, .width = 64, .heads = 2, .blocks = 1, .inner_width = 64};
  config.data.kind = DataKind::random;
  config.training.loss = LossKind::cross_entropy;
  config.training.batch_size = config.data.samples = 1;
  const Advice advice = advise(config, 8, roomy, exhaustive);
  EXPECT_GT(advice.fits.front().mesh.size_of("context"), 1);
  std::set<ContextAttention> ways;
  for (const Candidate& one : advice.fits)
    if (one.mesh.size_of("context") > 1)
      ways.insert(one.config.training.distributed.context_attention);
  EXPECT_EQ(ways.size(), 3u);
  for (const Candidate& one : advise(wide_mlp(), 8, roomy, exhaustive).fits)
    EXPECT_FALSE(one.mesh.find("context"));
}

// The only way of attention that the grid of an operator knows is the default.
TEST(Advice, SplitsGrids) {
  Config config;
  config.model.kind = ModelKind::fno;
  config.model.fno = {.grid = 64, .modes = 8, .width = 8, .layers = 1, .projection = 8};
  config.data.kind = DataKind::darcy;
  config.training.loss = LossKind::relative_l2;
  config.training.batch_size = config.data.samples = 1;
  const Advice advice = advise(config, 8, roomy, exhaustive);
  EXPECT_GT(advice.fits.front().mesh.size_of("context"), 1);
  for (const Candidate& one : advice.fits)
    EXPECT_EQ(one.config.training.distributed.context_attention, ContextAttention::gather);
}

TEST(Advice, NamesTheSlowerPart) {
  SimulatedStep fast, slow;
  fast.products.work = slow.products.work = 1;
  slow.kernels.work = 0.25;
  slow.calls.push_back({"data", Operation::all_reduce, 1, 0.5, 0});
  EXPECT_EQ(why_slower(slow, fast), "500 ms more in all_reduce on data");
  EXPECT_EQ(why_slower(fast, fast), "");
}

TEST(Advice, OneRankHasItsUsualMesh) {
  const Advice advice = advise(wide_mlp(), 1, roomy);
  ASSERT_EQ(advice.fits.size(), 1U);
  EXPECT_EQ(advice.fits.front().mesh.to_string(), "data=1");
}

TEST(Advice, MoreRanksThanTheMachineHasAreAnError) {
  for (const Size ranks : {Size{65}, Size{1} << 60})
    EXPECT_EQ(test::error_of([&] { advise(wide_mlp(), ranks, roomy); }),
              fmt::format("--ranks = {}: must be from 1 to 64, the number of ranks of machine test",
                          ranks));
}

TEST(Advice, ConfigurationWithoutAMeshIsAnError) {
  Config config = wide_mlp();
  config.model.kind = ModelKind::fno;
  EXPECT_NE(test::error_of([&] { advise(config, 4, roomy); }).find("--ranks = 4: no mesh"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
