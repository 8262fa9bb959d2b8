// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/case_run.hpp"
#include "results/stored_document.hpp"

namespace tessera::bench {

/// {"steps": [...], "epochs": [...], "validations": [...]}; null stands for a loss that is not
/// finite, and is read as NaN.
void to_json(nlohmann::json& json, const LossCurve& losses);
void from_json(const nlohmann::json& json, LossCurve& losses);

/// Losses that cases are compared with: references/<hash>.json (bench/RESULTS.md).
struct Reference {
  std::optional<LossCurve> losses;  ///< none: not computed yet
  Size ranks = 1;
  std::string strategy;
  Size microbatches = 1;
  std::optional<Size> asked_steps;                  ///< none: all
  nlohmann::json trials = nlohmann::json::array();  ///< that validated the ranks
  double seconds = 0;
  Size lost = 0;  ///< launches that ended while they computed it

  /// Returns true if there are losses of so many steps; none means all.
  bool has_steps(const std::optional<Size>& steps) const {
    return losses && (!asked_steps || (steps && *steps <= *asked_steps));
  }
};
void to_json(nlohmann::json& json, const Reference& reference);

/// Throws Error (usage) with file and key for a value that readers cannot use.
Reference read_reference(const StoredDocument& document);

}  // namespace tessera::bench
