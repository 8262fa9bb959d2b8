// SPDX-License-Identifier: Apache-2.0
#include <tessera/engine/plan_communicators.hpp>

namespace tessera {

PlanCommunicators::PlanCommunicators(const PlanInput& input, const Mesh& mesh) {
  for (const RankSet ranks : {RankSet::batch, RankSet::shard, RankSet::replica, RankSet::model,
                              RankSet::split, RankSet::mesh})
    communicators_.push_back(mesh.over(axes_of(ranks, input)));
}

}  // namespace tessera
