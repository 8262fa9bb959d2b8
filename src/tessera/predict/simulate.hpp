// SPDX-License-Identifier: Apache-2.0
// The plan's schedule with given times: how long a step takes, and what ranks wait for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {

/// Of one piece of work.
struct Cost {
  double seconds = 0;  ///< on the mean rank
  /// How much longer the slowest of all ranks takes, if they do the same at the same time: others
  /// wait for it when they meet next.
  double lag = 0;
  /// Of a started call: the part that no computation hides, as the rank itself has to work on it.
  double exposed = 0;
};
using CostOf = std::function<Cost(const Work&)>;

/// Seconds of a step. All but step_seconds are means over ranks.
struct SimulatedStep {
  double step_seconds =
      0;                ///< from the end of one step to the end of the next, of the slowest rank
  double products = 0;  ///< layers that are mainly matrix products
  double kernels = 0;   ///< all other layers, loss, clipping, sums
  double update = 0;    ///< the optimizer
  struct Call {
    std::string axis;
    Operation operation = Operation::all_reduce;
    double calls = 0;
    double seconds = 0;  ///< in which the rank does nothing else
    double waiting = 0;  ///< for ranks that arrive later
  };
  std::vector<Call> calls;
  double communication() const;
  double waiting() const;
};

/// Carries the schedule out on a clock of each rank. A call begins when the last rank of its group
/// has arrived, with all that it lags behind. A started one, E = S + hidden + exposed, begins with
/// S = max(R, E') where R is when the last rank is ready and E' when the group's call before it
/// ends; who finishes it waits until S + hidden and takes the exposed part itself: MPI moves
/// messages only while it is called (README.md, "Overlap model"). One clock for each kind of
/// ranks, or for each of these.
SimulatedStep simulate(const Plan& plan, const CostOf& cost);
SimulatedStep simulate(const Plan& plan, const CostOf& cost, const RankKinds& kinds);

}  // namespace tessera
