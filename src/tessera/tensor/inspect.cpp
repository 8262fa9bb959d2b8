// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/tensor/inspect.hpp>
#include <tessera/tensor/partition_spec.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {
namespace {

constexpr std::size_t shown_pieces = 16;

std::string sharding_of(const Placements& placements, const MeshShape& mesh, std::size_t dims) {
  const bool partial =
      std::any_of(placements.begin(), placements.end(), [](auto p) { return p.is_partial(); });
  return partial ? to_string(placements, mesh)
                 : to_partition_spec(placements, mesh, dims).to_string();
}

}  // namespace

std::string inspect_sharding(std::string_view name, const Shape& global_shape,
                             const Placements& placements, const MeshShape& mesh) {
  check_placements(placements, mesh, global_shape.size());
  const Cuts cuts = cuts_of(placements);
  std::map<std::pair<Shape, Shape>, std::vector<int>> holders;
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
    const Piece held = piece(global_shape, cuts, mesh, rank);
    holders[{held.offset, held.extent}].push_back(static_cast<int>(rank));
  }
  std::string text =
      fmt::format("{}:\n  Shape: {}\n  Sharding: {}\n  Ranks: {}\n", name, to_string(global_shape),
                  sharding_of(placements, mesh, global_shape.size()), mesh.num_ranks());
  std::size_t lines = 0;
  for (const auto& [held, ranks] : holders) {
    if (++lines > shown_pieces) {
      return text + fmt::format("  ... and {} more pieces\n", holders.size() - shown_pieces);
    }
    const bool empty = std::find(held.second.begin(), held.second.end(), 0) != held.second.end();
    text +=
        fmt::format("  {}{} on rank{} {}\n", to_string(Piece{held.first, held.second}),
                    empty ? " (empty)" : "", ranks.size() == 1 ? "" : "s", number_ranges(ranks));
  }
  return text;
}

}  // namespace tessera
