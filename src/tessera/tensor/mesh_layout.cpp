// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/tensor/partition_spec.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {
namespace {

constexpr Size gap = -1;

/// Returns 0..n-1, or, if these are more than `limit`, the first ones, a gap and the last.
std::vector<Size> shown(Size n, Size limit) {
  std::vector<Size> indices;
  for (Size i = 0; i < std::min(n, limit); ++i) indices.push_back(i);
  if (n > limit) {
    indices[indices.size() - 2] = gap;
    indices.back() = n - 1;
  }
  return indices;
}

std::string cell(Size number) { return number == gap ? "..." : fmt::format("{}", number); }

/// Returns one grid of rows x columns whose first rank is `first`; a 1-D mesh has one row.
std::string grid(const MeshShape& mesh, Size first) {
  const std::size_t last = mesh.num_axes() - 1;
  const bool has_rows = last > 0;
  const Size columns = mesh.axes()[last].size;
  const std::string corner =
      has_rows ? fmt::format("{} \\ {}", mesh.axes()[last - 1].name, mesh.axes()[last].name)
               : mesh.axes()[last].name;
  const std::string highest = cell(mesh.num_ranks() - 1);
  const auto width = std::max<std::size_t>(highest.size(), columns > 12 ? 3 : 1) + 2;
  const auto line = [&](const std::string& head, const auto& number) {
    std::string text = fmt::format("  {:>{}} |", head, corner.size());
    for (const Size c : shown(columns, 12)) text += fmt::format("{:>{}}", cell(number(c)), width);
    return text + "\n";
  };
  std::string text = line(corner, [](Size c) { return c; });
  text += fmt::format("  {:-<{}}+{:-<{}}\n", "", corner.size() + 1, "",
                      width * shown(columns, 12).size());
  for (const Size r : shown(has_rows ? mesh.axes()[last - 1].size : 1, 12)) {
    text += line(has_rows ? cell(r) : "rank",
                 [&](Size c) { return r == gap || c == gap ? gap : first + r * columns + c; });
  }
  return text;
}

Shape sizes_of(const MeshShape& mesh) {
  Shape sizes;
  for (const Axis& axis : mesh.axes()) sizes.push_back(axis.size);
  return sizes;
}

std::vector<std::string> axes_inside(const Topology& topology, const MeshShape& mesh, bool inside) {
  std::vector<std::string> names;
  for (const Axis& axis : mesh.axes())
    if (axis.size > 1 && topology.stays_inside(mesh, axis.name) == inside)
      names.push_back(axis.name);
  return names;
}

constexpr std::size_t shown_pieces = 16;

std::string sharding_of(const Placements& placements, const MeshShape& mesh, std::size_t dims) {
  const bool partial =
      std::any_of(placements.begin(), placements.end(), [](auto p) { return p.is_partial(); });
  return partial ? to_string(placements, mesh)
                 : to_partition_spec(placements, mesh, dims).to_string();
}

}  // namespace

std::string shape_text(const MeshShape& mesh) { return to_string(sizes_of(mesh)); }

std::string names_text(const MeshShape& mesh) {
  return fmt::format("('{}'{})", join(mesh.axis_names(), "', '"), mesh.num_axes() == 1 ? "," : "");
}

std::string layout_text(const MeshShape& mesh) {
  if (mesh.num_axes() <= 2) return grid(mesh, 0);
  const std::size_t outer = mesh.num_axes() - 2;
  const Size plane = mesh.axes()[outer].size * mesh.axes()[outer + 1].size;
  std::string text;
  for (const Size p : shown(mesh.num_ranks() / plane, 4)) {
    if (p == gap) {
      text += "...\n";
      continue;
    }
    std::vector<std::string> where;
    for (std::size_t a = 0; a < outer; ++a) {
      where.push_back(fmt::format("{}={}", mesh.axes()[a].name, mesh.coordinate(p * plane, a)));
    }
    text += join(where) + "\n" + grid(mesh, p * plane);
  }
  return text;
}

std::string visualize_mesh(const MeshShape& mesh) {
  const Size ranks = mesh.num_ranks();
  return fmt::format("Mesh shape: {}\nAxis names: {}\nRank layout ({}):\n{}", shape_text(mesh),
                     names_text(mesh), counted(ranks, "rank"), layout_text(mesh));
}

std::string nodes_line(const Topology& topology, const MeshShape& mesh) {
  if (!topology.is_known()) return "";
  std::string text = "Nodes: " + nodes_text(topology);
  std::string separator = "; ";
  for (const bool inside : {true, false}) {
    const std::vector<std::string> axes = axes_inside(topology, mesh, inside);
    if (axes.empty()) continue;
    const bool one = axes.size() == 1;
    text += separator + join(axes) +
            (inside ? (one ? " stays inside a node" : " stay inside a node")
                    : (one ? " crosses nodes" : " cross nodes"));
    separator = ", ";
  }
  return text + "\n";
}

nlohmann::json nodes_json(const Topology& topology, const MeshShape& mesh) {
  if (!topology.is_known()) return nullptr;
  return {{"count", topology.num_nodes()},
          {"ranks_each", topology.ranks_each()},
          {"inside", axes_inside(topology, mesh, true)},
          {"across", axes_inside(topology, mesh, false)}};
}

nlohmann::json mesh_info(const MeshShape& mesh) {
  return {{"shape", sizes_of(mesh)},
          {"axis_names", mesh.axis_names()},
          {"num_ranks", mesh.num_ranks()},
          {"spec", mesh.to_string()}};
}

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
