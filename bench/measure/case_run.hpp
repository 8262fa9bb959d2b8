// SPDX-License-Identifier: Apache-2.0
// The one place where the benchmark meets the trainer's parts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/train/session.hpp>

#include "measure/breakdown.hpp"
#include "measure/checkpoint_times.hpp"

namespace tessera::bench {

/// Checks the time limit of a case. Called on every rank between steps that are not timed; throws
/// the same Error (timeout) on all ranks.
using CheckTime = std::function<void()>;

/// The losses of a training from the initial parameters.
struct LossCurve {
  std::vector<double> steps;          ///< ends with the first epoch whose losses are not all finite
  std::vector<double> epochs;         ///< mean of each complete epoch
  std::vector<double> validations{};  ///< losses of unseen samples
  std::vector<std::size_t> validated_at{};  ///< steps before each validation
};

struct Verification {
  LossCurve losses;
  std::vector<LedgerRow> planned_traffic;
  std::vector<LedgerRow> measured_traffic;  ///< on this rank
  Size epochs = 0;                          ///< completed epochs
};

/// Runs a configuration on the ranks of a communicator: training as Trainer does it, and single
/// steps. Everything is collective over `ranks`.
template <class T>
class CaseRun {
 public:
  /// The configuration must be valid for this number of ranks.
  CaseRun(const Config& config, const Communicator& ranks);

  const Plan& plan() const { return session_.plan(); }
  const MeshShape& mesh() const { return mesh_.shape(); }
  Size planned_bytes() const { return session_.planned_bytes(); }  ///< on this rank
  Size measured_bytes() const { return session_.measured_bytes(); }

  /// Trains all epochs of the configuration, or so many steps. Call it once, before the other
  /// functions.
  Verification train(const CheckTime& check_time, std::optional<Size> most_steps = {});

  /// Runs steps on full batches.
  void warm_up(Size steps, const CheckTime& check_time);
  /// Runs steps on full batches and returns the seconds of each on this rank. Nothing communicates
  /// between steps.
  std::vector<double> time_steps(Size steps);
  /// Returns true if the losses of the latest steps are finite.
  bool is_finite();
  /// Writes checkpoints to a directory, with training steps while threads write, reads each one
  /// back, and removes the directory. Throws the same Error on all ranks if a checkpoint cannot be
  /// written or read.
  CheckpointTimes time_checkpoints(const std::string& directory, Size checkpoints,
                                   const CheckTime& check_time);
  /// Runs instrumented steps. Returns the trace of every rank, with its waits, on rank 0, and
  /// nothing on other ranks.
  std::vector<RankTrace> instrument(Size steps);

 private:
  void next_step();
  std::vector<double> losses_so_far();

  Config config_;
  Mesh mesh_;
  TrainingSession<T> session_;
  Size full_batches_;  ///< per epoch
};

}  // namespace tessera::bench
