// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// The time that one round of a case took.
struct RoundTime {
  double seconds = 0;
  double of_another = 0;  ///< without what only the first round does
  bool is_last = false;   ///< the launch runs no further round of the case
};

/// Estimates how long the other rounds of a launch take. The first round of a case verifies it, and
/// takes much longer than the others, so both are estimated separately.
class TimeLeft {
 public:
  TimeLeft(std::size_t cases, Size rounds);
  /// Adds a round of the case with this number.
  void add(std::size_t number, const RoundTime& time);
  /// Returns the seconds left; none before the first round.
  std::optional<double> seconds() const;

 private:
  struct OfCase {
    Size rounds = 0;  ///< that were run
    Size left = 0;
    double first_seconds = 0;
    double other_seconds = 0;  ///< sum of `of_another` over the rounds

    double mean() const { return other_seconds / static_cast<double>(rounds); }
  };
  std::vector<OfCase> cases_;
};

}  // namespace tessera::bench
