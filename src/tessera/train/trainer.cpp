// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/sample_checksums.hpp>
#include <tessera/engine/replicas.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

Config assemble(const ModelConfig& model, const TrainingConfig& training, const CommOptions& comm,
                const CheckpointConfig& checkpoint, const OutputConfig& output) {
  Config config{model, {}, training, comm, checkpoint, output};
  // fit() gets the data. Until then, random data stand for them.
  config.data.kind = DataKind::random;
  config.data.samples = training.batch_size;
  const bool validates =
      training.validate_every != TrainingConfig{}.validate_every || training.patience > 0;
  config.data.validation_samples = validates ? 1 : 0;
  return config;
}

/// Checks that all ranks have the same configuration and returns its communicator options. Ranks
/// with different options could not agree through a communicator that uses them, so this one has
/// default options, except for the time limit. Collective.
CommOptions agreed_options(const Config& config) {
  Config given = config;
  given.data = {};
  const double asked = config.comm.timeout_seconds;
  CommOptions options;
  options.timeout_seconds =
      asked > 0 && asked <= longest_timeout_seconds ? asked : longest_timeout_seconds;
  check_same_on_all_ranks(Communicator::world(options), given);
  return config.comm;
}

MeshShape valid_mesh(const Config& config, const Topology& topology, const Communicator& world) {
  validate(config, topology);
  check_nodes(config.training.distributed, topology);
  collectively(world, [&] { check_threads(config.training.distributed, Kokkos::num_threads()); });
  return resolve_mesh(config, topology);
}

template <class T>
void check_types(const Config& config) {
  const DType dtype = config.model.dtype, wanted = dtype_of<StateOf<T>>();
  if (dtype != wanted)
    throw ConfigError("model.dtype", name_of(dtype), "must be {}, the type of this trainer",
                      name_of(wanted));
  if (compute_type(config) != dtype_of<T>())
    throw ConfigError("distributed.mixed_precision",
                      name_of(config.training.distributed.mixed_precision),
                      "needs a trainer that computes with {}, not {}",
                      name_of(compute_type(config)), name_of(dtype_of<T>()));
}

/// Replaces times by those of the slowest rank. Collective.
void take_slowest(const Communicator& world, TrainingMetrics& metrics) {
  const Kokkos::View<double[2], Kokkos::HostSpace> seconds("tessera::seconds");
  seconds(0) = metrics.stepping_seconds;
  seconds(1) = metrics.wall_seconds;
  world.all_reduce(seconds, ReduceOp::max);
  metrics.stepping_seconds = seconds(0);
  metrics.wall_seconds = seconds(1);
}

/// Empties an optional at the end of the scope.
template <class Optional>
struct Release {
  Optional& what;
  ~Release() { what.reset(); }
};
template <class Optional>
Release(Optional&) -> Release<Optional>;

void take_costs(const CheckpointStore& store, const CheckpointBytes& planned,
                TrainingMetrics& metrics) {
  const SaveCosts& costs = store.costs();
  metrics.checkpoints = costs.saves;
  metrics.checkpoint_seconds = costs.seconds;
  metrics.checkpoint_wait_seconds = costs.waited_seconds;
  metrics.checkpoint_hidden_seconds = costs.hidden_seconds;
  metrics.measured.checkpoint_bytes_written = costs.written_bytes;
  metrics.planned.checkpoint_bytes_written = costs.saves * planned.written;
  metrics.last_checkpoint = store.last().string();
}

}  // namespace

template <class T>
Trainer<T>::Trainer(const ModelConfig& model, const TrainingConfig& training,
                    const CommOptions& comm, const Checkpointing& checkpointing,
                    const Reporting& reporting)
    : config_(assemble(model, training, comm, checkpointing.config, reporting.output)),
      world_(Communicator::world(agreed_options(config_))),
      topology_(topology_of(world_, config_)),
      mesh_(world_, valid_mesh(config_, topology_, world_)),
      model_(make_model(config_)),
      checkpointing_(checkpointing),
      reporting_(reporting) {
  Size& keep_best = checkpointing_.config.keep_best;
  if (training.patience > 0) keep_best = std::max<Size>(keep_best, 1);
  check_types<T>(config_);
}

template <class T>
Plan Trainer<T>::plan(Size samples) const {
  DataConfig data = config_.data;
  data.samples = samples;
  data.validation_samples = 0;
  return plan_of(data);
}

