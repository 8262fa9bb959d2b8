// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Kinds of indistinguishable ranks. Ranks of one kind do equal work, and in every call their
/// groups contain equal numbers of ranks of each kind. So they are always at the same time, and a
/// simulation needs one clock per kind for any number of ranks.
struct RankKinds {
  std::vector<Size> first;    ///< first rank of each kind, ascending
  std::vector<double> share;  ///< by kind, its fraction of all ranks
  /// The lowest kind in the groups of ranks of a kind, by set and kind. All groups with the same
  /// leader have the same composition, and the simulation treats them as one group.
  std::map<AxisSet, std::vector<Size>> leader;
  /// Returns the number of kinds.
  std::size_t size() const { return first.size(); }
};
RankKinds rank_kinds(const Plan& plan);

}  // namespace tessera
