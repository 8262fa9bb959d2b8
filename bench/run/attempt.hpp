// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/base/timer.hpp>
#include <tessera/predict/simulate.hpp>

#include "measure/case_run.hpp"
#include "results/result_parts.hpp"
#include "run/group.hpp"
#include "run/launch.hpp"
#include "run/references.hpp"
#include "run/time_left.hpp"

namespace tessera::bench {

/// The context of an attempt at a case.
struct AttemptContext {
  const Study& study;
  const Communicator& world;
  const Capacity& capacity;
  const LaunchState& launch;
  const References& references;
  const ResultsDirectory& results;
  AbortRecord& abort_record;
  const RunOptions& options;
};

/// The state that an attempt continues from. Rank 0 reads it for all ranks.
struct TakenCase {
  Size attempt = 0;   ///< 0: another launch has the case
  Size launches = 0;  ///< launches that finished measuring the case
  std::vector<Round> rounds{};
  std::vector<std::vector<double>> steps{};  ///< step times of each round

  TESSERA_FIELDS(attempt, launches, rounds, steps);
};

/// An attempt at a case: its rounds in this launch. The ranks of the case run them while the other
/// ranks sleep. All public functions are collective over all ranks of the job.
class Attempt {
 public:
  /// Takes the case, unless another launch runs it or has run it meanwhile. It keeps the rounds of
  /// an earlier launch if that was killed or if the study asks for several launches. With
  /// `stays_set_up`, the case stays set up between its rounds.
  Attempt(const Case& point, const AttemptContext& context, bool stays_set_up);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// Runs a round, unless the case is done.
  void run_round();

  /// Returns false, on all ranks, if another launch has the case.
  bool is_taken() const { return is_taken_; }
  /// Complete on rank 0 after each round.
  const CaseResult& result() const { return result_; }
  /// Returns the time of the latest round, on rank 0.
  RoundTime round_time() const { return {round_seconds_, again_seconds_, is_done_ || !is_taken_}; }

 private:
  void begin(const TakenCase& taken);
  void measure(const FoundReference& reference);
  void write() const;

  // case_steps.cpp: collective over the ranks of the case.

  /// The first round of a launch verifies the case against its reference. The result is filled in
  /// step by step, so that it keeps what was found before an exception. Sets the status ok,
  /// unverified or invalid; other ends are exceptions.
  void run_steps(const FoundReference& reference);
  /// Runs what comes once before the rounds: verification, warm-up, instrumented steps,
  /// checkpoints. Returns false if the case is invalid.
  bool verify_and_instrument(const FoundReference& reference);
  void warm_up();
  /// Does some work; adds its time to that of a further round if such a round repeats it.
  void time_again(bool is_repeated, const std::function<void()>& work);
  /// Verifies losses, traffic and memory. Ends the case and returns false if one of them is wrong.
  bool verify(const FoundReference& reference);
  bool check_memory();
  /// Runs the instrumented steps, and explains the difference between prediction and measurement.
  void instrument();
  /// Times a block of steps, with the machine's speed before and after it. A case that has used
  /// half of its time limit is done in this launch.
  void measure_block();
  /// Throws Error (timeout) on all ranks if the case has used its time.
  void check_time() const { bench::check_time(ranks(), seconds(), study_.limits); }

  const Communicator& ranks() const { return context_.launch.group(point_).ranks; }
  /// Returns the seconds in all rounds of this launch.
  double seconds() const { return seconds_before_ + clock_.seconds(); }
  /// Returns true if --inject plants this fault on this rank.
  bool has_fault(Fault::Kind kind) const {
    const std::optional<Fault>& fault = context_.options.fault;
    return fault && fault->kind == kind && fault->rank == ranks().rank();
  }
  /// Returns the FLOP rates of a step of this length.
  ComputeResult rates(std::optional<double> step_seconds) const {
    return flop_rates(run_->plan(), gemm_peak_, study_.limits.vendor_peak_flops_per_second,
                      step_seconds);
  }

  const Case& point_;
  const AttemptContext& context_;
  const Study& study_;
  bool stays_set_up_;
  bool is_taken_ = false;
  CaseLock lock_;  ///< on rank 0, until the case is done

  CaseResult result_;                       ///< its rounds are on every rank of the case
  std::optional<SimulatedStep> predicted_;  ///< on rank 0, if there is a machine to predict by
  double gemm_peak_ = 0;                    ///< FLOP/s per rank
  double compute_seconds_ = 0;              ///< of an instrumented step on this rank
  std::vector<std::vector<double>> steps_;  ///< step times of each round
  std::unique_ptr<CaseRun> run_;            ///< null if it is not set up
  Size block_steps_ = 0;
  bool is_done_ = false;  ///< this launch runs no further round
  double seconds_before_ = 0;
  Timer clock_;               ///< since the round began
  double round_seconds_ = 0;  ///< of the latest round
  double again_seconds_ = 0;  ///< of what each further round repeats
};

/// Returns the result of a case that is skipped.
CaseResult skipped_result(const Study& study, const Case& point, const std::string& launch);

/// Returns the failed result of a case during which launches ended, from its "running" one.
CaseResult given_up_result(CaseResult unfinished);

}  // namespace tessera::bench
