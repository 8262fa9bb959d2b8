// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "measure/case_run.hpp"
#include "run/references.hpp"

namespace tessera::bench {

/// Returns |value - wanted| / |wanted|, or infinity if one of them is not finite.
double relative_difference(double value, double wanted);

/// Returns the relative difference of losses that is allowed: `asked`, but with 16-bit activations
/// at least the unit roundoff of their type, 2^-8 of bfloat16 and 2^-11 of float16. Additions in
/// another order may make any activation round the other way.
double loss_tolerance(const Config& config, double asked);

struct LossVerdict {
  LossResult loss;
  std::string problem;  ///< why the case is invalid; empty if it is not
};
LossVerdict judge_losses(const Verification& verification, const FoundReference& reference,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
