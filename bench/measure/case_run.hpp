// SPDX-License-Identifier: Apache-2.0
// Runs cases on a training session and an engine. Nothing else in bench uses these.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/trace/region_timer.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// Mean seconds per step.
struct Share {
  double max_rank_seconds = 0;
  double mean_rank_seconds = 0;

  static void fields(auto& f, auto& v) {
    f("max_rank_seconds", v.max_rank_seconds);
    f("mean_rank_seconds", v.mean_rank_seconds);
  }
};

/// Calls of one axis and operation in a step: mean over ranks.
struct CallTime {
  std::string axis;
  Operation operation = Operation::barrier;
  double calls = 0;
  double seconds = 0;  ///< without waiting
  double waiting = 0;  ///< for ranks that arrive later
};

struct Breakdown {
  Size steps = 0;
  double step_seconds = 0;
  Share compute, communication, idle, optimizer, other, products;
  std::optional<Share> launches;
  std::vector<CallTime> calls;  ///< not in documents, whose traffic has them

  static void fields(auto& f, auto& v) {
    f("steps", v.steps, "that were instrumented");
    f("step_seconds", v.step_seconds, "mean over ranks");
    f("compute", v.compute, "forward, loss, backward and clipping");
    f("communication", v.communication, "calls, from the arrival of the last rank");
    f("idle", v.idle, "the rest of the time in calls");
    f("optimizer", v.optimizer, "the update");
    f("other", v.other, "the rest");
    f("products", v.products, "matrix products, a part of compute");
    f("launches", v.launches, "of kernels, in simulated steps only");
  }
};

/// Combines the ranks' traces of `steps` steps. The time in a call is idle while it waits, and
/// communication otherwise.
Breakdown break_down(const std::vector<RankTrace>& ranks, Size steps);

/// Costs of the checkpoints of a case: seconds on the slowest rank, medians over the checkpoints.
struct CheckpointTimes {
  std::string directory;
  bool async = false;
  Size checkpoints = 0;
  Size bytes = 0;              ///< per checkpoint, on all ranks together
  double write_seconds = 0;    ///< per checkpoint
  double exposed_seconds = 0;  ///< of write_seconds, while no step ran
  double read_seconds = 0;     ///< to read back a checkpoint just written
  Size steps_while_writing = 0;
  double step_seconds_while_writing = 0;  ///< median of these steps; NaN if there are none

  double write_bytes_per_second() const { return static_cast<double>(bytes) / write_seconds; }
  double read_bytes_per_second() const { return static_cast<double>(bytes) / read_seconds; }

  static void fields(auto& f, auto& v) {
    f("directory", v.directory);
    f("async", v.async, "written while steps run");
    f("checkpoints", v.checkpoints, "that were timed");
    f("bytes", v.bytes, "of one, on all ranks");
    f("write_seconds", v.write_seconds, "median, with the time of writing threads", positive);
    f("write_bytes_per_second", written(v.write_bytes_per_second()));
    f("exposed_seconds", v.exposed_seconds, "no step ran meanwhile");
    f("steps_while_writing", v.steps_while_writing);
    f("step_seconds_while_writing", v.step_seconds_while_writing, "median of these");
    f("read_seconds", v.read_seconds, "median", positive);
    f("read_bytes_per_second", written(v.read_bytes_per_second()));
  }
};

/// Checks the time limit of a case. Called on every rank between steps that are not timed; throws
/// the same Error (timeout) on all ranks.
using CheckTime = std::function<void()>;

/// The losses of a training from the initial parameters.
struct LossCurve {
  std::vector<double> steps;          ///< ends with the first epoch whose losses are not all finite
  std::vector<double> epochs;         ///< mean of each complete epoch
  std::vector<double> validations{};  ///< losses of unseen samples
  std::vector<std::size_t> validated_at{};  ///< steps before each validation

  /// The fields of a reference that are stored.
  static void fields(auto& f, auto& v) {
    f("steps", v.steps);
    f("epochs", v.epochs);
    f("validations", v.validations);
  }
};

struct Verification {
  LossCurve losses;
  std::vector<LedgerRow> planned_traffic;
  std::vector<LedgerRow> measured_traffic;  ///< on this rank
  Size epochs = 0;                          ///< completed epochs
};

/// Runs a configuration on the ranks of a communicator: training as Trainer does it, and single
/// steps. Everything is collective over the ranks.
class CaseRun {
 public:
  /// The configuration must be valid for this number of ranks.
  static std::unique_ptr<CaseRun> make(const Config& config, const Communicator& ranks);
  virtual ~CaseRun() = default;

  virtual const Plan& plan() const = 0;
  virtual Size planned_bytes() const = 0;   ///< on this rank
  virtual Size measured_bytes() const = 0;  ///< on this rank

  /// Trains all epochs of the configuration, or so many steps. Call it once, before the other
  /// functions.
  virtual Verification train(const CheckTime& check_time, std::optional<Size> most_steps) = 0;
  /// Runs steps on full batches.
  virtual void warm_up(Size steps, const CheckTime& check_time) = 0;
  /// Runs steps on full batches and returns the seconds of each on this rank. Nothing communicates
  /// between steps.
  virtual std::vector<double> time_steps(Size steps) = 0;
  /// Returns true if the losses of the latest steps are finite.
  virtual bool is_finite() = 0;
  /// Writes checkpoints to a directory, with training steps while threads write, reads each one
  /// back, and removes the directory. Throws the same Error on all ranks if a checkpoint cannot be
  /// written or read.
  virtual CheckpointTimes time_checkpoints(const std::string& directory, Size checkpoints,
                                           const CheckTime& check_time) = 0;
  /// Runs instrumented steps. Returns the trace of every rank, with its waits, on rank 0, and
  /// nothing on other ranks.
  virtual std::vector<RankTrace> instrument(Size steps) = 0;
};

}  // namespace tessera::bench
