// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include <tessera/base/allocation_tracker.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/step_options.hpp>
#include <tessera/plan/last_batch.hpp>
#include <tessera/plan/traffic.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

Config assemble(const ModelConfig& model, const TrainingConfig& training, const CommConfig& comm) {
  Config config{model, {}, training, comm};
  // The data arrive with fit(); until then any that suit the model and the batch.
  config.data.kind = DataKind::random;
  config.data.samples = training.batch_size;
  return config;
}

/// Collective: ranks whose options differ cannot even agree through a communicator that has them.
CommOptions agreed_options(const Config& config) {
  // Without the stand-in for the data, which nobody gave.
  check_same_on_all_ranks(Communicator::world(), {config.model, {}, config.training, config.comm});
  CommOptions options;
  options.timeout_seconds = config.comm.timeout_seconds;
  options.check_collectives = config.comm.check_collectives;
  return options;
}

MeshShape valid_mesh(const Config& config, Size ranks) {
  validate(config, ranks);
  return resolve_mesh(config, ranks);
}

template <class T>
void check_dtype(DType dtype) {
  if (dtype != dtype_of<T>())
    throw ConfigError("model.dtype", name_of(dtype),
                      fmt::format("must be {}, the trainer's", name_of(dtype_of<T>())));
}

/// Throws the same ConfigError on every rank unless all of them give the same value.
void check_same_everywhere(const Communicator& world, const char* key, Size value) {
  const Kokkos::View<std::int64_t[2], Kokkos::HostSpace> largest("tessera::agreed_value");
  largest(0) = value;
  largest(1) = -value;
  world.all_reduce(largest, ReduceOp::max);
  if (largest(0) != -largest(1))
    throw ConfigError(key, std::to_string(-largest(1)),
                      fmt::format("must be the same on every rank, but one has {}", largest(0)));
}

/// Seconds of the slowest rank; nobody waits for a clock while steps are timed.
void take_slowest(const Communicator& world, TrainingMetrics& metrics) {
  const Kokkos::View<double[2], Kokkos::HostSpace> seconds("tessera::seconds");
  seconds(0) = metrics.stepping_seconds;
  seconds(1) = metrics.wall_seconds;
  world.all_reduce(seconds, ReduceOp::max);
  metrics.stepping_seconds = seconds(0);
  metrics.wall_seconds = seconds(1);
}

}  // namespace

template <class T>
Trainer<T>::Trainer(const ModelConfig& model, const TrainingConfig& training,
                    const CommConfig& comm)
    : config_(assemble(model, training, comm)),
      world_(Communicator::world(agreed_options(config_))),
      mesh_(world_, valid_mesh(config_, world_.size())),
      model_(mlp(config_.model.mlp)) {
  check_dtype<T>(model.dtype);
}

template <class T>
Plan Trainer<T>::plan(Size samples) const {
  Config config = config_;
  config.data.samples = samples;
  validate(config, mesh_.shape().num_ranks());
  return make_plan(plan_input(config, mesh_.shape()));
}

template <class T>
TrainingMetrics Trainer<T>::fit(const Matrix<T>& x, const Matrix<T>& y,
                                const EpochObserver& observe) {
  const Plan common = collectively(world_, [&] { return plan(static_cast<Size>(x.extent(0))); });
  check_same_everywhere(world_, "rows of x", common.input.samples);
  return train(
      common, [&](const Plan& plan) { return Dataset<T>::wrap(plan, mesh_.rank(), x, y); },
      observe);
}

template <class T>
TrainingMetrics Trainer<T>::fit(const DataConfig& data, const EpochObserver& observe) {
  Config config = config_;
  config.data = data;
  check_same_on_all_ranks(world_, config);
  validate(config, mesh_.shape().num_ranks());
  return train(
      plan(data.samples),
      [&](const Plan& plan) { return Dataset<T>::generate(plan, mesh_.rank(), data); }, observe);
}

template <class T>
Vector<T> Trainer<T>::gather(TensorRole role) const {
  return whole_tensors(*plan_, mesh_, *engine_, role);
}

template <class T>
template <class MakeData>
TrainingMetrics Trainer<T>::train(const Plan& plan, const MakeData& make_data,
                                  const EpochObserver& observe) {
  const Timer wall;
  TrainingMetrics metrics;
  std::optional<Dataset<T>> data;
  replicas_are_equal_.reset();  // what is freed later would be missing in the peak of the memory
  engine_.reset();
  // The engine's communicators are made by all ranks together, before one of them can fail alone.
  const Groups groups(plan.input, mesh_);
  {
    const AllocationScope allocations("tessera::");
    collectively(world_, [&] {
      data.emplace(make_data(plan));
      engine_.emplace(plan, mesh_, step_options(config_.training));
      if (plan.input.check_replicas_every > 0) replicas_are_equal_.emplace(plan, mesh_, *engine_);
    });
    metrics.measured_bytes = allocations.by_space()[MemSpace::name()].peak_bytes;
  }
  plan_ = plan;
  metrics.planned_bytes = plan.memory(mesh_.rank()).total();
  if (!data->owns_memory()) metrics.planned_bytes -= plan.memory(mesh_.rank()).data;

  mesh_.world().ledger().reset();
  run_epochs(plan, *data, observe, metrics);
  metrics.measured_traffic = mesh_.world().ledger().rows();
  metrics.wall_seconds = wall.seconds();
  take_slowest(world_, metrics);
  return metrics;
}

template <class T>
void Trainer<T>::run_epochs(const Plan& plan, const Dataset<T>& data, const EpochObserver& observe,
                            TrainingMetrics& metrics) {
  const TrainingConfig& training = config_.training;
  const Size batches = data.num_batches();
  const Plan last_plan = plan_last_batch(plan);
  std::vector<Size> global_rows(batches, plan.input.global_batch);
  global_rows.back() = last_plan.input.global_batch;

  const Size checked_every = training.check_replicas_every;

  for (Size epoch = 1; epoch <= training.num_epochs; ++epoch) {
    const Timer stepping;
    for (Size k = 0; k < batches; ++k) {
      const Plan& step_plan = k + 1 == batches ? last_plan : plan;
      engine_->step(step_plan, data.batch(k), k,
                    learning_rate_at(training.schedule, training.learning_rate, metrics.steps++));
      if (checked_every > 0 && metrics.steps % checked_every == 0)
        (*replicas_are_equal_)(metrics.steps);
    }
    Kokkos::fence();
    metrics.stepping_seconds += stepping.seconds();

    const std::vector<double> losses = engine_->losses(global_rows);
    const double loss =
        std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(batches);
    metrics.epoch_losses.push_back(loss);
    metrics.samples += data.num_samples();
    // Ranks along `model` have computed it apart; none of them may leave alone.
    collectively(world_, [&] {
      if (!std::isfinite(loss))
        throw Error(ExitCode::wrong_result,
                    fmt::format("training diverged: the loss of epoch {} is {}", epoch,
                                std::isnan(loss) ? "not a number" : "infinite"));
    });
    if (observe) observe(epoch, loss);
  }
  const Size checks = checked_every > 0 ? metrics.steps / checked_every : 0;
  metrics.planned_traffic =
      planned_traffic({{&plan, (batches - 1) * training.num_epochs, training.num_epochs, checks},
                       {&last_plan, training.num_epochs, 0, 0}},
                      mesh_.rank());
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace tessera
