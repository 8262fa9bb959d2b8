// SPDX-License-Identifier: Apache-2.0
// Simulates the schedule of a plan with given costs: the time of a step and its parts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/step_works.hpp>

namespace tessera {

/// The seconds of a step and of its parts. Parts are means over ranks.
struct SimulatedStep {
  /// From the end of one step to the end of the next, on the slowest rank.
  double step_seconds = 0;
  /// Kernels of one sort, in seconds.
  struct Kernels {
    double work = 0;      ///< without launches
    double launches = 0;  ///< overhead of launches
    double total() const { return work + launches; }
  };
  Kernels products;  ///< layers that consist mainly of matrix products
  Kernels kernels;   ///< all other layers, loss, clipping, sums
  Kernels update;    ///< the optimizer
  /// The calls of one operation along an axis, or along several as "data+fsdp".
  struct Call {
    std::string axis;
    Operation operation = Operation::all_reduce;
    double calls = 0;
    double seconds = 0;  ///< in calls, without `waiting`
    double lasting = 0;  ///< from the begin to the end of calls, also while computation hides them
    double waiting = 0;  ///< before calls, until the last rank of the group arrives
    std::string name() const;  ///< "all_reduce on data"
  };
  std::vector<Call> calls;
  double launches() const;       ///< sum of Kernels::launches
  double communication() const;  ///< sum of Call::seconds
  double waiting() const;        ///< sum of Call::waiting
  /// Returns the parts by name, as "products" and "all_reduce on data", with their seconds.
  std::vector<std::pair<std::string, double>> parts() const;
};

/// Simulates a step with one clock per kind of ranks ("Overlap model" in README.md). A rank arrives
/// at a call with its lag. The first overload uses rank_kinds(plan).
SimulatedStep simulate(const Plan& plan, const CostOf& cost);
SimulatedStep simulate(const Plan& plan, const CostOf& cost, const RankKinds& kinds,
                       const Software& software = {});

}  // namespace tessera
