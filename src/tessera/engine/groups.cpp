// SPDX-License-Identifier: Apache-2.0
#include <tessera/engine/groups.hpp>

namespace tessera {

Groups::Groups(const PlanInput& input, const Mesh& mesh) {
  for (const Group group :
       {Group::batch, Group::shard, Group::replica, Group::model, Group::split, Group::mesh})
    communicators_.push_back(mesh.over(axes_of(group, input)));
}

}  // namespace tessera
