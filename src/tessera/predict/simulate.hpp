// SPDX-License-Identifier: Apache-2.0
// Simulates the schedule of a plan with given costs: the time of a step and its parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {

/// The cost of one piece of work.
struct Cost {
  double seconds = 0;  ///< mean over ranks
  /// Seconds by which the slowest rank exceeds the mean when all ranks do the same work. Other
  /// ranks wait for them at the next call.
  double lag = 0;
  /// Seconds of a started call that computation does not hide, because the rank itself moves the
  /// message.
  double exposed = 0;
};
using CostOf = std::function<Cost(const Work&)>;

/// The seconds of a step. All but step_seconds are means over ranks.
struct SimulatedStep {
  double step_seconds =
      0;                ///< from the end of one step to the end of the next, of the slowest rank
  double products = 0;  ///< layers that consist mainly of matrix products
  double kernels = 0;   ///< all other layers, loss, clipping, sums
  double update = 0;    ///< the optimizer
  struct Call {
    std::string axis;
    Operation operation = Operation::all_reduce;
    double calls = 0;
    double seconds = 0;  ///< the rank spends in calls alone
    double waiting = 0;  ///< until the last rank has arrived
  };
  std::vector<Call> calls;
  double communication() const;
  double waiting() const;
};

/// Executes the schedule with one clock per kind of ranks. A call begins when the last rank of its
/// group has arrived, including its lag. A started call begins at S = max(R, E') and ends at E = S
/// + hidden + exposed: R is the time when the last rank is ready, E' the end of the previous call
/// of the group. The rank that finishes it waits until S + hidden and then spends the exposed time
/// itself, because MPI moves messages only inside its calls ("Overlap model" in README.md).
/// Without `kinds`, those of rank_kinds() are used.
SimulatedStep simulate(const Plan& plan, const CostOf& cost);
SimulatedStep simulate(const Plan& plan, const CostOf& cost, const RankKinds& kinds);

}  // namespace tessera
