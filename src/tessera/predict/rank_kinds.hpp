// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Ranks that nothing in a step tells apart: those of a kind do equal work, and in every set of
/// ranks they meet as many of each kind. A simulation needs one clock for each kind, however many
/// ranks there are.
struct RankKinds {
  std::vector<Size> first;    ///< rank of each kind, ascending
  std::vector<double> share;  ///< part of all ranks
  /// By kind: the lowest kind that it meets in a set of ranks, which names the group.
  std::map<RankSet, std::vector<Size>> leader;
  std::size_t size() const { return first.size(); }
};
RankKinds rank_kinds(const Plan& plan);

}  // namespace tessera