template <class T>
Plan Trainer<T>::plan_of(const DataConfig& data) const {
  Config config = config_;
  config.data = data;
  tessera::validate(config, topology_);
  return make_plan(plan_input(config, mesh_.shape()));
}

template <class T>
Size Trainer<T>::samples_of(const Matrix<Data>& x) const {
  const Size rows = static_cast<Size>(x.extent(0)), positions = model_.input_positions;
  if (rows % positions != 0)
    throw ConfigError("rows of x", std::to_string(rows),
                      "must be a multiple of {}, the number of positions per sample", positions);
  return rows / positions;
}

template <class T>
TrainingMetrics Trainer<T>::fit(const Matrix<Data>& x, const Matrix<Data>& y,
                                const EpochObserver& observe) {
  const Plan common = collectively(world_, [&] { return plan(samples_of(x)); });
  check_same_everywhere(world_, "samples of x", common.input.samples);
  if (checkpointing_.config.enabled() || !resume_from_.empty())
    data_checksums_ = sample_checksums(x, y, model_);
  fit_config_ = config_;
  fit_config_.data.samples = common.input.samples;
  return train(
      common,
      [&](const Plan& plan) {
        return TrainingData<Data>{Dataset<Data>::wrap(plan, mesh_.rank(), x, y)};
      },
      observe);
}

template <class T>
TrainingMetrics Trainer<T>::fit(const DataConfig& data, const EpochObserver& observe) {
  Config config = config_;
  config.data = data;
  check_same_on_all_ranks(world_, config);
  data_checksums_ = agreed_checksums(world_, data, model_);
  fit_config_ = config;
  const Plan common = collectively(world_, [&] { return plan_of(data); });
  return train(
      common, [&](const Plan& plan) { return make_data<Data>(plan, mesh_.rank(), data); }, observe);
}

template <class T>
TrainingMetrics Trainer<T>::train(const Plan& plan, const MakeData& make_data,
                                  const EpochObserver& observe) {
  const Timer wall;
  TrainingMetrics metrics;
  // Resuming and saving are checked before data are made.
  const std::string path = std::exchange(resume_from_, {});
  TrainingState state;
  if (!path.empty()) {
    state = state_to_resume(path, world_, fit_config_, data_checksums_);
    continued_ = {std::filesystem::canonical(path).parent_path(), state.step, state.training};
  } else if (continued_ && session_) {
    continued_->step = session_->steps();
  }
  const std::string& weights = checkpointing_.config.init_from;
  std::optional<InitialWeights> initial;
  if (!session_ && path.empty() && !weights.empty()) initial.emplace(weights, world_, config_);
  // Unlocks the directory, also after an error.
  const Release release{saves_};
  if (checkpointing_.config.enabled()) open_saves();
  if (session_)
    session_->change_data(plan, make_data);
  else
    session_.emplace(config_.training, plan, mesh_, make_data);
  metrics.measured.device_bytes = session_->measured_bytes();
  metrics.planned.device_bytes = session_->planned_bytes();

  try {
    if (!path.empty()) read_checkpoint(path, state, metrics);
    if (initial) {
      initial->read(Communicator::world(config_.comm), session_->engine());
      ReplicaCheck<T>(session_->plan(), mesh_, session_->engine())(0);  // nodes may differ in files
      metrics.init_from = weights;
      initial.reset();
    }
  } catch (const Error&) {
    reset();  // it has a part of the file
    throw;
  }
  const LossScale before = engine().loss_scale();
  session_->begin_traffic();
  const Size epochs = config_.training.num_epochs;
  Reporter<T> reporter(reporting_, *session_, epochs,
                       epochs - static_cast<Size>(metrics.epoch_losses.size()));
  try {
    run_epochs(observe, metrics, reporter);
  } catch (const Error& error) {
    // All ranks stop together, so the checkpoint in flight can be finished.
    if (saves_ && error.code() == ExitCode::wrong_result)
      outcome_of([&] { saves_->store.finish(); });
    throw;
  }
  if (saves_) take_costs(saves_->store, checkpoint_bytes(engine().plan(), mesh_.rank()), metrics);
  if (saves_ && checkpointing_.config.keep_best > 0)
    metrics.best_checkpoint = saves_->store.best().string();
  metrics.loss_scale = engine().loss_scale().value();
  metrics.skipped_steps = engine().loss_scale().skipped_steps() - before.skipped_steps();
  metrics.planned.traffic = session_->planned_traffic();
  metrics.measured.traffic = session_->measured_traffic();
  metrics.samples = session_->samples_since();
  metrics.metrics_not_written = reporter.failure();
  metrics.wall_seconds = wall.seconds();
  take_slowest(world_, metrics);
  return metrics;
}

