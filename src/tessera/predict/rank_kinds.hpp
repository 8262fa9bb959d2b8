// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Kinds of indistinguishable ranks. Ranks of one kind do equal work, and their groups in every set
/// of ranks contain equal numbers of each kind. A simulation needs one clock per kind for any
/// number of ranks.
struct RankKinds {
  std::vector<Size> first;    ///< first rank of each kind, ascending
  std::vector<double> share;  ///< fraction of all ranks, by kind
  /// The lowest kind in the group of a kind, which names the group, by set and kind.
  std::map<RankSet, std::vector<Size>> leader;
  std::size_t size() const { return first.size(); }
};
RankKinds rank_kinds(const Plan& plan);

}  // namespace tessera
