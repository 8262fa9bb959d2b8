// SPDX-License-Identifier: Apache-2.0
// Experts on ranks of their own (mesh axis `expert`): every strategy trains like the layers on one
// rank, with the traffic and the memory of its plan.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/local_tensors.hpp>

#include "checkpoint/resume_support.hpp"
#include "engine/precision_support.hpp"
#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::expect_trains_like_its_layers;
using train_test::Experiment;
using train_test::on_mesh;

Size ranks_of_experts() { return Communicator::world().size(); }

std::vector<Axes> expert_meshes() {
  switch (ranks_of_experts()) {
    case 4:
      return {{{"expert", 4}},
              {{"data", 2}, {"expert", 2}},
              {{"expert", 2}, {"fsdp", 2}},
              {{"expert", 2}, {"model", 2}},
              {{"model", 2}, {"expert", 2}},
              {{"expert", 2}, {"context", 2}},
              {{"context", 2}, {"model", 2}}};
    case 6:
      return {{{"expert", 3}, {"data", 2}},
              {{"model", 3}, {"expert", 2}},
              {{"context", 3}, {"expert", 2}}};
    case 8:
      return {{{"expert", 8}},
              {{"data", 2}, {"expert", 2}, {"fsdp", 2}},
              {{"fsdp", 2}, {"expert", 2}, {"model", 2}},
              {{"context", 2}, {"expert", 2}, {"model", 2}},
              {{"expert", 4}, {"model", 2}}};
    default:
      return {{{"expert", ranks_of_experts()}}, {{"context", ranks_of_experts()}}};
  }
}

/// Returns 5 experts, or 6 if an axis `model` must divide them: on most meshes, ranks have
/// different numbers of them, and of samples.
Experiment with_experts(const Axes& axes) {
  Experiment setup =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  const bool has_model = MeshShape(axes).size_of("model") > 1;
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {.vocabulary = 11,
                             .context = 5,
                             .width = 12,
                             .heads = 6,
                             .blocks = 2,
                             .inner_width = 7,
                             .experts = has_model ? 6 : 5,
                             .top_k = 2,
                             .capacity_factor = 1,
                             .balance_loss = 0.3,
                             .router_z_loss = 0.1};
  return setup;
}

template <class F>
void for_expert_meshes(const F& f) {
  for (const Axes& axes : expert_meshes())
    for (const std::string_view strategy : names_of<Strategy>) {
      if (!train_test::suits(strategy, MeshShape(axes))) continue;
      SCOPED_TRACE(std::string(strategy) + " on " + MeshShape(axes).to_string());
      f(train_test::with_options_that_act(on_mesh(with_experts(axes), axes, strategy)));
    }
}

TEST(ExpertAxis, TrainsLikeOneRankUnderEveryStrategy) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam})
    for_expert_meshes([&](Experiment one) {
      SCOPED_TRACE(name_of(optimizer));
      one.training.optimizer.kind = optimizer;
      one.training.microbatches = optimizer == OptimizerKind::sgd ? 1 : 3;
      if (optimizer == OptimizerKind::adam) one.training.learning_rate = 0.01;
      one.training.check_replicas_every = 1;
      if (one.training.distributed.mesh_axis_names.back() == "context" ||
          one.training.distributed.mesh_axis_names.front() == "context")
        one.training.distributed.zigzag = optimizer == OptimizerKind::sgd;
      if (optimizer == OptimizerKind::adam) one.training.distributed.overlap = false;
      expect_trains_like_its_layers(one);
    });
}

TEST(ExpertAxis, ClipsByTheNormOfAllExperts) {
  const Axes axes = expert_meshes().back();
  const auto losses = [&](const Axes& on, double norm) {
    Experiment one = on_mesh(with_experts(axes), on, "fsdp");
    one.training.clip.global_norm = norm;
    one.training.microbatches = 2;
    Trainer<double> trainer = train_test::trainer_of<double>(one);
    const TrainingMetrics metrics = trainer.fit(one.data);
    EXPECT_EQ(plan_violation(metrics), "");
    return metrics.epoch_losses;
  };
  const auto clipped = losses(axes, 0.05);
  EXPECT_LE(train_test::relative_difference(clipped, losses({{"data", ranks_of_experts()}}, 0.05)),
            1e-11);
  EXPECT_GT(train_test::relative_difference(clipped, losses(axes, 1e6)), 1e-3);
}

TEST(ExpertAxis, OnAPipelineWithRecomputation) {
  std::vector<Axes> meshes;
  if (ranks_of_experts() % 2 == 0 && ranks_of_experts() > 2)
    meshes.push_back({{"pipeline", 2}, {"expert", ranks_of_experts() / 2}});
  if (ranks_of_experts() < 4) meshes.push_back({{"expert", ranks_of_experts()}});
  if (ranks_of_experts() == 8) meshes.push_back({{"fsdp", 2}, {"pipeline", 2}, {"expert", 2}});
  for (const Axes& axes : meshes)
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble})
      for (const Size segment : {0, 1, 3}) {
        const bool has_stages = MeshShape(axes).size_of("pipeline") > 1;
        if (!has_stages && schedule != PipelineSchedule::one_f_one_b) continue;
        Experiment one = on_mesh(with_experts(axes), axes, "fsdp");
        one.training.microbatches = 3;
        one.training.distributed.schedule = schedule;
        one.training.activation_checkpointing.units = segment;
        SCOPED_TRACE(testing::Message() << MeshShape(axes).to_string() << ", " << name_of(schedule)
                                        << ", segments of " << segment);
        expect_trains_like_its_layers(one);
      }
}

