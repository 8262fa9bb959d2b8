// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/train/checkpointing.hpp>
#include <tessera/train/session.hpp>

namespace tessera {

/// After an epoch, counted from 1.
struct EpochValidation {
  Size epoch = 0;
  Validation result{};
};

struct TrainingMetrics {
  std::vector<EpochValidation> validations;  ///< if the data has samples for them
  std::vector<double> epoch_losses;  ///< mean of an epoch's batch losses; the same on every rank
  Size steps = 0;
  Size samples = 0;             ///< rows seen, all ranks and epochs together
  double stepping_seconds = 0;  ///< in training steps alone; the slowest rank's
  double wall_seconds = 0;      ///< of fit(), with set-up and data; the slowest rank's
  std::vector<LedgerRow> planned_traffic;
  std::vector<LedgerRow> measured_traffic;  ///< on this rank
  Size planned_bytes = 0;                   ///< device memory of this rank
  Size measured_bytes = 0;                  ///< its peak; steps allocate nothing

  bool stopped = false;  ///< before the last epoch, as Checkpointing::wants_to_stop has wished
  Size resumed_at = 0;   ///< step of the checkpoint that it went on from; losses begin earlier
  Size planned_read = 0, measured_read = 0;        ///< bytes of this rank from that checkpoint
  Size planned_written = 0, measured_written = 0;  ///< bytes of this rank to checkpoints
  Size checkpoints = 0, failed_checkpoints = 0;
  double checkpoint_seconds = 0;         ///< in which training stood still for them, on this rank
  double checkpoint_wait_seconds = 0;    ///< of these, for background writes to end
  double checkpoint_hidden_seconds = 0;  ///< of background writes while training went on
  std::string last_checkpoint{};
  /// Why what the training ended with could not be saved, where checkpoint.on_failure lets it go
  /// on.
  std::string end_not_saved{};

  /// Not a number before the first epoch has ended.
  double initial_loss() const { return epoch_losses.empty() ? NAN : epoch_losses.front(); }
  double final_loss() const { return epoch_losses.empty() ? NAN : epoch_losses.back(); }
  double loss_scale = 1;   ///< at the end
  Size skipped_steps = 0;  ///< of this fit(): their gradients overflowed, and nothing was updated

  /// Not a number where a resumed training had no step left.
  double seconds_per_step() const {
    return steps == 0 ? NAN : stepping_seconds / static_cast<double>(steps);
  }
  double samples_per_second() const {
    return steps == 0 ? NAN : static_cast<double>(samples) / stepping_seconds;
  }
};

/// Called on every rank after each epoch with its number, from 1, and its loss.
using EpochObserver = std::function<void(Size epoch, double loss)>;

/// Trains a model on the mesh that a configuration describes. T is what layers compute with: float,
/// double, or BFloat16 and Float16 for mixed precision, with data and parameters of float.
/// Constructing it and all its functions that take data are collective over all ranks of the job.
///
///     tessera::Trainer trainer(model, training);   // float
///     const auto metrics = trainer.fit(x, y);
///     const double loss = trainer.evaluate(x_test, y_test);
///     const auto prediction = trainer.predict(x_test);
template <class T = float>
class Trainer {
 public:
  using Data = StateOf<T>;

  /// Validates the configurations against the launched ranks and makes the mesh. Throws
  /// ConfigError, the same on every rank; also where ranks were given different ones.
  explicit Trainer(const ModelConfig& model, const TrainingConfig& training = {},
                   const CommOptions& comm = {}, const Checkpointing& checkpointing = {});

  /// Trains on arrays that every rank holds whole, x (samples * positions, input width) and y
  /// (samples * positions, target width), with the positions of the model's input and of its
  /// output: a sample has several rows where the model sees several at once. Batches are shared out
  /// over the mesh, nothing is copied. The first call starts from the model's initial parameters;
  /// another one goes on, with the optimizer and the schedule where they are. Throws Error
  /// (wrong_result) when the loss, or a state that is to be saved, is no longer finite.
  TrainingMetrics fit(const Matrix<Data>& x, const Matrix<Data>& y,
                      const EpochObserver& observe = {});

  /// The same on generated data, of which each rank holds its own rows only.
  TrainingMetrics fit(const DataConfig& data, const EpochObserver& observe = {});

  /// The next fit() goes on from this checkpoint, which any mesh and strategy may have written, in
  /// place of the initial parameters: from its step to the end of `num_epochs`. On the mesh and
  /// with the strategy that wrote it, as if it had never stopped, bit for bit. fit() throws Error
  /// if the file is not whole, or was written with another model or other data.
  void resume(const std::string& path);

  /// Forgets what was trained: the next fit() starts from the initial parameters.
  void reset() {
    session_.reset();
    training_.reset();
  }

  /// The mean loss over arrays that every rank holds whole, the same on every rank. Any number of
  /// samples from 1. After fit().
  double evaluate(const Matrix<Data>& x, const Matrix<Data>& y);

  /// The predictions for x, (samples * positions, output width), whole on every rank. After fit().
  Matrix<Data> predict(const Matrix<Data>& x);

  /// New samples as the trained model imagines them, (samples * positions, output width), whole on
  /// every rank: what it makes of draws from its prior. The same for the same training. Throws
  /// Error (usage) for a model that draws nothing. After fit().
  Matrix<Data> sample(Size samples);

  const Mesh& mesh() const { return mesh_; }
  const Topology& topology() const { return topology_; }
  const ModelSpec& model() const { return model_; }
  /// The plan of a step on a full batch of a data set of this many samples.
  Plan plan(Size samples) const;
  /// Of an array of the model's input.
  Size samples_of(const Matrix<Data>& x) const;
  /// After fit(): the engine with trained parameters.
  const Engine<T>& engine() const { return session_->engine(); }
  /// After fit(): the trained parameters, the gradients of the last step or the moments, each
  /// tensor row-major and whole, one after the other, on every rank whatever the strategy.
  /// Collective.
  Vector<Data> gather(TensorRole role = TensorRole::parameter) const;

 private:
  using MakeData = typename TrainingSession<T>::MakeData;
  TrainingMetrics train(const Plan& plan, const MakeData& make_data, const EpochObserver& observe);
  Plan plan_of(const DataConfig& data) const;
  void run_epochs(const EpochObserver& observe, TrainingMetrics& metrics);
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

  /// A world of its own: what checkpoints exchange is no traffic of a step.
  struct Saves {
    Communicator ranks;
    CheckpointStore store;
    SaveSchedule schedule;
  };
  Checkpointing checkpointing_;
  Config fit_config_;  ///< of the current fit(), with its data
  std::string resume_from_;
  std::optional<std::string> training_;  ///< TrainingState::training; none before the first save
  std::string samples_;                  ///< TrainingState::data, on rank 0
  std::optional<Saves> saves_;
};

}  // namespace tessera
