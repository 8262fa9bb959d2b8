// SPDX-License-Identifier: Apache-2.0
// Every strategy on every mesh trains like one rank (Reference), with the traffic and the memory of
// its plan.
#include <array>
#include <functional>
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

TEST(Strategies, TrainLikeOneRankWithEvenAndUnevenBatchesAndMicrobatches) {
  const std::array<Size, 3> bucket_bytes{1, 300, 1 << 20};
  std::size_t number = 0;
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam})
    for (const Size batch : {16, 13})
      for (const Size microbatches : {1, 3}) {
        Experiment base = primes(batch);
        base.training.optimizer.kind = optimizer;
        base.training.microbatches = microbatches;
        base.training.distributed.overlap = (number + number / 2) % 2 == 1;
        base.training.distributed.bucket_bytes = bucket_bytes[number++ % 3];
        for_strategies(base, [&](const Experiment& setup, const std::string& what) {
          SCOPED_TRACE(testing::Message() << what << ", " << name_of(optimizer) << ", batch "
                                          << batch << ", microbatches " << microbatches);
          expect_trains_like_one_rank<float>(setup, 1e-5);
        });
      }
}

/// Returns changes of activation, loss, optimizer or schedule.
std::vector<std::function<void(Experiment&)>> computations() {
  std::vector<std::function<void(Experiment&)>> changes;
  for (const Activation activation : {Activation::identity, Activation::relu, Activation::tanh,
                                      Activation::sigmoid, Activation::gelu})
    changes.emplace_back([=](Experiment& e) {
      e.model.mlp.activation = activation;
      e.model.mlp.output_activation =
          activation == Activation::relu ? Activation::identity : activation;
    });
  for (const LossKind loss : {LossKind::mse, LossKind::mae, LossKind::relative_l2})
    for (const GradientReduceType type : {GradientReduceType::mean, GradientReduceType::sum})
      changes.emplace_back([=](Experiment& e) {
        e.training.loss = loss;
        e.training.distributed.gradient_reduce_type = type;
        e.training.learning_rate = 1e-3;
      });
  for (const OptimizerConfig& optimizer :
       {OptimizerConfig{.kind = OptimizerKind::sgd, .momentum = 0.9},
        OptimizerConfig{.kind = OptimizerKind::sgd, .momentum = 0.9, .nesterov = true},
        OptimizerConfig{.kind = OptimizerKind::adam},
        OptimizerConfig{.kind = OptimizerKind::adamw, .weight_decay = 0.1},
        OptimizerConfig{.kind = OptimizerKind::adamw,
        .weight_decay = 2,
        .weight_decay_on = WeightDecayOn::kernels},
        OptimizerConfig{.kind = OptimizerKind::rmsprop}})
    changes.emplace_back([=](Experiment& e) {
      e.training.optimizer = optimizer;
      e.training.learning_rate = 1e-3;
    });
  for (const ScheduleConfig& schedule :
       {ScheduleConfig{.kind = ScheduleKind::exponential, .steps = 2, .rate = 0.5},
        ScheduleConfig{.kind = ScheduleKind::cosine, .steps = 4, .end_factor = 0.1},
        ScheduleConfig{.kind = ScheduleKind::linear, .steps = 5},
        ScheduleConfig{.kind = ScheduleKind::step, .steps = 2, .rate = 0.1},
        ScheduleConfig{.kind = ScheduleKind::warmup_cosine, .steps = 5, .warmup_steps = 2},
        ScheduleConfig{.kind = ScheduleKind::constant, .warmup_steps = 3, .start_factor = 0.1},
        ScheduleConfig{.kind = ScheduleKind::wsd,
        .steps = 5,
        .end_factor = 0.2,
        .decay_steps = 2,
        .warmup_steps = 1}})
    changes.emplace_back([=](Experiment& e) { e.training.schedule = schedule; });
  return changes;
}

TEST(Strategies, ComputationsOfAStepInFloat64) {
  const std::vector<std::function<void(Experiment&)>> changes = computations();
  for (std::size_t number = 0; number < changes.size(); ++number) {
    SCOPED_TRACE(testing::Message() << "computation " << number);
    Experiment setup = primes(13);
    setup.training.optimizer.kind = OptimizerKind::sgd;
    changes[number](setup);
    const bool is_sgd = setup.training.optimizer.kind == OptimizerKind::sgd;
    expect_trains_like_one_rank<double>(setup, is_sgd ? 1e-11 : 1e-9);
  }
}

TEST(Strategies, WeightDecayOfKernelsOnlyCutsSharesWhereItChanges) {
  for (const Size bucket_bytes : {1, 300, 1 << 20}) {
    Experiment base = primes(13);
    base.training.optimizer = {
        .kind = OptimizerKind::adamw, .weight_decay = 3, .weight_decay_on = WeightDecayOn::kernels};
    base.training.microbatches = 2;
    base.training.distributed.bucket_bytes = bucket_bytes;
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      SCOPED_TRACE(testing::Message() << what << ", buckets of " << bucket_bytes);
      expect_trains_like_one_rank<double>(setup, 1e-9);
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

/// A variant of a training. `needs_model`: only meshes whose last axis is `model` allow it.
struct Variant {
  std::function<void(Experiment&)> change;
  bool needs_model = false;
};

std::vector<Variant> variants() {
  const auto clips = [](Experiment& e) {
    e.training.clip = {.global_norm = 0.1, .value = 0.05};
    e.training.check_finite = true;
  };
  const auto splits_rows = [](Experiment& e) { e.training.distributed.sequence_parallel = true; };
  return {{[](Experiment& e) {
            e.model.mlp.activation = e.model.mlp.output_activation = Activation::gelu;
          }},
          {[](Experiment& e) {
            e.model.mlp.bias = false;
            e.training.loss = LossKind::relative_l2;
          }},
          // One layer: its output is sharded, its input is data.
          {[](Experiment& e) {
            e.model.mlp.widths = {3, 5};
          }},
          // Some of 8 ranks have no column.
          {[](Experiment& e) {
            e.model.mlp.widths = {2, 3, 2, 1, 2};
          }},
          // Some ranks have no rows.
          {[](Experiment& e) { e.training.batch_size = e.training.microbatches = 3; }},
          {clips},
          {[=](Experiment& e) {
            clips(e);
            e.training.distributed.overlap = true;
          }},
          {splits_rows, true},
          {[=](Experiment& e) {
             splits_rows(e);
             e.model.mlp.activation = Activation::gelu;
             e.training.microbatches = 3;
           },
           true},
          {[](Experiment& e) {
             e.training.distributed.mesh_rules = {{"mlp", {}}, {"embed", {"model"}}};
           },
           true},
          {[](Experiment& e) {
             e.training.distributed.mesh_rules = {{"mlp", {}}};
           },
           true}};
}

TEST(Strategies, VariantsInFloat64) {
  const std::vector<Variant> all = variants();
  for (std::size_t number = 0; number < all.size(); ++number) {
    Experiment base = primes(13);
    base.training.optimizer.kind = OptimizerKind::sgd;
    all[number].change(base);
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      const bool has_model = setup.training.distributed.mesh_axis_names.back() == "model";
      if (all[number].needs_model && !has_model) return;
      SCOPED_TRACE(testing::Message() << what << ", variant " << number);
      expect_trains_like_one_rank<double>(setup, 1e-11);
    });
  }
}

/// Three kernels, each replicated, column-parallel or row-parallel, in every order.
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

}  // namespace
}  // namespace tessera
