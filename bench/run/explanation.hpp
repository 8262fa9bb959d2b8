// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/predict/simulate.hpp>

#include "measure/breakdown.hpp"

namespace tessera::bench {

/// The prediction of a result: seconds of the step and its parts. `oversubscribed`: the ranks share
/// processors, so that the prediction is coarse.
nlohmann::json prediction_json(const SimulatedStep& step, const std::string& machine,
                               bool oversubscribed);

/// The explanation of a result: a line {"part", "predicted_seconds", "measured_seconds"} for each
/// part of the step, with "calls" and "payload_bytes" for calls. The line with the largest
/// difference comes first.
nlohmann::json explanation_json(const SimulatedStep& step, const Breakdown& measured,
                                const Plan& plan);

}  // namespace tessera::bench
