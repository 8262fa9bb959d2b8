// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/tensor/topology.hpp>

namespace tessera {

Topology::Topology(const std::vector<Size>& node_of_rank)
    : ranks_(static_cast<Size>(node_of_rank.size())) {
  std::map<Size, Size> numbers;
  for (const Size node : node_of_rank) {
    const auto [known, is_new] =
        numbers.try_emplace(node, static_cast<Size>(ranks_by_node_.size()));
    if (is_new) ranks_by_node_.push_back(0);
    ++ranks_by_node_[known->second];
    node_of_rank_.push_back(known->second);
  }
}

Topology Topology::blocks(Size ranks, Size per_node) {
  Topology topology(ranks);
  topology.block_ = std::min(ranks, per_node);
  return topology;
}

std::vector<Size> Topology::ranks_by_node() const {
  if (block_ == 0) return ranks_by_node_;
  std::vector<Size> ranks(num_nodes(), block_);
  if (const Size rest = ranks_ % block_; rest > 0) ranks.back() = rest;
  return ranks;
}

Size Topology::num_nodes() const {
  if (block_ == 0) return static_cast<Size>(ranks_by_node_.size());
  return (ranks_ - 1) / block_ + 1;
}

std::optional<Size> Topology::per_node() const {
  if (!is_known()) return std::nullopt;
  if (block_ > 0) return ranks_ % block_ == 0 ? std::optional(block_) : std::nullopt;
  const Size ranks = ranks_by_node_.front();
  const bool are_equal =
      std::count(ranks_by_node_.begin(), ranks_by_node_.end(), ranks) == num_nodes();
  return are_equal ? std::optional(ranks) : std::nullopt;
}

Topology Topology::of(Size ranks) const {
  if (!is_known()) return Topology(ranks);
  if (ranks > ranks_) return per_node() ? blocks(ranks, *per_node()) : Topology(ranks);
  if (block_ > 0) return blocks(ranks, block_);
  return Topology(std::vector<Size>(node_of_rank_.begin(), node_of_rank_.begin() + ranks));
}

bool Topology::stays_inside(const MeshShape& mesh, std::size_t axis) const {
  // Groups along the axis together fill runs of `run` neighbouring ranks.
  const Size stride = mesh.stride(axis), run = stride * mesh.axis(axis).size;
  if (block_ > 0) return block_ == ranks_ || block_ % run == 0 || run == stride;
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
  Size least = block_, most = block_;
  if (block_ > 0 && ranks_ % block_ > 0) least = ranks_ % block_;
  if (block_ == 0) {
    const auto ends = std::minmax_element(ranks_by_node_.begin(), ranks_by_node_.end());
    least = *ends.first, most = *ends.second;
  }
  return least == most ? fmt::format("{}", most) : fmt::format("{}-{}", least, most);
}

std::string nodes_text(const Topology& topology) {
  if (!topology.is_known()) return "not known";
  const std::string each = topology.ranks_each();
  return fmt::format("{} with {} rank{}{}", topology.num_nodes(), each, each == "1" ? "" : "s",
                     topology.num_nodes() == 1 ? "" : " each");
}

}  // namespace tessera
