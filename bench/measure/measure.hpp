// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include <tessera/base/timer.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// Seconds of repeated measurements.
struct Summary {
  double median = 0;
  double mad = 0;  ///< median of the distances from the median
  double min = 0;
};
Summary summarize(const std::vector<double>& seconds);

/// How often a measurement is repeated; the first `warm_up` times are not counted.
struct Repeats {
  Size warm_up = 5;
  Size counted = 30;
};

/// Does something and tells how many seconds the part took that is to be measured.
using Work = std::function<double()>;

/// The seconds of `work`, fence included.
template <class F>
Work timed(F work) {
  return [=] {
    const Timer timer;
    work();
    Kokkos::fence();
    return timer.seconds();
  };
}

/// For each repetition the time of the slowest rank. Collective.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine);

/// Measures several things in turn, so that what else goes on in the machine meets all of them
/// alike. All ranks start each of them together; the clock runs on every rank by itself, and the
/// slowest rank of each repetition is found when all are over. Collective.
std::vector<Summary> measure_in_turn(const Communicator& ranks, const Repeats& repeats,
                                     const std::vector<Work>& works);

}  // namespace tessera::bench
