// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/collectives.hpp>
#include <tessera/tensor/mesh.hpp>

namespace tessera {

/// One communicator per RankSet, for the calls of a plan.
class PlanCommunicators {
 public:
  /// Collective over the mesh, unless the mesh has already made these communicators.
  PlanCommunicators(const PlanInput& input, const Mesh& mesh) {
    for (const RankSet ranks : rank_sets)
      communicators_.push_back(mesh.over(axes_of(ranks, input)));
    if (!input.numerics.reproducible) return;
    for (const RankSet ranks : {RankSet::shard, RankSet::replica, RankSet::model}) {
      Communicator& one = communicators_[static_cast<std::size_t>(ranks)];
      one = one.in_tree();
    }
  }
  const Communicator& operator[](RankSet ranks) const {
    return communicators_[static_cast<std::size_t>(ranks)];
  }

 private:
  std::vector<Communicator> communicators_;  ///< in the order of RankSet's enumerators
};

}  // namespace tessera
