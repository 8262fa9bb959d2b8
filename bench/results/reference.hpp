// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/mesh/mesh_shape.hpp>

#include "measure/case_run.hpp"

namespace tessera::bench {

/// Losses that cases are compared with: references/<hash>.json (bench/RESULTS.md).
struct Reference {
  std::optional<Size> lost;         ///< launches that ended while they computed it
  std::optional<LossCurve> losses;  ///< none: not computed yet; then nothing below counts
  std::optional<Size> ranks, microbatches;
  std::string strategy;
  std::optional<Size> asked_steps;                  ///< none: all
  nlohmann::json trials = nlohmann::json::array();  ///< that validated the ranks
  std::optional<double> seconds;

  /// Returns true if there are losses of so many steps; none means all.
  bool has_steps(const std::optional<Size>& steps) const {
    return losses && (!asked_steps || (steps && *steps <= *asked_steps));
  }

  static void fields(auto& f, auto& v) {
    f("schema_version", written(1), "lost", v.lost, "losses", v.losses, "ranks",
      in_range(v.ranks, 1, most_ranks), "microbatches", v.microbatches, "strategy", v.strategy,
      "asked_steps", v.asked_steps, "trials", v.trials, "seconds", v.seconds);
  }
};

}  // namespace tessera::bench
