// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/timer.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/train/metrics_log.hpp>
#include <tessera/train/session.hpp>

namespace tessera {

/// How fast some steps were.
struct Speed {
  double seconds_per_step = 0;
  double samples_per_second = 0;              ///< of all ranks
  std::optional<double> tokens_per_second{};  ///< of all ranks, if a sample is a sequence of tokens
  double flops_per_second = 0;                ///< of a rank on average; matrix products only
  std::optional<double> mfu{};  ///< model FLOPs utilization: flops_per_second over Reporting::peak
};

/// The progress of a training, for a person who watches.
struct TrainingProgress {
  StepReport report{};                    ///< since the previous progress
  std::vector<NamedNumber> loss_parts{};  ///< of report.loss(); see named_parts()
  Size epoch = 0, epochs = 0, steps = 0;  ///< the epoch of the last step; all that are to be made
  Speed speed{};                          ///< since the previous progress
  Size device_bytes = 0;                  ///< memory of rank 0
  double seconds_left = 0;
};

/// The files and the line that a training reports to. All ranks must agree on it.
struct Reporting {
  OutputConfig output{};  ///< files, which rank 0 writes
  /// Returns the line that shows progress; none: nothing is shown.
  std::function<std::string(const TrainingProgress&)> line{};
  std::optional<double> peak{};  ///< FLOP/s that the matrix products of a rank reach, if known
};

/// Makes the reports of a training: after each `output.every_steps` steps for files, and after
/// steps that rank 0 chooses for a person; and hashes after each `output.hash_every_steps` steps. A
/// report is one all-reduce, in which rank 0 also announces the next one, so that no step
/// communicates more. All functions are collective.
template <class T>
class Reporter {
 public:
  /// Opens the files. `epochs_left` epochs will follow.
  Reporter(const Reporting& reporting, TrainingSession<T>& session, Size epochs, Size epochs_left);

  /// Returns true if a report is due after the steps that are made.
  bool is_due() const {
    return session_.steps() >= next_shown_ || session_.steps() >= next_record_ || hash_is_due();
  }
  /// Makes a report that is due. `stepping_seconds` is the time in steps so far.
  void report(Size epoch, double stepping_seconds);
  /// Writes the result of a validation.
  void validated(Size epoch, const Validation& result);
  /// Returns why files are incomplete; "" if they are complete, and on ranks other than 0.
  std::string failure() const { return log_ ? log_->failure() : ""; }

 private:
  /// Reports that were made since the last one of a kind.
  struct Window {
    StepReport sum{};
    double begin = 0;     ///< stepping seconds
    Size steps_before{};  ///< steps of the training until then
    void add(const StepReport& report);
    /// Returns the sum and begins anew.
    StepReport take(double seconds);
  };

  /// Returns the speed in a window that ends now.
  Speed speed(const Window& window, double stepping_seconds) const;

  bool hash_is_due() const {
    const OutputConfig& output = reporting_.output;
    return !output.hashes.empty() && session_.steps() % output.hash_every_steps == 0;
  }
  double steps_until_shown() const;
  Size next_record() const;
  void show(Size epoch, double stepping_seconds);
  void record(Size epoch, double stepping_seconds);

  static constexpr Size never = std::numeric_limits<Size>::max();

  Reporting reporting_;
  TrainingSession<T>& session_;
  bool is_first_rank_;
  Size first_step_, last_step_, epochs_;
  std::optional<MetricsLog> log_;  ///< on rank 0
  Timer clock_;
  std::optional<Activity> activity_;  ///< with a line
  Window shown_, recorded_;
  Size next_shown_ = never, next_record_ = never;
};

}  // namespace tessera
