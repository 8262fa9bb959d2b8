// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/predict/machine.hpp>

#include "results/summary.hpp"

namespace tessera::bench {

/// A configuration that no case of a study has. It does the work of the fastest case on as many
/// ranks, and its predicted step is shorter.
struct Untried {
  std::string fastest;  ///< id of the fastest case
  std::string unknown;  ///< why nothing is predicted for it; then the rest is empty
  std::string strategy, mesh, activation_checkpointing;
  Size microbatches = 1;
  double step_seconds = 0, fastest_step_seconds = 0;  ///< both predicted, on one machine

  TESSERA_FIELDS(fastest, unknown, strategy, mesh, activation_checkpointing, microbatches,
                 step_seconds, fastest_step_seconds);
};

/// Returns the configuration with the shortest predicted step for each fastest case of the summary,
/// on up to 32 ranks, if it gains at least smallest_effect. `machine` returns the machine that
/// predicts a case in this launch, or null.
std::vector<Untried> untried(const Summary& summary, const std::vector<Case>& cases,
                             const std::function<const Machine*(const Case&)>& machine);

/// Returns a line for each configuration, and the reasons why there is none.
std::string untried_text(const std::vector<Untried>& list);

}  // namespace tessera::bench
