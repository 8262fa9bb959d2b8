// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// The communicators of the sets of ranks that a plan's collectives run over.
class PlanCommunicators {
 public:
  /// Collective over the mesh.
  PlanCommunicators(const PlanInput& input, const Mesh& mesh) {
    for (const RankSet ranks : rank_sets)
      communicators_.push_back(mesh.over(axes_of(ranks, input)));
  }
  const Communicator& operator[](RankSet ranks) const {
    return communicators_[static_cast<std::size_t>(ranks)];
  }

 private:
  std::vector<Communicator> communicators_;  ///< in the order of RankSet's enumerators
};

}  // namespace tessera
