// SPDX-License-Identifier: Apache-2.0
#include "run/time_left.hpp"

namespace tessera::bench {

TimeLeft::TimeLeft(std::size_t cases, Size rounds) : cases_(cases, OfCase{.left = rounds}) {}

void TimeLeft::add(std::size_t number, const RoundTime& time) {
  OfCase& of_case = cases_[number];
  if (of_case.rounds == 0) of_case.first_seconds = time.seconds;
  of_case.other_seconds += time.of_another;
  ++of_case.rounds;
  of_case.left = time.is_last ? 0 : of_case.left - 1;
}

std::optional<double> TimeLeft::seconds() const {
  double whole = 0, left = 0;
  std::size_t begun = 0;
  for (const OfCase& one : cases_) {
    if (one.rounds == 0) continue;
    ++begun;
    whole += one.first_seconds + static_cast<double>(one.left + one.rounds - 1) * one.mean();
    left += static_cast<double>(one.left) * one.mean();
  }
  if (begun == 0) return std::nullopt;
  // A case that has not begun takes as long as the mean of those that have.
  return left + static_cast<double>(cases_.size() - begun) * whole / static_cast<double>(begun);
}

}  // namespace tessera::bench
