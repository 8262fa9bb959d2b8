// SPDX-License-Identifier: Apache-2.0
// Random models, meshes, strategies and options: further rows of the experiment table.
// TESSERA_FUZZ_CASES and TESSERA_FUZZ_SEED set the number of cases and the seed of the first one:
//   TESSERA_FUZZ_SEED=1000 mpirun -n 8 tessera_mpi_tests --gtest_filter='ShardingFuzz.*'
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/pipeline/stages.hpp>

#include "engine/one_rank.hpp"
#include "engine/random.hpp"
#include "engine/random_models.hpp"
#include "pass_text.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::on_mesh;
using train_test::Random;
using train_test::randomize_model;
using train_test::suits;
using train_test::trainer_of;

std::vector<Axis> random_mesh(Random& random, Size ranks, bool of_experts) {
  std::vector<std::string> names = {"data", "fsdp", "model", "pipeline", "context"};
  if (of_experts) names.emplace_back("expert");
  std::vector<Axis> axes;
  Size left = ranks;
  for (Size count = random.number(1, 4); count > 0; --count) {
    const Size at = random.number(0, static_cast<Size>(names.size()) - 1);
    std::vector<Size> sizes;
    for (Size n = 1; n <= left; ++n)
      if (left % n == 0 && (count > 1 || n == left)) sizes.push_back(n);
    axes.push_back({names[static_cast<std::size_t>(at)], random.one_of(sizes)});
    left /= axes.back().size;
    names.erase(names.begin() + at);
  }
  return axes;
}

std::string random_strategy(Random& random, const MeshShape& mesh) {
  std::vector<std::string> suitable;
  for (const std::string_view strategy : names_of<Strategy>)
    if (suits(strategy, mesh)) suitable.emplace_back(strategy);
  return random.one_of(suitable);
}

/// Returns a learning rate that changes all parameters visibly and keeps them small.
double learning_rate_of(const Experiment& setup) {
  if (setup.training.optimizer.kind == OptimizerKind::muon) return 3e-4;
  if (setup.training.optimizer.kind != OptimizerKind::sgd) return 1e-3;
  const ModelKind kind = setup.model.kind;
  const double of_means = kind == ModelKind::pinn ? 1e-4 : kind == ModelKind::fno ? 1e-3 : 0.01;
  const bool sums = setup.training.distributed.gradient_reduce_type == GradientReduceType::sum;
  return sums ? of_means / 10 : of_means;
}

void randomize_training(Random& random, Experiment& setup) {
  constexpr std::array kinds{OptimizerKind::sgd,   OptimizerKind::sgd,     OptimizerKind::adam,
                             OptimizerKind::adamw, OptimizerKind::rmsprop, OptimizerKind::muon};
  TrainingConfig& training = setup.training;
  training.batch_size = random.number(1, 20);
  training.microbatches = random.number(1, std::min<Size>(training.batch_size, 4));
  setup.data.samples = random.number(training.batch_size, 3 * training.batch_size);
  training.num_epochs = random.number(1, 2);
  training.optimizer = {.kind = random.one_of(kinds)};
  if (training.optimizer.kind == OptimizerKind::sgd && random.once_in(2))
    training.optimizer.momentum = 0.9;
  if (moments_per_parameter(training.optimizer) > 0 && random.once_in(3))
    training.optimizer.moments_type = MomentsType::bf16;
  if (training.optimizer.kind == OptimizerKind::muon &&
      row_of(training.distributed.strategy).shards.moments)
    training.distributed.muon_layout =
        random.one_of(std::array{MuonLayout::gather, MuonLayout::owner, MuonLayout::exchange});
  if (training.optimizer.kind == OptimizerKind::adamw) {
    training.optimizer.weight_decay = 0.5;
    training.optimizer.weight_decay_on =
        random.one_of(std::array{WeightDecayOn::all, WeightDecayOn::kernels});
  }
  if (random.once_in(3))
    training.schedule = {.kind = ScheduleKind::wsd,
                         .steps = 6,
                         .end_factor = 0.1,
                         .decay_steps = 3,
                         .warmup_steps = random.number(0, 2),
                         .start_factor = 0};
  if (random.once_in(2))
    training.activation_checkpointing = {.units = random.number(1, 3),
                                         .what = static_cast<Recomputed>(random.number(0, 3))};
  if (random.once_in(3)) training.clip.global_norm = 0.1;
  if (random.once_in(3)) training.clip.value = 0.05;
  training.check_finite = random.once_in(3);
  if (setup.model.kind == ModelKind::transformer && random.once_in(2)) training.ignore_index = 0;
  training.check_replicas_every = random.number(0, 2);
}

