// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/predict/simulate.hpp>

#include "measure/case_run.hpp"
#include "measure/rounds.hpp"
#include "run/last_word.hpp"
#include "run/launch.hpp"
#include "run/references.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// Everything that an attempt at a case needs.
struct AttemptContext {
  const Study& study;
  const Communicator& world;
  const Capacity& capacity;
  const LaunchState& launch;
  const References& references;
  const ResultsDirectory& results;
  LastWord& last_word;
  const RunOptions& options;
};

using AnyCaseRun =
    std::variant<CaseRun<float>, CaseRun<double>, CaseRun<BFloat16>, CaseRun<Float16>>;

/// A case between its rounds, on a rank of its group.
struct CaseState {
  nlohmann::json result;                   ///< whole on rank 0
  std::optional<SimulatedStep> predicted;  ///< on rank 0, if there is a machine to predict by
  double gemm_peak = 0;                    ///< FLOP/s of a rank
  std::vector<Round> rounds;               ///< of earlier launches and this one
  std::vector<std::vector<double>> steps;  ///< of each round
  std::unique_ptr<AnyCaseRun> run;         ///< null: not set up
  Size block_steps = 0;
  bool is_done = false;  ///< no further round is wanted of this launch
  double seconds_before = 0;
  Timer clock;  ///< of this round
  /// In all rounds of this launch.
  double seconds() const { return seconds_before + clock.seconds(); }
};

/// Of a round, for steps that take so long: enough for a block to last, and for all rounds to have
/// those that the study wants.
Size block_steps(const MeasureRules& rules, double step_seconds);

/// A round of a case. The first one of a launch verifies it against its reference (as from
/// References::find). Fills in the result as it goes: what an exception leaves behind is what had
/// been found by then. Sets the status ok, unverified or invalid; other ends are exceptions.
/// Collective over the ranks of the case.
void run_round(const Case& point, const AttemptContext& context, const nlohmann::json& reference,
               CaseState& state);

}  // namespace tessera::bench
