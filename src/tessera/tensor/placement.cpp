// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {

std::string to_string(const Placement& placement) {
  if (placement.is_shard() && placement.repeats() > 1)
    return fmt::format("Shard({}) on every {} ranks", placement.dim(), placement.repeats());
  if (placement.is_shard()) return fmt::format("Shard({})", placement.dim());
  return placement.is_partial() ? "Partial" : "Replicate";
}

std::string to_string(const Placements& placements, const MeshShape& mesh) {
  std::vector<std::string> texts;
  for (std::size_t a = 0; a < placements.size(); ++a)
    texts.push_back(fmt::format("{}: {}", mesh.axes().at(a).name, to_string(placements[a])));
  return join(texts);
}

std::string to_string(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

Placements replicated(const MeshShape& mesh) { return Placements(mesh.num_axes()); }

Placement placement_along(std::string_view axis, const Placements& placements,
                          const MeshShape& mesh) {
  const auto at = mesh.find(axis);
  return at ? placements[*at] : Placement::replicate();
}

void check_placements(const Placements& placements, const MeshShape& mesh,
                      std::size_t tensor_rank) {
  if (placements.size() != mesh.num_axes()) {
    throw Error(ExitCode::usage, "{} placements for the mesh {}, which needs one per axis",
                placements.size(), mesh.to_string());
  }
  for (const Placement& placement : placements) {
    if (!placement.is_shard()) continue;
    if (placement.dim() < 0 || static_cast<std::size_t>(placement.dim()) >= tensor_rank) {
      throw Error(ExitCode::usage, "placements {}: a tensor with {} has no dimension {}",
                  to_string(placements, mesh), counted(static_cast<Size>(tensor_rank), "dimension"),
                  placement.dim());
    }
  }
}

}  // namespace tessera