/// Draws how many blocks each chunk of a pipeline has; none if they are too few. The first and the
/// last may have no block if the model has layers outside of blocks.
std::vector<Size> random_layout(Random& random, const Experiment& setup) {
  const DistributedConfig& config = setup.training.distributed;
  const auto& axes = config.mesh_axis_names;
  const auto axis = std::find(axes.begin(), axes.end(), "pipeline") - axes.begin();
  const Size chunks = config.mesh_shape[axis] * config.virtual_stages;
  const Size at_ends = setup.model.kind == ModelKind::transformer ? 0 : 1;
  Size left = std::ssize(blocks_of(make_model(setup.model).layers));
  std::vector<Size> layout;
  for (Size later = chunks - 1; later > 0; --later) {
    const Size least = layout.empty() ? at_ends : 1, most = left - (later - 1) - at_ends;
    if (most < least) return {};
    layout.push_back(random.number(least, most));
    left -= layout.back();
  }
  layout.push_back(left);
  return layout;
}

void randomize_pipeline(Random& random, Experiment& setup) {
  DistributedConfig& config = setup.training.distributed;
  config.schedule = random.one_of(std::array{
      PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
      PipelineSchedule::zero_bubble, PipelineSchedule::zbv, PipelineSchedule::dualpipev});
  if (config.schedule == PipelineSchedule::interleaved || config.schedule >= PipelineSchedule::zbv)
    config.virtual_stages = 2;
  config.stage_balance =
      random.one_of(std::array{StageBalance::layers, StageBalance::flops, StageBalance::blocks});
  if (random.once_in(2)) config.stage_layout = random_layout(random, setup);
  if (!config.stage_layout.empty()) config.stage_balance = StageBalance::layers;
  config.reshard_after_forward = config.keep_last_unit = true;
}

