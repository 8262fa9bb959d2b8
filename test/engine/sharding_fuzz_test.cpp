// SPDX-License-Identifier: Apache-2.0
// Random models, meshes, strategies and options train like one rank: an MLP like Reference, another
// model like the same model in the same precision. TESSERA_FUZZ_CASES and TESSERA_FUZZ_SEED set the
// number of cases and the seed of the first one:
//   TESSERA_FUZZ_SEED=1000 mpirun -n 8 tessera_mpi_tests --gtest_filter='ShardingFuzz.*'
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_io.hpp>

#include "engine/precision_support.hpp"
#include "engine/random_experiment.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::Random;

/// Returns options with which calls that differ between ranks are an error, not a hang.
CommOptions checking_collectives() {
  CommOptions comm;
  comm.check_collectives = true;
  return comm;
}

/// Returns a tolerance. Optimizers that divide by the gradient's size amplify its rounding error.
double tolerance_of(const Experiment& setup) {
  return setup.training.optimizer.kind == OptimizerKind::sgd ? 1e-10 : 1e-6;
}

void expect_trains_like_reference(const Experiment& setup) {
  using namespace train_test;
  const Samples<double> all = samples_of<double>(setup);
  Reference reference = reference_of(setup);
  const auto losses = reference.fit(to_table(all.x), to_table(all.y));
  Trainer<double> trainer(setup.model, setup.training, checking_collectives());
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const double tolerance = tolerance_of(setup);
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

/// Compares with the same program on one rank. Other tests compare the layers themselves.
void expect_trains_like_one_rank_in_double(const Experiment& setup) {
  const auto trained = train_test::train_short<double>(setup, checking_collectives());
  const auto alone = train_test::train_alone<double>(setup);
  const double tolerance = tolerance_of(setup);
  EXPECT_LE(train_test::relative_difference(trained.losses, alone.losses), tolerance);
  EXPECT_LE(train_test::relative_difference(trained.parameters, alone.parameters), tolerance);
}

void expect_trains_like_one_rank(const Experiment& setup) {
  switch (setup.training.distributed.mixed_precision) {
    case MixedPrecision::no:
      return setup.model.kind == ModelKind::mlp ? expect_trains_like_reference(setup)
                                                : expect_trains_like_one_rank_in_double(setup);
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

void expect_random_setups_train_like_one_rank(bool of_experts) {
  const Size first = from_environment("TESSERA_FUZZ_SEED", 1);
  const Size cases = from_environment("TESSERA_FUZZ_CASES", 40);
  for (Size seed = first; seed < first + cases; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Experiment setup =
        train_test::random_experiment(random, Communicator::world().size(), of_experts);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << "\n"
                 << config_as_toml({setup.model, setup.data, setup.training, {}}));
    try {
      expect_trains_like_one_rank(setup);
    } catch (const Error& error) {  // thrown on all ranks
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
