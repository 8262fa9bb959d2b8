// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "measure/case_run.hpp"

namespace tessera::bench {

/// {"steps": [...], "epochs": [...], "validations": [...]}; null for what is not finite.
nlohmann::json losses_json(const LossCurve& losses);

/// |value - wanted| / |wanted|; infinite where one of them is not finite, or null.
double relative_difference(const nlohmann::json& value, const nlohmann::json& wanted);

/// Where losses are furthest apart.
struct LossDifference {
  double relative = 0;
  std::size_t at = 0;  ///< counted from 0
  double value = 0, wanted = 0;
};
/// `reference`: a list of losses_json, at least as long; everything is infinitely far from null.
LossDifference largest_difference(const std::vector<double>& losses,
                                  const nlohmann::json& reference);

/// The loss part of a result, and why it makes the case invalid; "" if it does not.
struct LossVerdict {
  nlohmann::json document;
  std::string problem;
};
/// The relative difference of losses that is allowed, `asked` or more: with 16-bit activations a
/// difference of float32 in an order of additions may make any of them round the other way, so that
/// losses may differ by the unit roundoff of their type, 2^-8 of bfloat16 and 2^-11 of float16.
double loss_tolerance(const Config& config, double asked);

/// `reference`: as from References::find.
LossVerdict judge_losses(const Verification& verification, const nlohmann::json& reference,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
