// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

#include "measure/case_run.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// The same training on one rank: replicated, in one microbatch, nothing overlapped.
Config reference_config(const Config& config);

/// The file of a reference: the same for cases that are held against the same training.
std::string reference_name(const Config& reference);

/// Trains on this rank alone: {"losses": {...}} or, where that is impossible, {"problem": "..."}.
/// Throws Error (timeout) like `check_time`.
nlohmann::json run_reference(const Config& reference, const Communicator& world,
                             const Limits& limits, const CheckTime& check_time);

/// The loss part of a result, and why it makes the case invalid; "" if it does not.
struct LossVerdict {
  nlohmann::json document;
  std::string problem;
};
/// `reference` as from run_reference.
LossVerdict judge_losses(const Verification& verification, const nlohmann::json& reference,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
