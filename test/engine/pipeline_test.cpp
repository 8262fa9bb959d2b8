// SPDX-License-Identifier: Apache-2.0
// Every schedule of a pipeline under every strategy trains like one rank (Reference), with the
// traffic and the memory of its plan.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::expect_trains_like_one_rank;
using train_test::Experiment;
using train_test::primes;

std::vector<std::string> pipelines(Size ranks) {
  switch (ranks) {
    case 1:
      return {"pipeline=1,data=1"};
    case 4:
      return {"pipeline=4",         "pipeline=2,data=2", "pipeline=2,fsdp=2",
              "pipeline=2,model=2", "data=2,pipeline=2", "model=2,fsdp=1,pipeline=2"};
    case 6:
      return {"pipeline=3,data=2", "fsdp=3,pipeline=2", "pipeline=2,model=3"};
    case 8:
      return {"pipeline=2,data=2,fsdp=2", "pipeline=2,fsdp=2,model=2", "data=2,model=2,pipeline=2",
              "pipeline=4,fsdp=2"};
    default:
      return {"pipeline=" + std::to_string(ranks)};
  }
}

/// Calls f(setup, what) for every schedule with every strategy on every mesh of this launch.
template <class F>
void for_pipelines(const Experiment& base, const F& f) {
  for (const std::string& name : pipelines(Communicator::world().size()))
    for (const std::string_view strategy : names_of<Strategy>)
      for (const std::string_view schedule : names_of<PipelineSchedule>) {
        const MeshShape mesh(parse_axes(name));
        const Size stages = mesh.size_of("pipeline");
        if (!train_test::suits(strategy, mesh)) continue;
        Experiment setup =
            train_test::with_options_that_act(train_test::on_mesh(base, mesh.axes(), strategy));
        DistributedConfig& distributed = setup.training.distributed;
        distributed.schedule = *value_named<PipelineSchedule>(schedule);
        // Five layers allow two chunks on each of two stages.
        if (schedule == "interleaved" && stages == 2) distributed.virtual_stages = 2;
        f(setup, std::string(strategy) + " on " + name + ", " + std::string(schedule));
      }
}

TEST(Pipelines, TrainLikeOneRankWithEvenAndUnevenBatchesAndMicrobatches) {
  for (const auto& [batch, microbatches] : {std::pair<Size, Size>{16, 3}, {13, 1}, {3, 3}}) {
    Experiment base = primes(batch);
    if (batch == 3) base.model.mlp.activation = base.model.mlp.output_activation = Activation::gelu;
    base.training.optimizer.kind = OptimizerKind::sgd;
    base.training.microbatches = microbatches;
    for_pipelines(base, [&](const Experiment& setup, const std::string& what) {
      SCOPED_TRACE(what + ", batch " + std::to_string(setup.training.batch_size));
      expect_trains_like_one_rank<double>(setup, 1e-11);
    });
  }
}

/// The stages are as many as the ranks, the chunks of one layer each.
TEST(Pipelines, InterleaveAnyNumberOfMicrobatchesLikeOneRank) {
  const Size p = Communicator::world().size();
  for (const Size v : {2, 3})
    for (const Size m : {Size{1}, p - 1, p + 1, 2 * p - 1, 2 * p + 1}) {
      if (m == 0) continue;
      Experiment setup = train_test::on_mesh(primes(2 * p + 3), {{"pipeline", p}}, "data");
      std::vector<Size>& widths = setup.model.mlp.widths = {3};
      for (Size l = 1; l <= p * v; ++l) widths.push_back(2 + l % 5);
      setup.training.optimizer.kind = OptimizerKind::sgd;
      setup.training.microbatches = m;
      setup.training.distributed.schedule = PipelineSchedule::interleaved;
      setup.training.distributed.virtual_stages = v;
      SCOPED_TRACE(testing::Message() << v << " chunks, " << m << " microbatches");
      expect_trains_like_one_rank<double>(setup, 1e-11);
    }
}

TEST(Pipelines, OptionsChangeNothing) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes(13);
    base.training.optimizer.kind = OptimizerKind::adam;
    base.training.microbatches = 4;
    base.training.clip = {.global_norm = 0.1, .value = 0.05};
    base.training.check_finite = true;
    base.training.check_replicas_every = 1;
    base.training.distributed.overlap = overlap;
    base.training.distributed.bucket_bytes = 300;
    base.training.distributed.stage_balance = overlap ? StageBalance::flops : StageBalance::layers;
    for_pipelines(base, [&](Experiment setup, const std::string& what) {
      DistributedConfig& distributed = setup.training.distributed;
      if (row_of(distributed.strategy).shards.parameters) distributed.prefetch = overlap;
      distributed.sequence_parallel = overlap && distributed.mesh_axis_names.back() == "model";
      SCOPED_TRACE(what);
      expect_trains_like_one_rank<double>(setup, 1e-7);
    });
  }
}

TEST(Pipelines, WarmStepAllocatesNothing) {
  Experiment base = primes(16);
  base.training.microbatches = 2;
  for_pipelines(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    train_test::expect_no_allocation_when_warm<float>(setup);
  });
}

/// Predictions of the last stage arrive on every rank.
TEST(Pipelines, EvaluateAndPredictLikeOneStage) {
  Experiment base = primes(13);
  base.training.microbatches = 2;
  const train_test::Samples<double> all = train_test::samples_of<double>(base);
  std::vector<double> first;
  for_pipelines(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Trainer<double> trainer = train_test::trainer_of<double>(setup);
    trainer.fit(setup.data);
    const Matrix<double> predicted = trainer.predict(all.x);
    std::vector<double> numbers = train_test::to_host(alias_vector(
        predicted.data(), static_cast<Size>(predicted.extent(0) * predicted.extent(1))));
    numbers.push_back(trainer.evaluate(all.x, all.y));
    if (first.empty()) first = numbers;
    EXPECT_LE(train_test::relative_difference(numbers, first), 1e-7);
    train_test::expect_same_on_all_ranks(trainer.mesh().world(), numbers, "predictions");
  });
}

}  // namespace
}  // namespace tessera
