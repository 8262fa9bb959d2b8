// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/engine/replicas.hpp>
#include <tessera/engine/state_hashes.hpp>
#include <tessera/io/event_file.hpp>
#include <tessera/tensor/mesh.hpp>

namespace tessera {

/// The result of a validation.
struct Validation {
  double loss = 0;  ///< without the terms that only guide the training (LossTerm)
  /// Relative error in the L2 norm, if the exact solution is known.
  std::optional<double> solution_error{};
  /// The parts of the loss, and what was left out of it; empty if layers add nothing to the loss.
  std::vector<NamedNumber> parts{};
};

/// Returns the parts of a loss with their names, first that of the predictions; none if layers add
/// nothing to the loss.
std::vector<NamedNumber> named_parts(const PlanInput& input, const LossParts& parts);

/// The measurements of the steps since the previous report, over all ranks.
struct StepReport {
  Size step = 0;  ///< steps made, with those before a resumption
  LossParts loss_sum{};
  Size loss_count = 0;       ///< losses in loss_sum
  Size samples = 0;          ///< without those before a resumption
  double gradient_norm = 0;  ///< of the last step, before clipping by norm
  double learning_rate = 0;  ///< of the last step
  /// BatchFacts::routing of all routers, one after another.
  std::vector<double> routing{};

  double loss() const { return loss_sum.total() / static_cast<double>(loss_count); }
};

/// The samples of a training.
template <class T>
struct TrainingData {
  Dataset<T> training;
  std::optional<Dataset<T>> validation{};
};

/// Returns this rank's share of the samples of a plan.
template <class T>
TrainingData<T> make_data(const Plan& plan, Size rank, const DataConfig& config);

/// A training that is set up: engine, data and progress. Trainer runs it by the epoch, studies by
/// the step. All functions but the getters are collective over the mesh.
template <class T>
class TrainingSession {
 public:
  using MakeData = std::function<TrainingData<StateOf<T>>(const Plan&)>;

  /// Allocates engine and data, and draws the initial parameters. `plan` is that of a full batch.
  /// Throws the same Error on every rank.
  TrainingSession(const TrainingConfig& training, const Plan& plan, const Mesh& mesh,
                  const MakeData& make_data);

  /// Replaces the data. `plan` may differ in the number of samples only. Parameters, optimizer and
  /// position in the schedule stay. The next step begins an epoch.
  void change_data(const Plan& plan, const MakeData& make_data);

  /// Makes one step on a batch of the epoch with the next rate of the schedule. Throws Error
  /// (wrong_result) on all ranks if replicas differ.
  void step(Size batch);
  /// Runs the remaining batches of an epoch. Calls `go_on` on every rank after each step. Returns
  /// the loss of each batch, or nothing if `go_on` returned false before the last one.
  std::vector<double> run_epoch(const std::function<bool()>& go_on = {});
  /// Returns the number of batches of the epoch on which steps were made.
  Size batches_done() const { return next_batch_; }
  /// Returns the loss sums of these batches for a checkpoint, whose calls join the planned traffic.
  std::vector<LossParts> losses_for_checkpoint();
  /// Returns the report of the steps since the previous report, and the sum over ranks of `wish`.
  /// Waits for the device.
  std::pair<StepReport, double> report(double wish);
  /// Returns names and hashes of the state after the latest step (StateHashes).
  std::pair<std::vector<std::string>, std::vector<std::uint64_t>> hashes();
  /// Makes the next report begin with this batch of the epoch.
  void report_from(Size batch) { reported_batches_ = batch; }
  /// Continues from a checkpoint whose tensors are already in the engine.
  void resume(const TrainingState& state);
  /// Returns the loss of the latest step on each batch of the epoch.
  std::vector<double> losses();
  /// Returns the parts of the mean batch loss of the latest complete epoch of run_epoch().
  const LossParts& epoch_parts() const { return epoch_parts_; }
  /// Evaluates the validation samples in batches as large as those of a step.
  Validation validate();

  const Plan& plan() const { return plan_; }
  const Communicator& world() const { return mesh_.world(); }
  const Dataset<StateOf<T>>& data() const { return data_->training; }
  /// Returns true if this epoch, counted from 1, is followed by a validation.
  bool validates_after(Size epoch) const;
  Engine<T>& engine() { return *engine_; }
  const Engine<T>& engine() const { return *engine_; }
  Size steps() const { return steps_; }
  /// Returns the samples of all ranks since begin_traffic().
  Size samples_since() const { return samples_since_; }

  /// Device memory of this rank: as planned, and the measured peak. A step allocates nothing.
  Size planned_bytes() const;
  Size measured_bytes() const { return engine_bytes_ + data_bytes_; }

  /// Starts counting traffic anew. The planned and the measured traffic of this rank count from
  /// here.
  void begin_traffic();
  std::vector<LedgerRow> planned_traffic() const;
  std::vector<LedgerRow> measured_traffic() const { return mesh_.world().ledger().rows(); }

 private:
  void make(const MakeData& make_data);
  Size order_of_samples() const;

  TrainingConfig training_;
  Mesh mesh_;
  Plan plan_;
  Plan last_plan_, last_validation_plan_;  ///< plans of the last batch, which may be smaller
  std::optional<TrainingData<StateOf<T>>> data_;
  std::optional<Engine<T>> engine_;
  std::optional<ReplicaCheck<T>> replica_check_;
  std::optional<StateHashes<T>> hashes_;
  std::vector<Size> global_samples_, validation_samples_;  ///< samples of each batch
  Size engine_bytes_ = 0, data_bytes_ = 0;
  Size steps_ = 0, next_batch_ = 0;
  Size first_step_ = 0;  ///< steps made on earlier data
  // Since the previous report, which included so many batches of the epoch and so many samples:
  Size reported_batches_ = 0, reported_samples_ = 0;
  LossParts finished_losses_;  ///< of batches of earlier epochs
  Size finished_loss_count_ = 0;
  LossParts epoch_parts_;
  Kokkos::View<double*, Kokkos::HostSpace> report_sums_;
  // Since begin_traffic():
  PlannedRun since_{};  ///< its steps are those on full batches
  Size last_steps_since_ = 0, samples_since_ = 0;
};

}  // namespace tessera
