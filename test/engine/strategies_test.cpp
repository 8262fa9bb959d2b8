// SPDX-License-Identifier: Apache-2.0
// Every strategy on every mesh trains what one rank trains, written down a second time (Reference),
// with the traffic and the memory of its plan.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_one_rank;
using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;

/// One step of SGD: its gradient is that of the first batch, exactly.
template <class T>
void expect_gradient_of_one_rank(Experiment setup, double tolerance) {
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  setup.training.optimizer = {.kind = OptimizerKind::sgd};
  train_test::Reference reference = train_test::reference_of(setup);
  const train_test::Samples<T> all = train_test::samples_of<T>(setup);
  reference.fit(train_test::to_table(all.x), train_test::to_table(all.y));
  Trainer<T> trainer = train_test::trainer_of<T>(setup);
  trainer.fit(setup.data);
  EXPECT_LE(train_test::relative_difference(
                train_test::to_host(trainer.gather(TensorRole::gradient)), reference.gradients()),
            tolerance);
}

TEST(Strategies, TrainLikeOneRankWithEvenAndUnevenBatchesAndMicrobatches) {
  for (OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam})
    for (Size batch : {16, 13})
      for (Size microbatches : {1, 3}) {
        Experiment base = primes(batch);
        base.training.optimizer.kind = optimizer;
        base.training.microbatches = microbatches;
        for_strategies(base, [&](const Experiment& setup, const std::string& what) {
          SCOPED_TRACE(testing::Message() << what << ", " << name_of(optimizer) << ", batch "
                                          << batch << ", microbatches " << microbatches);
          expect_trains_like_one_rank<float>(setup, 1e-5);
          if (optimizer == OptimizerKind::sgd) expect_gradient_of_one_rank<float>(setup, 1e-5);
        });
      }
}

TEST(Strategies, OverlapPrefetchReshardingAndKeepingChangeNothing) {
  for (const bool overlap : {false, true})
    for (const int option : {0, 1, 2, 3}) {
      Experiment base = primes(13);
      base.training.microbatches = 3;
      base.training.optimizer.momentum = 0.9;
      base.training.optimizer.kind = OptimizerKind::sgd;
      base.training.distributed.overlap = overlap;
      for_strategies(base, [&](Experiment setup, const std::string& what) {
        DistributedConfig& distributed = setup.training.distributed;
        const bool sharded = row_of(distributed.strategy).shards.parameters;
        if (!sharded && option > 0) return;
        if (option == 1) distributed.prefetch = false;
        if (option == 2) distributed.reshard_after_forward = false;
        if (option == 3) distributed.keep_last_unit = false;
        SCOPED_TRACE(testing::Message()
                     << what << ", overlap " << overlap << ", option " << option);
        expect_trains_like_one_rank<float>(setup, 1e-5);
      });
    }
}

TEST(Strategies, ClippingCountsEveryElementOnce) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes(13);
    base.training.optimizer.kind = OptimizerKind::sgd;
    base.training.clip = {.global_norm = 0.1, .value = 0.05};
    base.training.check_finite = true;
    base.training.distributed.overlap = overlap;
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      SCOPED_TRACE(what);
      expect_trains_like_one_rank<double>(setup, 1e-11);
    });
  }
}

TEST(Strategies, ActivationsLossesAndModelsInFloat64) {
  std::vector<Experiment> bases(5, primes(13));
  bases[0].model.mlp.activation = Activation::gelu;
  bases[0].model.mlp.output_activation = Activation::gelu;
  bases[1].model.mlp.bias = false;
  bases[1].training.loss = LossKind::relative_l2;
  bases[2].model.mlp.widths = {3, 5};  // one layer: its output is sharded, its input is data
  bases[3].model.mlp.widths = {2, 3, 2, 1, 2};  // widths that 8 ranks leave empty
  bases[4].training.batch_size = 3;             // ranks without rows
  bases[4].training.microbatches = 3;
  for (Experiment& base : bases) {
    base.training.optimizer.kind = OptimizerKind::sgd;
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", model " << (&base - bases.data()));
      expect_trains_like_one_rank<double>(setup, 1e-11);
    });
  }
}

TEST(Strategies, SequenceParallelTrainsTheSame) {
  for (const Activation activation : {Activation::tanh, Activation::gelu})
    for (const Size microbatches : {1, 3}) {
      Experiment base = primes(13);
      base.model.mlp.activation = activation;
      base.training.optimizer.kind = OptimizerKind::sgd;
      base.training.microbatches = microbatches;
      base.training.distributed.sequence_parallel = true;
      for_strategies(base, [&](const Experiment& setup, const std::string& what) {
        const auto& names = setup.training.distributed.mesh_axis_names;
        if (names.back() != "model") return;
        SCOPED_TRACE(what);
        expect_trains_like_one_rank<double>(setup, 1e-11);
      });
    }
}

/// Kernels whole, by columns and by rows, one behind the other in every order.
TEST(Strategies, AnyKernelMayBeWholeColumnOrRowParallel) {
  const std::vector<std::string> specs = {"P(None, None)", "P(None, 'model')", "P('model', None)"};
  for (std::size_t number = 0; number < 27; ++number) {
    Experiment base = primes(7);
    base.model.mlp.widths = {3, 5, 7, 2};
    base.model.mlp.activation = Activation::gelu;
    base.training.microbatches = 2;
    base.training.optimizer.kind = OptimizerKind::sgd;
    std::size_t rest = number;
    for (const char* layer : {"layer1/kernel", "layer2/kernel", "layer3/kernel"}) {
      base.training.distributed.parameter_specs[layer] = specs[rest % 3];
      rest /= 3;
    }
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      const Strategy strategy = setup.training.distributed.strategy;
      if (setup.training.distributed.mesh_axis_names.back() != "model") return;
      if (strategy != Strategy::data && strategy != Strategy::fsdp) return;
      SCOPED_TRACE(testing::Message() << what << ", kernels " << number);
      expect_trains_like_one_rank<double>(setup, 1e-11);
    });
  }
}

TEST(Strategies, RulesMakeTensorParallelismOrNone) {
  Experiment base = primes(13);
  base.training.optimizer.kind = OptimizerKind::sgd;
  base.training.distributed.mesh_rules = {{"mlp", {}}, {"embed", {"model"}}};
  for_strategies(base, [&](Experiment setup, const std::string& what) {
    if (setup.training.distributed.mesh_axis_names.back() != "model") return;
    SCOPED_TRACE(what);
    expect_trains_like_one_rank<double>(setup, 1e-11);
    setup.training.distributed.mesh_rules = {{"mlp", {}}};
    expect_trains_like_one_rank<double>(setup, 1e-11);
  });
}

}  // namespace
}  // namespace tessera
