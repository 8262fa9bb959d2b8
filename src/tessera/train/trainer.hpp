// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/train/checkpointing.hpp>
#include <tessera/train/reporter.hpp>
#include <tessera/train/session.hpp>

namespace tessera {

/// The validation after an epoch, counted from 1.
struct EpochValidation {
  Size epoch = 0;
  Validation result{};
};

/// Traffic and memory of this rank.
struct RankCosts {
  std::vector<LedgerRow> traffic;
  Size device_bytes = 0;  ///< peak; steps allocate nothing
  Size checkpoint_bytes_read = 0, checkpoint_bytes_written = 0;
};

struct TrainingMetrics {
  std::vector<EpochValidation> validations;
  std::vector<double> epoch_losses;  ///< mean batch loss of each epoch, the same on every rank
  /// The parts of the last of these; empty if layers add nothing to the loss, and without a step.
  std::vector<NamedNumber> final_parts;
  Size steps = 0;
  Size samples = 0;             ///< samples of all ranks and epochs
  double stepping_seconds = 0;  ///< time in training steps, of the slowest rank
  double wall_seconds = 0;      ///< time of fit() with set-up and data, of the slowest rank
  RankCosts planned, measured;

  bool stopped = false;  ///< Checkpointing::wants_to_stop ended the training before its last epoch
  bool stopped_early = false;  ///< TrainingConfig::patience ended it
  Size resumed_at = 0;         ///< step of the checkpoint that it resumed from
  std::string init_from{};     ///< file of the initial parameters, if they were not drawn
  Size checkpoints = 0, failed_checkpoints = 0;
  double checkpoint_seconds = 0;         ///< training of this rank waited for checkpoints
  double checkpoint_wait_seconds = 0;    ///< part of these, spent waiting for background writes
  double checkpoint_hidden_seconds = 0;  ///< background writes while training continued
  std::string last_checkpoint{};
  /// The checkpoint with the smallest loss, with CheckpointConfig::keep_best or patience.
  std::string best_checkpoint{};
  /// Why the last checkpoint could not be saved; set with checkpoint.on_failure = "continue".
  std::string end_not_saved{};
  /// Why the files of [output] are incomplete; "" if they are not, and on ranks other than 0.
  std::string metrics_not_written{};

  /// NaN before the first epoch has ended.
  double initial_loss() const { return epoch_losses.empty() ? NAN : epoch_losses.front(); }
  double final_loss() const { return epoch_losses.empty() ? NAN : epoch_losses.back(); }
  /// Returns the first validation with the smallest loss; none without a finite one.
  std::optional<EpochValidation> best_validation() const;
  double loss_scale = 1;   ///< loss scale at the end
  Size skipped_steps = 0;  ///< steps of this fit() whose gradients overflowed

  /// NaN if a resumed training had no step left.
  double seconds_per_step() const {
    return steps == 0 ? NAN : stepping_seconds / static_cast<double>(steps);
  }
  double samples_per_second() const {
    return steps == 0 ? NAN : static_cast<double>(samples) / stepping_seconds;
  }
};

/// Called on every rank after each epoch with its number, from 1, and its loss.
using EpochObserver = std::function<void(Size epoch, double loss)>;

/// Trains a model on the mesh of a configuration. T is the compute type: float, double, or BFloat16
/// and Float16 for mixed precision with data and parameters of float. The constructor and all
/// functions that take data are collective over all ranks of the job.
///
///     tessera::Trainer trainer(model, training);   // float
///     const auto metrics = trainer.fit(x, y);
///     const double loss = trainer.evaluate(x_test, y_test);
///     const auto prediction = trainer.predict(x_test);
template <class T = float>
class Trainer {
 public:
  using Data = StateOf<T>;

  /// Validates the configuration against the launch and makes the mesh. Throws the same ConfigError
  /// on every rank, also if ranks have different configurations. `checkpointing.config.init_from`
  /// is a file with the initial parameters, which are otherwise drawn.
  explicit Trainer(const ModelConfig& model, const TrainingConfig& training = {},
                   const CommOptions& comm = {}, const Checkpointing& checkpointing = {},
                   const Reporting& reporting = {});

  /// Trains on arrays that every rank holds whole: x (samples * input positions, input width) and y
  /// (samples * output positions, target width). Each rank reads its rows in place. The first call
  /// starts from the initial parameters; another one continues with parameters, optimizer and
  /// schedule. Throws Error (wrong_result) if the loss or a state to save is not finite.
  TrainingMetrics fit(const Matrix<Data>& x, const Matrix<Data>& y,
                      const EpochObserver& observe = {});

