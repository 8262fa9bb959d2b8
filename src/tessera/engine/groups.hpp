// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// The communicators of the groups that a plan's collectives run over.
class Groups {
 public:
  /// Collective over the mesh.
  Groups(const PlanInput& input, const Mesh& mesh);
  const Communicator& operator[](Group group) const {
    return communicators_[static_cast<std::size_t>(group)];
  }

 private:
  std::vector<Communicator> communicators_;  ///< in the order of Group's enumerators
};

}  // namespace tessera
