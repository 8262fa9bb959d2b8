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

TEST(Advice, DividesTheThreadsAmongFewerRanks) {
  Machine machine = roomy;
  machine.threads = 1;
  Machine other = roomy;
  other.name = "wide";
  other.threads = 2;
  other.flops_per_second["float32"] *= 3;
  other.memory_bytes_per_second *= 3;
  other.memory_bytes /= 2;
  machine.others = {other};
  const Advice advice = advise(wide_mlp(), 4, machine);
  ASSERT_FALSE(advice.fits.empty());
  EXPECT_EQ(advice.fits.front().mesh.num_ranks(), 2);
  EXPECT_EQ(advice.fits.front().config.training.distributed.threads, 2);
  const auto has_one = [](const Candidate& c) { return !c.config.training.distributed.threads; };
  EXPECT_TRUE(std::ranges::any_of(advice.fits, has_one))
      << "ranks of one thread are candidates, too";
  EXPECT_TRUE(std::ranges::is_sorted(advice.fits, {},
                                     [](const Candidate& c) { return c.step.step_seconds; }));
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

// One sample on one rank leaves nothing to choose but recomputation.
TEST(Advice, RecomputesNoMoreThanTheMemoryNeeds) {
  Config config = small_transformer();
  config.model.transformer.blocks = 4;
  config.training.batch_size = config.data.samples = 1;
  Size before = Size{1} << 60;
  for (const Recomputation& way : {Recomputation{}, Recomputation{.what = Recomputed::cheap},
                                   Recomputation{.what = Recomputed::block}}) {
    config.training.activation_checkpointing = way;
    const Size memory =
        make_plan(plan_input(resolve(config, 1), MeshShape({{"data", 1}}))).memory(0).total();
    EXPECT_LT(memory, before);
    before = memory;
    const Advice advice = advise(config, 1, machine_with(1e10, memory));
    ASSERT_FALSE(advice.fits.empty());
    for (const Candidate& one : advice.fits)
      EXPECT_EQ(one.config.training.activation_checkpointing, way);
  }
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

Config experts() {
  Config config = small_transformer();
  config.model.transformer.experts = 4;
  return config;
}

/// A long sequence in one sample leaves nothing else to split over many ranks.
Config long_sequence() {
  Config config = small_transformer();
  config.model.transformer.context = 2048;
  config.data.kind = DataKind::random;
  config.training.batch_size = config.data.samples = 1;
  return config;
}

Config grid() {
  Config config;
  config.model.kind = ModelKind::fno;
  config.model.fno = {.grid = 64, .modes = 8, .width = 8, .layers = 1, .projection = 8};
  config.data.kind = DataKind::darcy;
  config.training.loss = LossKind::relative_l2;
  config.training.batch_size = config.data.samples = 1;
  return config;
}

TEST(Advice, TriesTheAxesOfTheModel) {
  struct Tried {
    Config config;
    std::string axis;
    std::size_t ways;  ///< of attention, on meshes with the axis
  };
  for (const auto& [config, axis, ways] : {Tried{wide_mlp(), "context", 0},
                                           {experts(), "expert", 1},
                                           {long_sequence(), "context", 3},
                                           {grid(), "context", 1}}) {
    std::set<ContextAttention> found;
    const Advice advice = advise(config, 4, roomy, exhaustive);
    for (const Candidate& one : advice.fits)
      if (one.mesh.size_of(axis) > 1 && (axis == "context" || one.mesh.size_of("context") == 1))
        found.insert(one.config.training.distributed.context_attention);
    EXPECT_EQ(found.size(), ways) << axis;
    if (config.training.batch_size == 1) {
      EXPECT_GT(advice.fits.front().mesh.size_of("context"), 1);
    }
  }
}

TEST(Advice, TriesMoreRanksThanSamples) {
  Config config = wide_mlp();
  config.training.batch_size = 5;
  const Advice advice = advise(config, 7, roomy, exhaustive);
  EXPECT_TRUE(std::ranges::any_of(
      advice.fits, [](const Candidate& one) { return one.mesh.to_string() == "data=7"; }));
}

// The axis `expert` splits the batch, so strategies shard over it.
TEST(Advice, ShardsOverTheAxisOfExperts) {
  std::set<std::string_view> found;
  for (const Candidate& one : advise(experts(), 4, roomy, exhaustive).fits)
    if (one.mesh.size_of("expert") == 4)
      found.insert(name_of(one.config.training.distributed.strategy));
  EXPECT_EQ(found, (std::set<std::string_view>{"data", "zero1", "zero2", "fsdp"}));
}

TEST(Advice, NamesTheSlowerPart) {
  SimulatedStep fast, slow;
  fast.products.work = slow.products.work = 1;
  slow.kernels.work = 0.25;
  slow.calls.push_back({"data", Operation::all_reduce, 1, 0.5, 0});
  EXPECT_EQ(why_slower(slow, fast), "500 ms more in all_reduce on data");
  EXPECT_EQ(why_slower(fast, fast), "");
}

TEST(Advice, IsForRanksThatTheMachineHasAndTheModelCanUse) {
  const Advice advice = advise(wide_mlp(), 1, roomy);
  ASSERT_EQ(advice.fits.size(), 1U);
  EXPECT_EQ(advice.fits.front().mesh.to_string(), "data=1");
  for (const Size ranks : {Size{65}, Size{1} << 60})
    EXPECT_EQ(test::error_of([&] { advise(wide_mlp(), ranks, roomy); }),
              fmt::format("--ranks = {}: must be from 1 to 64, the number of ranks of machine test",
                          ranks));
  Config config = wide_mlp();
  config.model.kind = ModelKind::fno;
  EXPECT_NE(test::error_of([&] { advise(config, 4, roomy); }).find("--ranks = 4: no mesh"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
