// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

#include "results/results_directory.hpp"
#include "run/last_word.hpp"
#include "run/reference_plan.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// The losses that cases are held against, each found once for all cases that train the same and
/// kept in the results for other launches.
class References {
 public:
  References(const Study& study, const ResultsDirectory& results, const RunOptions& options)
      : study_(study), results_(results), options_(options) {}

  /// Makes those of these cases that the results lack, several at a time where the ranks suffice,
  /// while nothing is being timed. If a launch ends in the midst of several, later ones make these
  /// one at a time, to find out which it was; with --give-up they do not try that one for ever.
  /// Collective over `world`.
  void make(const std::vector<const Case*>& cases, const Communicator& world, LastWord& last_word);

  /// {"losses": {...}, "ranks": n, ...}; {"problem": "..."} where there is nothing to hold losses
  /// against; {"error": "...", "code": number} for a failure. On rank 0.
  nlohmann::json find(const Config& config) const;

  double seconds() const { return seconds_; }  ///< that make() has taken

 private:
  nlohmann::json waves_for(const std::vector<const Case*>& cases, Size ranks);
  bool is_wanted(const Case& point, const std::string& name);
  std::vector<CaseLock> begin(const nlohmann::json& wave) const;
  nlohmann::json run(const nlohmann::json& wave, const std::vector<const Case*>& cases,
                     const Communicator& world) const;
  void keep(const nlohmann::json& made);

  const Study& study_;
  const ResultsDirectory& results_;
  const RunOptions& options_;
  std::map<std::string, nlohmann::json> failures_;  ///< of this launch, by name
  double seconds_ = 0;
};

}  // namespace tessera::bench
