// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "run/case_steps.hpp"

namespace tessera::bench {

/// The state that an attempt continues from. Rank 0 reads it for all ranks.
struct TakenCase {
  Size attempt = 0;   ///< 0: another launch has the case
  Size launches = 0;  ///< launches that finished measuring the case
  std::vector<Round> rounds{};
  std::vector<std::vector<double>> steps{};  ///< step times of each round
};

/// An attempt at a case: its rounds in this launch. The ranks of the case run them while the other
/// ranks sleep. All functions are collective over all ranks of the job.
class Attempt {
 public:
  /// Takes the case, unless another launch runs it or has run it meanwhile. It keeps the rounds of
  /// an earlier launch if that was killed or if the study asks for several launches. With
  /// `stays_set_up`, the case stays set up between its rounds.
  Attempt(const Case& point, const AttemptContext& context, bool stays_set_up);

  /// Runs a round, unless the case is done.
  void run_round();

  const Case& point() const { return *point_; }
  /// Returns false, on all ranks, if another launch has the case.
  bool is_taken() const { return is_taken_; }
  /// Complete on rank 0 after each round.
  const CaseResult& result() const { return state_.result; }

 private:
  void begin(const TakenCase& taken);
  void predict(const Plan& plan);
  void measure(const FoundReference& reference);
  void write() const;

  const Case* point_;
  const AttemptContext* context_;
  bool stays_set_up_;
  bool is_taken_ = false;
  std::optional<CaseLock> lock_;  ///< on rank 0, until the case is done
  CaseState state_;
};

/// Returns the result of a case that is skipped.
CaseResult skipped_result(const Study& study, const Case& point, const std::string& launch);

/// Returns the failed result of a case during which launches ended, from its "running" one.
CaseResult given_up_result(CaseResult unfinished);

}  // namespace tessera::bench
