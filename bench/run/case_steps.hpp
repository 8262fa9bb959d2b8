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
#include "run/abort_record.hpp"
#include "run/launch.hpp"
#include "run/references.hpp"
#include "run/selection.hpp"

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

using AnyCaseRun =
    std::variant<CaseRun<float>, CaseRun<double>, CaseRun<BFloat16>, CaseRun<Float16>>;

/// The state of a case between its rounds, on a rank of its group.
struct CaseState {
  CaseResult result;                       ///< complete on rank 0; its rounds are everywhere
  std::optional<SimulatedStep> predicted;  ///< on rank 0, if there is a machine to predict by
  double gemm_peak = 0;                    ///< FLOP/s per rank
  std::vector<std::vector<double>> steps;  ///< step times of each round
  std::unique_ptr<AnyCaseRun> run;         ///< null if it is not set up
  Size block_steps = 0;
  bool is_done = false;  ///< this launch runs no further round
  double seconds_before = 0;
  Timer clock;  ///< since the round began
  /// Seconds in all rounds of this launch.
  double seconds() const { return seconds_before + clock.seconds(); }
};

/// Returns the number of steps of a round, for steps of this length: enough for block_seconds, and
/// in all rounds together between the study's steps and max_steps.
Size block_steps(const MeasureRules& rules, double step_seconds);

/// Runs a round of a case. The first round of a launch verifies the case against its reference. The
/// result is filled in step by step, so that it keeps what was found before an exception. Sets the
/// status ok, unverified or invalid; other ends are exceptions. Collective over the ranks of the
/// case.
void run_round(const Case& point, const AttemptContext& context, const FoundReference& reference,
               CaseState& state);

}  // namespace tessera::bench
