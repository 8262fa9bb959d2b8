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

/// What a case has used up, for soft limits: called on every rank between steps that are not timed.
/// Throws the same Error (timeout) on all of them.
using CheckTime = std::function<void()>;

/// Losses of a training from the initial parameters.
struct LossCurve {
  std::vector<double> steps;                ///< up to the first epoch with one that is not finite
  std::vector<double> epochs;               ///< means of whole epochs' steps
  std::vector<double> validations{};        ///< of unseen samples
  std::vector<std::size_t> validated_at{};  ///< steps before each of them
};

struct Verification {
  LossCurve losses;
  std::vector<LedgerRow> planned_traffic;
  std::vector<LedgerRow> measured_traffic;  ///< on this rank
  Size epochs = 0;                          ///< that have come to their ends
};

/// A configuration on the ranks of a communicator: training as Trainer does it, and steps by
/// themselves. Everything is collective over `ranks`.
template <class T>
class CaseRun {
 public:
  /// The configuration must be valid for this number of ranks.
  CaseRun(const Config& config, const Communicator& ranks);

  const Plan& plan() const { return session_.plan(); }
  const MeshShape& mesh() const { return mesh_.shape(); }
  Size planned_bytes() const { return session_.planned_bytes(); }  ///< of this rank
  Size measured_bytes() const { return session_.measured_bytes(); }

  /// All epochs of the configuration, or as many steps of them; once, and first.
  Verification train(const CheckTime& check_time, std::optional<Size> most_steps = {});

  /// Steps on full batches, one after the other.
  void warm_up(Size steps, const CheckTime& check_time);
  /// Their seconds on this rank. No call between them but those of the step itself.
  std::vector<double> time_steps(Size steps);
  /// The loss of the latest steps is finite.
  bool is_finite();
  /// Writes checkpoints to a directory, making steps while threads write, and reads the last one
  /// back; then removes the directory. Throws the same Error on all ranks if that cannot be done.
  CheckpointTimes time_checkpoints(const std::string& directory, Size checkpoints,
                                   const CheckTime& check_time);
  /// Where the time goes, in a run of its own: the trace of every rank, with its waits; on rank 0,
  /// and nothing on the others.
  std::vector<RankTrace> instrument(Size steps);

 private:
  void next_step();
  std::vector<double> losses_so_far();

  Config config_;
  Mesh mesh_;
  TrainingSession<T> session_;
  Size full_batches_;  ///< of an epoch
};

}  // namespace tessera::bench