  /// Trains on the configured data. Each rank makes or reads its own rows.
  TrainingMetrics fit(const DataConfig& data, const EpochObserver& observe = {});

  /// Makes fit() call `call` on every rank after its first `steps` steps, outside of the measured
  /// time of the steps; 0: before them.
  void after_steps(Size steps, std::function<void()> call) {
    after_steps_[steps] = std::move(call);
  }

  /// Makes the next fit() resume from a checkpoint, which any mesh and strategy may have written,
  /// and train to the end of `num_epochs`. With the same mesh and strategy the result is bit for
  /// bit that of an uninterrupted training. fit() throws Error (usage) if the file is damaged or
  /// was written with another model or other data.
  void resume(const std::string& path);

  /// Drops the trained state. The next fit() starts from the initial parameters.
  void reset() {
    session_.reset();
    continued_.reset();
  }

  /// Returns the mean loss over arrays that every rank holds whole, of at least one sample. Needs
  /// an earlier fit().
  double evaluate(const Matrix<Data>& x, const Matrix<Data>& y);

  /// Returns the predictions for x, (samples * output positions, output width), whole on every
  /// rank. Needs an earlier fit().
  Matrix<Data> predict(const Matrix<Data>& x);

  /// Returns samples generated from draws of the model's prior, (samples * output positions, output
  /// width), whole on every rank and reproducible. Throws Error (usage) for a model without latent
  /// variables. Needs an earlier fit().
  Matrix<Data> sample(Size samples);

  const Mesh& mesh() const { return mesh_; }
  const Topology& topology() const { return topology_; }
  const ModelSpec& model() const { return model_; }
  /// Returns the plan of a step on a full batch of a data set of this many samples.
  Plan plan(Size samples) const;
  /// Returns the number of samples of an input array.
  Size samples_of(const Matrix<Data>& x) const;
  /// Returns the engine with the trained parameters. Needs an earlier fit().
  const Engine<T>& engine() const {
    check_trained();
    return session_->engine();
  }
  /// Returns the bytes of device memory on this rank. Needs an earlier fit().
  Size measured_bytes() const { return check_trained(), session_->measured_bytes(); }
  /// Returns the trained parameters, the gradients of the last step or the moments: all tensors,
  /// whole, row-major and concatenated, on every rank. Needs an earlier fit(). Collective.
  Vector<Data> gather(TensorRole role = TensorRole::parameter) const;

 private:
  using MakeData = typename TrainingSession<T>::MakeData;
  TrainingMetrics train(const Plan& plan, const MakeData& make_data, const EpochObserver& observe);
  Plan plan_of(const DataConfig& data) const;
  struct Epochs;  ///< the loop of epochs and its hooks
  void run_epochs(const EpochObserver& observe, TrainingMetrics& metrics, Reporter<T>& reporter);
  void open_saves();
  void read_checkpoint(const std::string& path, const TrainingState& state,
                       TrainingMetrics& metrics);
  void save(TrainingMetrics& metrics, bool is_last);
  void attempt(TrainingMetrics& metrics, bool is_last, const std::function<void()>& write);
  using TakeRows = std::function<void(Size first_sample, const Matrix<const T>& prediction)>;
  void check_trained() const;
  double forward(const Matrix<Data>& x, const Matrix<Data>& y, const TakeRows& take,
                 bool from_prior = false);
  Matrix<Data> output_of(const Matrix<Data>& x, bool from_prior);

  Config config_;
  Communicator world_;
  Topology topology_;
  Mesh mesh_;
  ModelSpec model_;
  std::optional<TrainingSession<T>> session_;
  std::map<Size, std::function<void()>> after_steps_;

  /// Uses its own world communicator, so that its traffic does not count as that of steps.
  struct Saves {
    Communicator ranks;
    CheckpointStore store;
    SaveSchedule schedule;
  };
  Checkpointing checkpointing_;
  Reporting reporting_;
  Config fit_config_;  ///< configuration of the current fit() with its data
  std::string resume_from_;
  /// The training that the next fit() continues, and its steps; unset before the first one.
  std::optional<ResumedFrom> continued_;
  std::string data_checksums_;  ///< TrainingState::data
  std::optional<Saves> saves_;
};

}  // namespace tessera
