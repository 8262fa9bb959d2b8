// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/engine/replicas.hpp>
#include <tessera/mesh/mesh.hpp>

namespace tessera {

/// What a model makes of samples that no step has seen.
struct Validation {
  double loss = 0;
  /// Relative error in the L2 norm, where predictions are compared with solutions.
  std::optional<double> solution_error{};
};

/// The samples of a training.
template <class T>
struct TrainingData {
  Dataset<T> training;
  std::optional<Dataset<T>> validation{};
};

/// This rank's share of the samples that a plan asks for.
template <class T>
TrainingData<T> make_data(const Plan& plan, Size rank, const DataConfig& config);

/// A training that has been set up: engine, data, and how far it has come. Trainer and studies run
/// it, epoch by epoch or step by step. Everything is collective over the mesh.
template <class T>
class TrainingSession {
 public:
  using MakeData = std::function<TrainingData<StateOf<T>>(const Plan&)>;

  /// Allocates engine and data, together on all ranks or, with the same error, on none. `plan` is
  /// that of a full batch. Parameters are those that the model begins with.
  TrainingSession(const TrainingConfig& training, const Plan& plan, const Mesh& mesh,
                  const MakeData& make_data);

  /// Other data for the same plan but for the number of samples; parameters, optimizer and the
  /// place in the schedule stay.
  void change_data(const Plan& plan, const MakeData& make_data);

  /// One step on a batch of the epoch, at the next rate of the schedule. Throws Error
  /// (wrong_result) on all ranks where replicas are found to differ.
  void step(Size batch);
  /// All batches once, or those that are left of an epoch which has begun. `go_on` is asked on
  /// every rank after each step. Returns the loss of each batch; nothing if `go_on` has ended the
  /// epoch before its last one.
  std::vector<double> run_epoch(const std::function<bool()>& go_on = {});
  /// Batches of the epoch that have been seen.
  Size batch() const { return next_batch_; }
  /// Sums of the losses of these batches, as a checkpoint keeps them.
  std::vector<double> losses_so_far();
  /// Goes on from a checkpoint, once its tensors have been read into the engine.
  void resume(const TrainingState& state);
  /// Of the latest step on each batch of the epoch.
  std::vector<double> losses();
  /// Of the plan's validation samples, in batches as large as those of a step.
  Validation validate();

  const Plan& plan() const { return plan_; }
  const Dataset<StateOf<T>>& data() const { return data_->training; }
  /// Whether the data have unseen samples and the configuration wants them seen after this epoch,
  /// counted from 1.
  bool validates_after(Size epoch) const;
  Engine<T>& engine() { return *engine_; }
  const Engine<T>& engine() const { return *engine_; }
  Size steps() const { return steps_; }
  Size samples_since() const { return samples_since_; }  ///< begin_traffic(), of all ranks

  /// Device memory of this rank: as planned, and the peak of what was allocated. A step allocates
  /// nothing.
  Size planned_bytes() const;
  Size measured_bytes() const { return engine_bytes_ + data_bytes_; }

  /// What the ledger of this rank holds since the last call of this, or since the beginning; and
  /// what the plan says of what has been done since then.
  void begin_traffic();
  std::vector<LedgerRow> planned_traffic() const;
  std::vector<LedgerRow> measured_traffic() const { return mesh_.world().ledger().rows(); }

 private:
  void make(const MakeData& make_data);

  TrainingConfig training_;
  Mesh mesh_;
  Plan plan_;
  Plan last_plan_, last_validation_plan_;  ///< of the last batch, which may be smaller
  std::optional<TrainingData<StateOf<T>>> data_;
  std::optional<Engine<T>> engine_;
  std::optional<ReplicaCheck<T>> replicas_are_equal_;
  std::vector<Size> global_samples_, validation_samples_;  ///< of each batch
  Size engine_bytes_ = 0, data_bytes_ = 0;
  Size steps_ = 0, next_batch_ = 0;
  // Since begin_traffic():
  PlannedRun since_{};  ///< steps: on full batches
  Size last_steps_since_ = 0, samples_since_ = 0;
};

}  // namespace tessera
