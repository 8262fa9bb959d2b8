// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/predict/simulate.hpp>

#include "results/case_result.hpp"

namespace tessera::bench {

Prediction prediction_of(const SimulatedStep& step, const std::string& machine,
                         bool oversubscribed);

/// Returns a line for each part of the step; the one with the largest difference comes first.
std::vector<ExplanationLine> explain(const SimulatedStep& step, const Breakdown& measured,
                                     const Plan& plan);

}  // namespace tessera::bench
