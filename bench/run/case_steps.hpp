// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/comm/communicator.hpp>

#include "measure/calibration.hpp"
#include "run/fault.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// What a case needs beside itself.
struct CaseContext {
  const Study& study;
  const Communicator& ranks;  ///< of the case
  Calibration calibration;
  nlohmann::json reference;  ///< of its losses, as from run_reference
  std::string reference_name;
  Timer clock;                                            ///< since the case was begun
  std::function<void(const std::string& phase)> enter{};  ///< told of each phase
  std::optional<Fault> fault{};
  /// Told on rank 0 of the trace of the instrumented steps, if anybody wants it.
  std::function<void(const nlohmann::json& chrome_trace)> keep_trace{};
};

/// Verifies and measures one case, and fills in its result as it goes: what an exception leaves
/// behind is what had been found by then. Sets the status ok or invalid; other ends are exceptions.
/// Returns its step times. Collective over the ranks of the case; results are whole on rank 0.
std::vector<double> run_case(const Case& point, const CaseContext& context, nlohmann::json& result);

}  // namespace tessera::bench
