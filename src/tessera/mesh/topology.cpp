// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/mesh/topology.hpp>

namespace tessera {
Topology::Topology(const std::vector<Size>& node_of_rank)
    : ranks_(static_cast<Size>(node_of_rank.size())) {
  std::map<Size, Size> numbers;
  for (const Size node : node_of_rank) {
    const auto [known, is_new] = numbers.try_emplace(node, num_nodes());
    if (is_new) ranks_by_node_.push_back(0);
    ++ranks_by_node_[known->second];
    node_of_rank_.push_back(known->second);
  }
}

Topology Topology::blocks(Size ranks, Size per_node) {
  std::vector<Size> node_of_rank(ranks);
  for (Size rank = 0; rank < ranks; ++rank) node_of_rank[rank] = rank / per_node;
  return Topology(node_of_rank);
}

std::optional<Size> Topology::per_node() const {
  if (!is_known()) return std::nullopt;
  const Size ranks = ranks_by_node_.front();
  const bool are_equal =
      std::count(ranks_by_node_.begin(), ranks_by_node_.end(), ranks) == num_nodes();
  return are_equal ? std::optional(ranks) : std::nullopt;
}

Topology Topology::of(Size ranks) const {
  if (!is_known()) return Topology(ranks);
  if (ranks > ranks_) return per_node() ? blocks(ranks, *per_node()) : Topology(ranks);
  return Topology(std::vector<Size>(node_of_rank_.begin(), node_of_rank_.begin() + ranks));
}

bool Topology::stays_inside(const MeshShape& mesh, std::size_t axis) const {
  Size stride = 1;
  for (std::size_t a = axis + 1; a < mesh.num_axes(); ++a) stride *= mesh.axes()[a].size;
  for (Size rank = stride; rank < ranks_; ++rank)
    if (mesh.coordinate(rank, axis) > 0 &&
        node_of_rank_[rank] != node_of_rank_[static_cast<std::size_t>(rank - stride)])
      return false;
  return true;
}

bool Topology::stays_inside(const MeshShape& mesh, std::string_view axes) const {
  const std::vector<std::string> names = split_text(axes, '+');
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return stays_inside(mesh, mesh.require(name));
  });
}

std::string Topology::ranks_each() const {
  const auto [least, most] = std::minmax_element(ranks_by_node_.begin(), ranks_by_node_.end());
  return *least == *most ? fmt::format("{}", *most) : fmt::format("{}-{}", *least, *most);
}

std::string nodes_text(const Topology& topology) {
  if (!topology.is_known()) return "not known";
  const std::string each = topology.ranks_each();
  return fmt::format("{} with {} rank{}{}", topology.num_nodes(), each, each == "1" ? "" : "s",
                     topology.num_nodes() == 1 ? "" : " each");
}

}  // namespace tessera
