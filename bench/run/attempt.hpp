// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "run/case_steps.hpp"

namespace tessera::bench {

/// An attempt at a case: its rounds in this launch, on its ranks, while the others sleep. All its
/// functions are collective over all ranks of the job.
class Attempt {
 public:
  /// Takes the case, unless another launch runs it or has run it meanwhile. Rounds of an earlier
  /// launch that was cut short, or that was one of several to come, are kept. `stays_set_up`:
  /// between its rounds.
  Attempt(const Case& point, const AttemptContext& context, bool stays_set_up);

  /// Nothing where no further round is wanted.
  void run_round();

  const Case& point() const { return *point_; }
  /// Final on rank 0 after each round; null, everywhere, if the case was not taken.
  const nlohmann::json& result() const { return state_.result; }

 private:
  void begin(const nlohmann::json& taken);
  void predict(const Plan& plan);
  void measure(const nlohmann::json& reference);
  void write() const;

  const Case* point_;
  const AttemptContext* context_;
  bool stays_set_up_;
  std::optional<CaseLock> lock_;  ///< of rank 0, until no further round is wanted
  CaseState state_;
};

/// The result of a case that does not apply.
nlohmann::json skipped_result(const Study& study, const Case& point, const std::string& launch);

/// The same result, "running" so far, as that of a case which no launch survives.
nlohmann::json given_up_result(nlohmann::json unfinished);

}  // namespace tessera::bench
