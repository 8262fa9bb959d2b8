// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/comm/communicator.hpp>

#include "measure/case_run.hpp"
#include "results/results_directory.hpp"

namespace tessera::bench {

/// The file of the one-rank run that cases with this configuration are held against: the same for
/// all that train the same.
std::string reference_name(const Config& config);

/// The losses of that run, from the results or made now on this rank alone: {"losses": {...}};
/// {"problem": "..."} where one rank has too little memory; {"error": "...", "code": number} for
/// any other failure. `clock` runs since the attempt at the case began.
nlohmann::json find_reference(const Config& config, const ResultsDirectory& results,
                              const Communicator& world, const Limits& limits, const Timer& clock);

/// The loss part of a result, and why it makes the case invalid; "" if it does not.
struct LossVerdict {
  nlohmann::json document;
  std::string problem;
};
/// The relative difference of losses that is allowed, `asked` or more: with 16-bit activations a
/// difference of float32 in an order of additions may make any of them round the other way, so that
/// losses may differ by the unit roundoff of their type, 2^-8 of bfloat16 and 2^-11 of float16.
double loss_tolerance(const Config& config, double asked);

/// `reference` as from find_reference.
LossVerdict judge_losses(const Verification& verification, const nlohmann::json& reference,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
