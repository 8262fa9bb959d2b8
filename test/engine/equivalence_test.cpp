// SPDX-License-Identifier: Apache-2.0
// Training on any number of ranks equals training on one, written down a second time (Reference).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/training_support.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::primes;

struct Case {
  std::string name;
  Experiment setup;
};

template <class Change>
Case varied(const std::string& name, Change change, Size batch = 13) {
  Case one{name, primes(batch)};
  one.setup.training.optimizer.kind = OptimizerKind::sgd;
  change(one.setup);
  return one;
}

/// How batches, microbatches, buckets and overlap go together: all ways of a batch that divides
/// nothing, and for the other batches every pair of two of them.
std::vector<Case> schedules() {
  const std::vector<Size> caps = {1, 300, 1 << 20};
  std::vector<Case> cases;
  for (Size batch : {16, 13, 3})
    for (Size microbatches : {1, 3, 5})
      for (bool overlap : {false, true})
        for (std::size_t cap = 0; cap < caps.size(); ++cap) {
          const bool chosen = (static_cast<std::size_t>(microbatches / 2) + overlap) % 3 == cap;
          if (microbatches > batch || (batch != 13 && !chosen)) continue;
          const auto kind = (cap == 1) == overlap ? OptimizerKind::adam : OptimizerKind::sgd;
          cases.push_back(varied(
              "batch " + std::to_string(batch) + ", microbatches " + std::to_string(microbatches) +
                  ", bucket_bytes " + std::to_string(caps[cap]) + (overlap ? ", overlap, " : ", ") +
                  std::string(name_of(kind)),
              [&](Experiment& e) {
                e.training.optimizer.kind = kind;
                e.training.microbatches = microbatches;
                e.training.distributed.bucket_bytes = caps[cap];
                e.training.distributed.overlap = overlap;
              },
              batch));
        }
  return cases;
}

/// What a step computes.
std::vector<Case> computations() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, auto change) {
    cases.push_back(varied(name, change));
  };
  for (Activation a : {Activation::identity, Activation::relu, Activation::tanh,
                       Activation::sigmoid, Activation::gelu})
    add("activation " + std::string(name_of(a)), [&](Experiment& s) {
      s.model.mlp.activation = a;
      s.model.mlp.output_activation = a == Activation::relu ? Activation::identity : a;
    });
  for (LossKind loss : {LossKind::mse, LossKind::mae, LossKind::relative_l2})
    for (const GradientReduceType type : {GradientReduceType::mean, GradientReduceType::sum})
      add(fmt::format("loss {}, {}", name_of(loss), name_of(type)), [&](Experiment& s) {
        s.training.loss = loss;
        s.training.distributed.gradient_reduce_type = type;
        s.training.learning_rate = 1e-3;
      });
  add("no bias", [](Experiment& s) { s.model.mlp.bias = false; });
  add("adam, sum", [](Experiment& s) {
    s.training.optimizer.kind = OptimizerKind::adam;
    s.training.distributed.gradient_reduce_type = GradientReduceType::sum;
  });
  add("momentum", [](Experiment& s) { s.training.optimizer.momentum = 0.9; });
  add("nesterov", [](Experiment& s) {
    s.training.optimizer.momentum = 0.9;
    s.training.optimizer.nesterov = true;
  });
  add("adamw", [](Experiment& s) {
    s.training.optimizer.kind = OptimizerKind::adamw;
    s.training.optimizer.weight_decay = 0.1;
  });
  add("rmsprop", [](Experiment& s) {
    s.training.optimizer.kind = OptimizerKind::rmsprop;
    s.training.learning_rate = 1e-3;
  });
  add("clip by norm", [](Experiment& s) { s.training.clip.global_norm = 0.1; });
  add("clip by value", [](Experiment& s) { s.training.clip.value = 0.01; });
  add("clip by both, adam", [](Experiment& s) {
    s.training.optimizer.kind = OptimizerKind::adam;
    s.training.clip = {.global_norm = 0.1, .value = 0.02};
  });
  add("clip of microbatches", [](Experiment& s) {
    s.training.microbatches = 3;
    s.training.distributed.overlap = true;
    s.training.distributed.bucket_bytes = 1;
    s.training.clip.global_norm = 0.1;
  });
  for (ScheduleConfig schedule :
       {ScheduleConfig{.kind = ScheduleKind::exponential, .steps = 2, .rate = 0.5},
        ScheduleConfig{.kind = ScheduleKind::cosine, .steps = 4, .end_factor = 0.1},
        ScheduleConfig{.kind = ScheduleKind::linear, .steps = 5},
        ScheduleConfig{.kind = ScheduleKind::step, .steps = 2, .rate = 0.1},
        ScheduleConfig{.kind = ScheduleKind::warmup_cosine, .steps = 5, .warmup_steps = 2}})
    for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam})
      add("schedule " + std::string(name_of(schedule.kind)) + ", " + std::string(name_of(kind)),
          [&](Experiment& s) {
            s.training.schedule = schedule;
            s.training.optimizer.kind = kind;
          });
  return cases;
}

