// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

class MeshShape;

/// The ranks of a run and, where that is known, their nodes: the ranks of a node share memory.
/// Plain data.
class Topology {
 public:
  /// Ranks of whose nodes nothing is known.
  Topology(Size ranks) : ranks_(ranks) {}
  /// Equal entries are one node.
  explicit Topology(const std::vector<Size>& node_of_rank);
  /// Each node has so many ranks in a row; the last one may have fewer.
  static Topology blocks(Size ranks, Size per_node);

  Size ranks() const { return ranks_; }
  bool is_known() const { return block_ > 0 || !node_of_rank_.empty(); }
  /// How many ranks each node has, in the order of each node's lowest rank; none if not known.
  std::vector<Size> ranks_by_node() const;
  Size num_nodes() const;  ///< 0: not known
  /// Ranks of every node, if all have as many.
  std::optional<Size> per_node() const;
  /// "4", or "2-4" where nodes differ. They must be known.
  std::string ranks_each() const;

  /// The first so many ranks. More than there are go on with nodes like the others, if these have
  /// equally many ranks.
  Topology of(Size ranks) const;

  /// Whether any two ranks that differ only in their coordinates along these axes, "data" or
  /// "data+fsdp", are on one node. The nodes must be known.
  bool stays_inside(const MeshShape& mesh, std::string_view axes) const;

 private:
  bool stays_inside(const MeshShape& mesh, std::size_t axis) const;

  Size ranks_ = 1;
  Size block_ = 0;  ///< ranks of a node, the last one perhaps excepted; 0: the lists tell
  std::vector<Size> node_of_rank_;
  std::vector<Size> ranks_by_node_;
};

/// "2 with 4 ranks each", "3 with 2-4 ranks each", "not known"
std::string nodes_text(const Topology& topology);

}  // namespace tessera
