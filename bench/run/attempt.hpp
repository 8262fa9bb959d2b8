// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/comm/communicator.hpp>

#include "results/results_directory.hpp"
#include "run/case_steps.hpp"
#include "run/last_word.hpp"
#include "run/launch.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// Everything that an attempt at a case needs.
struct AttemptContext {
  const Study& study;
  const Communicator& world;
  const LaunchState& launch;
  const ResultsDirectory& results;
  LastWord& last_word;
  const RunOptions& options;
  std::optional<Fault> fault{};
};

/// Runs one case, from its reference to its result file, on its ranks while the others sleep.
/// Collective over all ranks of the job. The result is final on rank 0; null, everywhere, if
/// another launch runs the case or has run it meanwhile.
nlohmann::json attempt_case(const Case& point, const AttemptContext& context);

/// The result of a case that does not apply.
nlohmann::json skipped_result(const Study& study, const Case& point, const std::string& launch);

}  // namespace tessera::bench