template <class T>
void Trainer<T>::resume(const std::string& path) {
  if (session_)
    throw Error(ExitCode::usage,
                path + ": cannot resume a trainer that has already trained; call reset() first");
  resume_from_ = path;
}

template <class T>
void Trainer<T>::open_saves() {
  const Communicator ranks = Communicator::world(config_.comm);
  saves_.emplace(Saves{ranks,
                       {checkpointing_.config,
                        ranks,
                        checkpointing_.observer,
                        {fingerprint_of(fit_config_, data_checksums_), continued_}},
                       {checkpointing_, ranks}});
  const std::filesystem::path& training = saves_->store.training();
  continued_ = {training, continued_ ? continued_->step : 0, training.filename()};
}

template <class T>
void Trainer<T>::read_checkpoint(const std::string& path, const TrainingState& state,
                                 TrainingMetrics& metrics) {
  const Activity activity("reading " + path);
  const Size batches = session_->data().num_batches();
  // Earlier calls of fit() have made the other steps.
  if (state.batch() >= batches || state.step < state.epoch() * batches + state.batch())
    throw Error(ExitCode::usage, path + ": its step, epoch and batch are inconsistent");
  const Communicator ranks = Communicator::world(config_.comm);
  metrics.measured.checkpoint_bytes_read = read_tensors(path, ranks, engine());
  metrics.planned.checkpoint_bytes_read = checkpoint_bytes(engine().plan(), mesh_.rank()).read;
  session_->resume(state);
  metrics.resumed_at = state.step;
  metrics.epoch_losses = state.epoch_losses;
  const std::size_t parts =
      state.validations.empty() ? 0 : state.validation_parts.size() / state.validations.size();
  for (std::size_t v = 0; v < state.validations.size(); ++v) {
    const auto& [epoch, loss, error] = state.validations[v];
    Validation result{loss, std::isnan(error) ? std::nullopt : std::optional(error)};
    if (parts > 0) {
      const double* const first = state.validation_parts.data() + v * parts;
      result.parts = named_parts(session_->plan().input, {first[0], {first + 1, first + parts}});
    }
    metrics.validations.push_back({static_cast<Size>(epoch), result});
  }
}

/// Runs `write`. A failure ends the training unless checkpoint.on_failure is "continue", and if
/// another run has gone on with the training. `is_last`: the training has ended.
template <class T>
void Trainer<T>::attempt(TrainingMetrics& metrics, bool is_last,
                         const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (checkpointing_.config.on_failure == FailedSave::stop || error.code() != ExitCode::usage ||
        !saves_->store.is_alone())
      throw;
    ++metrics.failed_checkpoints;
    metrics.end_not_saved = error.what();
    if (!is_last) log_warning(fmt::format("{}; continuing without this checkpoint", error.what()));
  }
}

template <class T>
void Trainer<T>::save(TrainingMetrics& metrics, bool is_last) {
  const Activity activity("writing a checkpoint");
  TrainingState state;
  state.step = session_->steps();
  state.loss_scale = engine().loss_scale().state();
  state.epoch_losses = metrics.epoch_losses;
  for (const LossParts& losses : session_->losses_for_checkpoint()) {
    state.losses_so_far.push_back(losses.predictions);
    state.layer_losses_so_far.insert(state.layer_losses_so_far.end(), losses.layers.begin(),
                                     losses.layers.end());
  }
  for (const EpochValidation& one : metrics.validations) {
    state.validations.push_back(
        {static_cast<double>(one.epoch), one.result.loss, one.result.solution_error.value_or(NAN)});
    for (const auto& [name, part] : one.result.parts) state.validation_parts.push_back(part);
  }
  state.config = config_as_json(fit_config_);
  state.provenance = checkpointing_.provenance;
  state.data = data_checksums_;
  CheckpointStore& store = saves_->store;
  attempt(metrics, false, [&] { store.finish(); });
  attempt(metrics, is_last, [&] {
    store.save(engine(), state);
    if (is_last) store.finish();
    metrics.end_not_saved.clear();
  });
  saves_->schedule.saved();
}

TESSERA_INSTANTIATE_CLASS(Trainer);

}  // namespace tessera
