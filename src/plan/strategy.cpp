// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/strategy.hpp>

namespace tessera {

std::vector<std::string> batch_axes(const MeshShape& mesh) {
  std::vector<std::string> axes;
  for (const Axis& axis : mesh.axes())
    if (axis.name == "data" || axis.name == "fsdp") axes.push_back(axis.name);
  return axes;
}

}  // namespace tessera
