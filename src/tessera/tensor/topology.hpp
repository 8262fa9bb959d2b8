// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

class MeshShape;

/// The ranks of a run and, if known, their nodes. Ranks of one node share memory. Plain data.
class Topology {
 public:
  /// Ranks on unknown nodes.
  Topology(Size ranks) : ranks_(ranks) {}
  /// Ranks with equal entries are on one node.
  explicit Topology(const std::vector<Size>& node_of_rank);
  /// Nodes of `per_node` consecutive ranks; the last one may have fewer.
  static Topology blocks(Size ranks, Size per_node);

  Size ranks() const { return ranks_; }
  bool is_known() const { return block_ > 0 || !node_of_rank_.empty(); }
  /// Returns the number of ranks of each node, sorted by each node's lowest rank; empty if unknown.
  std::vector<Size> ranks_by_node() const;
  Size num_nodes() const;  ///< 0 if unknown
  /// Returns the ranks of a node if all nodes have equally many.
  std::optional<Size> per_node() const;
  /// Returns "4", or "2-4" if nodes differ. The nodes must be known.
  std::string ranks_each() const;

  /// Returns the topology of another number of ranks: the first ones of this, or more nodes of the
  /// same size. The nodes of more ranks are unknown if nodes differ.
  Topology of(Size ranks) const;

  /// Returns true if every group over these axes, "data" or "data+fsdp", is on one node. The nodes
  /// must be known.
  bool stays_inside(const MeshShape& mesh, std::string_view axes) const;

 private:
  bool stays_inside(const MeshShape& mesh, std::size_t axis) const;

  Size ranks_ = 1;
  Size block_ = 0;  ///< ranks of a node of blocks(); 0: see the lists
  std::vector<Size> node_of_rank_;
  std::vector<Size> ranks_by_node_;
};

/// "2 with 4 ranks each", "3 with 2-4 ranks each", "not known"
std::string nodes_text(const Topology& topology);

}  // namespace tessera