TEST(ExpertAxis, CheckpointsResumeOnEveryMesh) {
  std::vector<Experiment> setups;
  for_expert_meshes([&](const Experiment& one) { setups.push_back(one); });
  setups.push_back(
      on_mesh(with_experts(expert_meshes().back()), {{"data", ranks_of_experts()}}, "data"));
  for (Experiment& one : setups) {
    one.model.transformer.experts = 6;
    one.training.optimizer.kind = OptimizerKind::adam;
    one.training.learning_rate = 0.01;
  }
  const auto whole = checkpoint_test::run<double>(setups.back(), {});
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const checkpoint_test::SharedDirectory directory;
    checkpoint_test::run<double>(
        setups[i], {.config = {.directory = directory.path(), .every_steps = 4, .at_end = false}});
    const auto end = checkpoint_test::run<double>(setups[(i + 1) % setups.size()], {},
                                                  checkpoint_test::file_of(directory, 4));
    EXPECT_LE(train_test::relative_difference(end.metrics.epoch_losses, whole.metrics.epoch_losses),
              1e-9);
    EXPECT_LE(train_test::relative_difference(end.parameters, whole.parameters), 1e-8);
  }
}

TEST(ExpertAxis, MixedPrecision) {
  Experiment setup =
      on_mesh(with_experts(expert_meshes().front()), expert_meshes().front(), "fsdp");
  setup.model.dtype = DType::float32;
  setup.training.learning_rate = 0.01;
  setup.training.microbatches = 2;
  setup = train_test::in_precision<BFloat16>(setup);
  train_test::expect_like_alone<BFloat16>(train_test::train_short<BFloat16>(setup),
                                          train_test::train_alone<BFloat16>(setup));
}

TEST(ExpertAxis, EvaluatesLikeOneRank) {
  for_expert_meshes([&](const Experiment& one) {
    Trainer<double> trainer = train_test::trainer_of<double>(one);
    trainer.fit(one.data);
    const auto all = train_test::samples_of<double>(one);
    test::SerialModel<double> alone(make_model(one.model), one.data.samples,
                                    LossKind::cross_entropy);
    Kokkos::deep_copy(alone.parameters(), trainer.gather());
    alone.loss(all.x, all.y);
    const double cross_entropy =
        train_test::to_host(alone.loss_sum())[0];  // the other sums are of routers
    const double targets = static_cast<double>(all.y.extent(0));
    EXPECT_NEAR(trainer.evaluate(all.x, all.y), cross_entropy / targets, 1e-12);
  });
}

TEST(ExpertAxis, MistakesInItsCallsAreSeen) {
  if (ranks_of_experts() < 4 || ranks_of_experts() % 2 != 0) GTEST_SKIP() << "needs two axes";
  const Axes axes{{"data", 2}, {"expert", ranks_of_experts() / 2}};
  Experiment setup = on_mesh(with_experts(axes), axes, "data");
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  setup.training.distributed.overlap = false;
  const Config config{setup.model, setup.data, setup.training, {}};
  const Mesh mesh(Communicator::world(), resolve_mesh(config, ranks_of_experts()));
  const Plan plan = make_plan(plan_input(config, mesh.shape()));
  const auto difference = [&](const Plan& changed) {
    Engine<double> engine(changed, mesh, StepOptions::of(setup.training));
    const auto data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
    engine.step(data.batch(0), 0, setup.training.learning_rate);
    return train_test::relative_difference(
        train_test::to_host(whole_tensors(plan, mesh, engine, TensorRole::gradient)),
        train_test::train_alone(plan.input.model, setup).gradients);
  };
  EXPECT_LE(difference(plan), 1e-11);
  const auto change_first = [&](const auto& is_wanted, const auto& change) {
    Plan wrong = plan;
    auto& actions = wrong.stages.front().actions;
    const auto at = std::find_if(actions.begin(), actions.end(), is_wanted);
    ASSERT_NE(at, actions.end());
    change(actions, at);
    EXPECT_GT(difference(wrong), 1e-3);
  };
  const auto erase = [](auto& actions, const auto& at) { actions.erase(at); };
  const auto reduces_experts = [](const ListedAction& listed) {
    const auto* reduce = listed.as<Reduce>();
    return reduce != nullptr && reduce->ranks == RankSet::expert_replica;
  };
  change_first(reduces_experts, erase);
  change_first(reduces_experts, [](auto&, const auto& at) {
    std::get<Reduce>(at->action).ranks = RankSet::replica;
  });
  change_first([](const ListedAction& a) { return a.as<Move>() != nullptr; }, erase);
}

TEST(ExpertAxis, WarmStepsAllocateNothing) {
  for (const Axes& axes : expert_meshes())
    train_test::expect_no_allocation_when_warm<double>(on_mesh(with_experts(axes), axes, "fsdp"));
}

}  // namespace
}  // namespace tessera
