// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/timer.hpp>

#include "measure/case_run.hpp"
#include "results/result_parts.hpp"
#include "run/group.hpp"
#include "run/launch.hpp"
#include "run/references.hpp"

namespace tessera::bench {

/// The rounds of a case in this launch. The ranks of the case run them while the other ranks sleep.
/// All public functions are collective over all ranks of the job.
class CaseRounds {
 public:
  /// With `stays_set_up`, the case stays set up between its rounds. Lines that the launches
  /// `instead_of` have written about the case count no longer.
  CaseRounds(const Case& point, LaunchState& launch, const References& references,
             bool stays_set_up, std::vector<std::string> instead_of);
  CaseRounds(const CaseRounds&) = delete;
  CaseRounds& operator=(const CaseRounds&) = delete;

  /// Runs a round and writes its begin and its end to the journal, unless the case is done.
  void run_round();

 private:
  End end_line() const;

  // case_steps.cpp: collective over the ranks of the case.

  /// The first round of a launch verifies the case against its reference. The result is filled in
  /// step by step, so that it keeps what was found before an exception. Sets the status ok,
  /// unverified or invalid; other ends are exceptions.
  void run_steps(const FoundReference& reference);
  /// Runs what comes once before the rounds: verification, warm-up, instrumented steps,
  /// checkpoints. Returns false if the case is invalid.
  bool verify_and_instrument(const FoundReference& reference);
  void warm_up();
  /// Verifies losses, traffic and memory. Ends the case and returns false if one of them is wrong.
  bool verify(const FoundReference& reference);
  bool check_memory();
  void instrument();
  /// Times a block of steps, with the machine's speed before and after it. A case that has used
  /// half of its time limit is done in this launch.
  void measure_block();
  /// Throws Error (timeout) on all ranks if the case has used its time.
  void check_time() const { bench::check_time(ranks(), seconds(), study_.limits); }

  const Communicator& ranks() const { return launch_.group(point_).ranks; }
  /// Returns the seconds in all rounds of this launch.
  double seconds() const { return seconds_before_ + clock_.seconds(); }
  /// Returns true if --inject plants this fault on this rank.
  bool has_fault(Fault::Kind kind) const {
    const std::optional<Fault>& fault = launch_.options.fault;
    return fault && fault->kind == kind && fault->rank == ranks().rank();
  }

  const Case& point_;
  LaunchState& launch_;
  const References& references_;
  const Study& study_;
  bool stays_set_up_;
  std::vector<std::string> instead_of_;

  Size round_ = 0;                  ///< of this launch
  CaseResult result_;               ///< what the first round found
  std::optional<Round> block_;      ///< of this round
  std::vector<double> step_times_;  ///< of its steps
  std::unique_ptr<CaseRun> run_;    ///< null if it is not set up
  Size block_steps_ = 0;
  bool is_done_ = false;  ///< this launch runs no further round
  double seconds_before_ = 0;
  Timer clock_;  ///< since the round began
};

}  // namespace tessera::bench
