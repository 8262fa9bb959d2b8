// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/mesh/mesh_shape.hpp>

#include "measure/instrument.hpp"

namespace tessera::bench {

/// Mean seconds of a step.
struct Share {
  double max_rank_seconds = 0;
  double mean_rank_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Share, max_rank_seconds, mean_rank_seconds)

/// Traffic of one axis and operation in a step: mean over ranks.
struct CallTime {
  std::string axis;
  Operation operation = Operation::barrier;
  double calls = 0;
  double seconds = 0;  ///< as long as the last rank to arrive was in them
  double waiting = 0;  ///< the rest
};

struct Breakdown {
  Size steps = 0;
  double step_seconds = 0;  ///< mean over ranks
  Share compute, communication, idle, optimizer, other;
  Share products;  ///< matrix products, part of compute
  std::vector<CallTime> calls;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Breakdown, steps, step_seconds, compute, communication, idle,
                                   optimizer, other, products)

/// Finds how much of each call of the traces, by rank of the mesh, was waiting for others: all but
/// what the last rank to arrive in its group needed, or of messages all but what the shortest
/// needed; a stage that looks after its messages during a pass does not wait. Where ranks of a
/// group have not made equally many calls (requests that were tested to their end), none of it.
void find_waits(const MeshShape& mesh, std::vector<RankTrace>& ranks);

/// Puts the ranks' traces of `steps` steps together. Of the time in a call, waiting is idle, and
/// the rest is communication.
Breakdown break_down(const std::vector<RankTrace>& ranks, Size steps);

/// Ranks that exchange messages over an axis, or over several: "data", "data+fsdp". For any other
/// name, such as "world", all of them.
std::vector<Size> group_of(const MeshShape& mesh, const std::string& axis, Size rank);

}  // namespace tessera::bench
