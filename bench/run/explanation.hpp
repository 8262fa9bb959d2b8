// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/predict/simulate.hpp>

#include "measure/breakdown.hpp"

namespace tessera::bench {

/// Seconds of a predicted step and its parts.
nlohmann::json prediction_json(const SimulatedStep& step);

/// Part by part what was predicted and what the instrumented steps took, as lines of
/// {"part", "predicted_seconds", "measured_seconds"}, those of calls with "calls" and
/// "payload_bytes" of a step; the largest difference first.
nlohmann::json explanation_json(const SimulatedStep& step, const Breakdown& measured,
                                const Plan& plan);

}  // namespace tessera::bench