/// One step and its gradient, then the whole training: losses, parameters, traffic and memory.
template <class T>
void expect_equivalence(const Case& one, double tolerance) {
  SCOPED_TRACE(one.name);
  Experiment step = one.setup;
  step.training.num_epochs = 1;
  step.data.samples = step.training.batch_size;
  {
    const train_test::Samples<T> all = train_test::samples_of<T>(step);
    train_test::Reference reference = train_test::reference_of(step);
    const auto losses = reference.fit(train_test::to_table(all.x), train_test::to_table(all.y));
    Trainer<T> trainer = train_test::trainer_of<T>(step);
    const TrainingMetrics metrics = trainer.fit(step.data);
    EXPECT_LE(train_test::relative_difference(metrics.epoch_losses, losses), tolerance);
    EXPECT_LE(train_test::relative_difference(
                  train_test::to_host(trainer.gather(TensorRole::gradient)), reference.gradients()),
              tolerance);
  }

  const Experiment& setup = one.setup;
  const train_test::Samples<T> all = train_test::samples_of<T>(setup);
  train_test::Reference reference = train_test::reference_of(setup);
  const auto losses = reference.fit(train_test::to_table(all.x), train_test::to_table(all.y));
  Trainer<T> trainer = train_test::trainer_of<T>(setup);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_LE(train_test::relative_difference(metrics.epoch_losses, losses), tolerance);
  const std::vector<double> parameters = train_test::to_host(trainer.gather());
  // A gradient element of almost zero moves a parameter by a whole step of Adam, either way.
  EXPECT_LE(train_test::relative_difference(parameters, reference.parameters()), 10 * tolerance);
  EXPECT_EQ(plan_violation(metrics), "");
  std::vector<double> all_numbers = parameters;
  all_numbers.insert(all_numbers.end(), metrics.epoch_losses.begin(), metrics.epoch_losses.end());
  train_test::expect_same_on_all_ranks(trainer.mesh().world(), all_numbers, "parameters or losses");
}

TEST(Equivalence, BatchesMicrobatchesBucketsAndOverlapInFloat32) {
  for (const Case& one : schedules()) expect_equivalence<float>(one, 1e-5);
}

TEST(Equivalence, ComputationsInFloat32) {
  for (const Case& one : computations()) expect_equivalence<float>(one, 1e-5);
}

TEST(Equivalence, ComputationsInFloat64) {
  for (const Case& one : computations()) expect_equivalence<double>(one, 1e-11);
}

TEST(Equivalence, OneRankByItselfIsTheSame) {
  const Experiment setup = primes();
  const Communicator alone = Communicator::world().alone("alone");
  PlanInput input;
  input.model = mlp(setup.model.mlp);
  input.global_batch = input.samples = setup.training.batch_size;
  const Plan plan = make_plan(input);
  const Mesh mesh(alone, input.mesh);
  Engine<float> engine(plan, mesh, {});
  const Dataset<float> data = Dataset<float>::generate(plan, 0, setup.data);
  engine.step(data.batch(0), 0, setup.training.learning_rate);

  Experiment step = setup;
  step.training.num_epochs = 1;
  step.data.samples = step.training.batch_size;
  Trainer<float> trainer = train_test::trainer_of<float>(step);
  trainer.fit(step.data);
  EXPECT_LE(
      train_test::relative_difference(train_test::to_host(trainer.gather(TensorRole::gradient)),
                                      train_test::to_host(engine.gradients().flat())),
      1e-5);
}

}  // namespace
}  // namespace tessera
