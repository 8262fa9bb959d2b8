// SPDX-License-Identifier: Apache-2.0
// Random meshes, strategies, models and options against one rank: written down a second time
// (Reference) or, in mixed precision, in the same precision. TESSERA_FUZZ_CASES and
// TESSERA_FUZZ_SEED try more, or others.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_io.hpp>

#include "engine/precision_support.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;

/// The same numbers on every rank and with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// From `low` to `high`, both included.
  Size number(Size low, Size high) {
    return low + static_cast<Size>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Once in `n` times.
  bool once_in(Size n) { return number(1, n) == 1; }
  template <class Values>
  auto one_of(const Values& values) {
    return values[static_cast<std::size_t>(number(0, static_cast<Size>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<Axis> random_mesh(Random& random, Size ranks) {
  std::vector<std::string> names = {"data", "fsdp", "model", "pipeline"};
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
    if (train_test::suits(strategy, mesh)) suitable.emplace_back(strategy);
  return random.one_of(suitable);
}

void randomize_model(Random& random, MlpConfig& model) {
  constexpr std::array kinds{Activation::identity, Activation::relu, Activation::tanh,
                             Activation::sigmoid, Activation::gelu};
  model.widths.clear();
  for (Size n = random.number(2, 7); n > 0; --n)
    model.widths.push_back(random.once_in(6) ? 1 : random.number(1, 14));
  model.activation = random.one_of(kinds);
  model.output_activation = random.one_of(kinds);
  model.bias = !random.once_in(4);
}

void randomize_training(Random& random, TrainingConfig& training, Size& samples) {
  constexpr std::array kinds{OptimizerKind::sgd, OptimizerKind::sgd, OptimizerKind::adam,
                             OptimizerKind::adamw, OptimizerKind::rmsprop};
  constexpr std::array losses{LossKind::mse, LossKind::mae, LossKind::relative_l2};
  training.batch_size = random.number(1, 20);
  training.microbatches = random.number(1, std::min<Size>(training.batch_size, 4));
  samples = random.number(training.batch_size, 3 * training.batch_size);
  training.num_epochs = random.number(1, 2);
  training.learning_rate = 1e-3;
  training.loss = random.one_of(losses);
  training.optimizer.kind = random.one_of(kinds);
  if (training.optimizer.kind == OptimizerKind::sgd && random.once_in(2))
    training.optimizer.momentum = 0.9;
  if (random.once_in(3)) training.activation_checkpointing.units = random.number(1, 3);
  if (random.once_in(3)) training.clip.global_norm = 0.1;
  if (random.once_in(3)) training.clip.value = 0.05;
  training.check_finite = random.once_in(3);
}

void randomize_sharding(Random& random, DistributedConfig& config, std::size_t layers) {
  constexpr std::array specs{"P(None, None)", "P(None, 'model')", "P('model', None)"};
  const bool gathers = config.strategy == "fsdp" || config.strategy == "hybrid";
  const bool splits = row_of(strategy_of(config)).splits_batch;
  config.overlap = random.once_in(2) && splits;
  config.gradient_reduce_type = random.once_in(4) ? "sum" : "mean";
  if (splits && !gathers) config.bucket_bytes = random.number(1, 2000);
  if (gathers) {
    config.prefetch = random.once_in(2);
    config.reshard_after_forward = !random.once_in(3);
    config.keep_last_unit = !config.reshard_after_forward || random.once_in(2);
  }
  const auto& axes = config.mesh_axis_names;
  const auto has = [&](const char* axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  if (has("pipeline")) {
    config.schedule = random.one_of(std::array{
        PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble});
    config.stage_balance = random.one_of(std::array{StageBalance::layers, StageBalance::flops});
    config.reshard_after_forward = config.keep_last_unit = true;
  }
  if (!has("model")) return;
  if (random.once_in(4)) config.mesh_rules = {{"mlp", {}}, {"embed", {"model"}}};
  if (random.once_in(2))
    for (std::size_t l = 1; l <= layers; ++l)
      if (!random.once_in(3))
        config.parameter_specs["layer" + std::to_string(l) + "/kernel"] = random.one_of(specs);
  config.sequence_parallel = axes.back() == "model" && !random.once_in(3);
}

/// Sequence parallelism needs layers that not every model has.
void drop_sequence_parallel_where_impossible(Experiment& setup) {
  const TrainingConfig& training = setup.training;
  try {
    train_test::trainer_of<double>(setup).plan(setup.data.samples);
  } catch (const ConfigError&) {
    ASSERT_TRUE(training.distributed.sequence_parallel);
    setup.training.distributed.sequence_parallel = false;
  }
}

/// Only plain gradients, and steps that change all parameters visibly: what divides by a gradient's
/// size turns its rounding into a step of any sign.
void randomize_precision(Random& random, Experiment& setup) {
  if (!random.once_in(3)) return;
  TrainingConfig& training = setup.training;
  setup.model.dtype = DType::float32;
  training.distributed.mixed_precision =
      random.one_of(std::array{MixedPrecision::bf16, MixedPrecision::fp16});
  training.optimizer.kind = OptimizerKind::sgd;
  training.learning_rate = training.distributed.gradient_reduce_type == "sum" ? 1e-3 : 0.1;
}

Experiment random_experiment(Random& random, Size ranks) {
  Experiment setup;
  setup.model.dtype = DType::float64;
  setup.data.kind = DataKind::random;
  const std::vector<Axis> axes = random_mesh(random, ranks);
  const MeshShape mesh(axes);
  setup = train_test::on_mesh(setup, axes, random_strategy(random, mesh));
  randomize_model(random, setup.model.mlp);
  while (static_cast<Size>(setup.model.mlp.widths.size()) <= mesh.size_of("pipeline"))
    setup.model.mlp.widths.push_back(random.number(1, 14));  // a layer for each stage
  randomize_training(random, setup.training, setup.data.samples);
  randomize_sharding(random, setup.training.distributed, setup.model.mlp.widths.size() - 1);
  drop_sequence_parallel_where_impossible(setup);
  setup.training.check_replicas_every = random.number(0, 2);
  randomize_precision(random, setup);
  return setup;
}

/// Calls that differ are an error that names them, not a hang.
CommOptions checking_collectives() {
  CommOptions comm;
  comm.check_collectives = true;
  return comm;
}

void expect_trains_like_reference(const Experiment& setup) {
  using namespace train_test;
  const Samples<double> all = samples_of<double>(setup);
  Reference reference = reference_of(setup);
  const auto losses = reference.fit(to_table(all.x), to_table(all.y));
  Trainer<double> trainer(setup.model, setup.training, checking_collectives());
  const TrainingMetrics metrics = trainer.fit(setup.data);
  // What divides by the gradient's size makes much of the least of its digits.
  const bool normalizes = setup.training.optimizer.kind != OptimizerKind::sgd;
  const double tolerance = normalizes ? 1e-6 : 1e-10;
  EXPECT_LE(relative_difference(metrics.epoch_losses, losses), tolerance);
  EXPECT_LE(
      relative_difference(to_host(trainer.gather(TensorRole::gradient)), reference.gradients()),
      tolerance);
  const std::vector<double> parameters = to_host(trainer.gather());
  EXPECT_LE(relative_difference(parameters, reference.parameters()), tolerance);
  EXPECT_EQ(plan_violation(metrics), "");
  expect_same_on_all_ranks(trainer.mesh().world(), parameters, "parameters");
}

template <class T>
void expect_trains_like_one_rank_in_precision(const Experiment& setup) {
  train_test::expect_like_alone<T>(train_test::train_short<T>(setup, checking_collectives()),
                                   train_test::train_alone<T>(setup));
}

void expect_trains_like_one_rank(const Experiment& setup) {
  switch (setup.training.distributed.mixed_precision) {
    case MixedPrecision::no:
      return expect_trains_like_reference(setup);
    case MixedPrecision::bf16:
      return expect_trains_like_one_rank_in_precision<BFloat16>(setup);
    case MixedPrecision::fp16:
      return expect_trains_like_one_rank_in_precision<Float16>(setup);
  }
}

Size from_environment(const char* name, Size otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

TEST(ShardingFuzz, RandomSetupsTrainLikeOneRank) {
  const Size first = from_environment("TESSERA_FUZZ_SEED", 1);
  const Size cases = from_environment("TESSERA_FUZZ_CASES", 40);
  for (Size seed = first; seed < first + cases; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Experiment setup = random_experiment(random, Communicator::world().size());
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << "\n"
                 << config_as_toml({setup.model, setup.data, setup.training, {}}));
    try {
      expect_trains_like_one_rank(setup);
    } catch (const Error& error) {  // of all ranks
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
