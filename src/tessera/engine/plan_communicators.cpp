// SPDX-License-Identifier: Apache-2.0
#include <tessera/engine/plan_communicators.hpp>

namespace tessera {

PlanCommunicators::PlanCommunicators(const PlanInput& input, const Mesh& mesh) {
  for (const RankSet ranks : rank_sets) communicators_.push_back(mesh.over(axes_of(ranks, input)));
}

}  // namespace tessera