void randomize_sharding(Random& random, Experiment& setup) {
  constexpr std::array specs{"P(None, None)", "P(None, 'model')", "P('model', None)"};
  DistributedConfig& config = setup.training.distributed;
  const bool gathers = config.strategy == Strategy::fsdp || config.strategy == Strategy::hybrid;
  const bool splits = row_of(config.strategy).splits_batch;
  config.overlap = random.once_in(2) && splits;
  config.gradient_reduce_type =
      random.once_in(4) ? GradientReduceType::sum : GradientReduceType::mean;
  if (splits && !gathers) config.bucket_bytes = random.number(1, 2000);
  if (gathers) {
    config.fsdp_unit = random.one_of(std::array{FsdpUnit::layer, FsdpUnit::block});
    config.prefetch = random.once_in(2);
    config.reshard_after_forward = !random.once_in(3);
    config.keep_last_unit = !config.reshard_after_forward || random.once_in(2);
  }
  const auto& axes = config.mesh_axis_names;
  const auto has = [&](const char* axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  if (has("pipeline")) randomize_pipeline(random, setup);
  if (has("context")) {
    if (setup.model.kind == ModelKind::transformer)
      config.context_attention = random.one_of(std::array{
          ContextAttention::gather, ContextAttention::ring, ContextAttention::all_to_all});
    config.zigzag = random.once_in(2);
  }
  if (!has("model")) return;
  config.sequence_parallel = axes.back() == "model" && !random.once_in(3);
  config.model_overlap = config.sequence_parallel && random.once_in(2);
  if (setup.model.kind != ModelKind::mlp) return;
  if (random.once_in(4)) config.mesh_rules = {{"mlp", {}}, {"embed", {"model"}}};
  if (random.once_in(2))
    for (std::size_t l = 1; l < setup.model.mlp.widths.size(); ++l)
      if (!random.once_in(3))
        config.parameter_specs["layer" + std::to_string(l) + "/kernel"] = random.one_of(specs);
}

/// Draws half precision for one in three experiments, with plain SGD and visible steps. An
/// optimizer that divides by a gradient's size would turn its rounding error into a full step, and
/// a router may choose another expert. A norm over two columns says only which is larger, so that
/// rounding may change its sign.
void randomize_precision(Random& random, Experiment& setup) {
  if (!random.once_in(3) || setup.model.transformer.experts > 0) return;
  constexpr Size enough_columns = 8;
  if (setup.model.kind == ModelKind::transformer && setup.model.transformer.width < enough_columns)
    return;
  if (setup.model.kind == ModelKind::residual_mlp &&
      setup.model.residual_mlp.width < enough_columns)
    return;
  TrainingConfig& training = setup.training;
  setup.model.dtype = DType::float32;
  training.distributed.mixed_precision =
      random.one_of(std::array{MixedPrecision::bf16, MixedPrecision::fp16});
  training.optimizer = {.kind = OptimizerKind::sgd};
  training.distributed.muon_layout = {};
}

/// Replaces a schedule by a file with passes in a random order, in one of two experiments.
void randomize_passes(Random& random, Experiment& setup) {
  DistributedConfig& config = setup.training.distributed;
  const PipelineShape shape = trainer_of<double>(setup).plan(setup.data.samples).input.pipeline();
  if (shape.stages == 1 || !random.once_in(2)) return;
  const std::string text = test::text_of(test::random_passes(random, shape), shape);
  // All ranks write the same.
  config.schedule_file =
      fmt::format("{}passes{:x}.csv", testing::TempDir(), std::hash<std::string>()(text));
  write_text(config.schedule_file, text);
  config.schedule = PipelineSchedule::one_f_one_b;
  config.virtual_stages = 1;
}

/// Returns the plan's error, or "".
std::string rejection(const Experiment& setup) {
  try {
    trainer_of<double>(setup).plan(setup.data.samples);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool begins_with_one_of(const std::string& text, const std::vector<std::string_view>& keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return text.starts_with(key); });
}

/// Fixes the order of sums in every other experiment, with any number of grains and of blocks. The
/// fixed order takes what the ordinary mode takes, but for rings.
void randomize_numerics(Random& random, Experiment& setup) {
  if (!random.once_in(2)) return;
  Experiment fixed = setup;
  TrainingConfig& training = fixed.training;
  training.numerics = {true, Size{1} << random.number(0, 4), Size{1} << random.number(0, 3)};
  training.microbatches = 1;
  DistributedConfig& config = training.distributed;
  config.model_overlap = false;
  if (config.context_attention == ContextAttention::ring) config.context_attention = {};
  // The bits depend on which dimensions `model` may split, and one rank has the default rules.
  config.mesh_rules.clear();
  config.parameter_specs.clear();
  const std::string wrong = rejection(fixed);
  if (wrong.empty()) {
    setup = fixed;
    return;
  }
  EXPECT_TRUE(begins_with_one_of(wrong, {"model.transformer.kv_heads"})) << wrong;
}

/// Returns a short training of any model on a mesh of this many ranks, under any strategy that the
/// mesh allows. Sizes are 1, primes, and numbers below the number of ranks. If the plan rejects a
/// configuration, draws another one, and fails the test if the message names an unexpected key.
/// `of_experts`: all models are transformers with experts, and meshes may have an axis `expert`.
Experiment random_experiment(Random& random, Size ranks, bool of_experts) {
  // A random configuration may have no row-parallel layer with a successor, heads or frequencies
  // that `model` or `context` does not divide evenly, one position, fewer units than stages, or no
  // layers of a kind to recompute.
  const std::vector<std::string_view> may_be_rejected{"distributed.sequence_parallel",
                                                      "model.transformer.heads",
                                                      "model.transformer.kv_heads",
                                                      "model.transformer.experts",
                                                      "mesh axis pipeline",
                                                      "distributed.virtual_stages",
                                                      "model.fno.modes",
                                                      "distributed.mesh_axis_names",
                                                      "distributed.schedule",
                                                      "distributed.stage_balance",
                                                      "distributed.stage_layout",
                                                      "training.activation_checkpointing"};
  for (;;) {
    const std::vector<Axis> axes = random_mesh(random, ranks, of_experts);
    Experiment setup = on_mesh({}, axes, random_strategy(random, MeshShape(axes)));
    randomize_model(random, setup, of_experts);
    randomize_training(random, setup);
    randomize_sharding(random, setup);
    if (random.once_in(2))
      train_test::shard_moments_wider(setup.training.distributed, MeshShape(axes));
    std::string wrong = rejection(setup);
    if (wrong.starts_with("distributed.model_overlap") ||
        wrong.starts_with("distributed.sequence_parallel")) {
      DistributedConfig& config = setup.training.distributed;
      config.model_overlap = false;
      if (wrong.starts_with("distributed.sequence_parallel")) config.sequence_parallel = false;
      wrong = rejection(setup);
    }
    if (wrong.empty()) {
      randomize_numerics(random, setup);
      randomize_passes(random, setup);
      randomize_precision(random, setup);
      setup.training.learning_rate = learning_rate_of(setup);
      return setup;
    }
    EXPECT_TRUE(begins_with_one_of(wrong, may_be_rejected)) << wrong;
  }
}

/// Returns options with which calls that differ between ranks are an error, not a hang.
CommOptions checking_collectives() {
  CommOptions comm;
  comm.check_collectives = true;
  return comm;
}

Size from_environment(const char* name, Size otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

void expect_random_setups_train_like_one_rank(bool of_experts) {
  const Size first = from_environment("TESSERA_FUZZ_SEED", 1);
  const Size cases = from_environment("TESSERA_FUZZ_CASES", 40);
  for (Size seed = first; seed < first + cases; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Experiment setup = random_experiment(random, Communicator::world().size(), of_experts);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << "\n"
                 << config_as_toml({setup.model, setup.data, setup.training, {}}));
    try {
      train_test::expect_trains_like_one_rank(setup, checking_collectives());
    } catch (const std::exception& error) {  // thrown on all ranks
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(ShardingFuzz, RandomSetupsTrainLikeOneRank) {
  expect_random_setups_train_like_one_rank(false);
}

TEST(ShardingFuzz, RandomExpertsTrainLikeOneRank) {
  expect_random_setups_train_like_one_rank(true);
}

}  // namespace
}  // namespace tessera
