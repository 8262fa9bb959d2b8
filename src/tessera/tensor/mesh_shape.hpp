// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/tensor/axis_set.hpp>
#include <tessera/tensor/topology.hpp>

namespace tessera {

/// Sizes that the launch determines: the remaining ranks, the number of nodes, the ranks of a node.
inline constexpr Size size_rest = -1;
inline constexpr Size size_nodes = std::numeric_limits<Size>::min();
inline constexpr Size size_per_node = size_nodes + 1;

/// The spelling of sizes that are words.
struct SizeWord {
  std::string_view name;
  Size size;
};
inline constexpr std::array<SizeWord, 2> size_words{
    {{"nodes", size_nodes}, {"per_node", size_per_node}}};

/// The limit of ranks: MPI numbers them by int.
inline constexpr Size most_ranks = std::numeric_limits<int>::max();

/// One named direction of a mesh.
struct Axis {
  std::string name;
  Size size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Reads axes, as "data=nodes,model=4", and does not check their sizes. Throws ConfigError for the
/// key "mesh" unless the text is a list of name=size, each size a whole number or one of
/// size_words.
std::vector<Axis> parse_axes(std::string_view text);

/// A named N-D arrangement of ranks, row-major in the order of the axes: the last axis varies
/// fastest. Plain data without MPI.
class MeshShape {
 public:
  /// Throws ConfigError for the key "mesh" unless there is at least one axis, names are unique and
  /// match [A-Za-z_][A-Za-z0-9_]*, and sizes are positive with a product of at most most_ranks.
  explicit MeshShape(std::vector<Axis> axes);

  /// Reads "data=2,model=4". A size may be "nodes" or "per_node". One size may be -1: the number of
  /// ranks divided by the product of the other sizes. Throws ConfigError for the key "mesh" if the
  /// product is not the number of ranks, or if a size needs nodes that are unknown or unequal.
  static MeshShape parse(std::string_view text, const Topology& topology);

  /// The same for a list of axes.
  static MeshShape fit(std::vector<Axis> axes, const Topology& topology);

  /// Returns this mesh with one more axis, "repeats", for sets of axes: it divides the ranks along
  /// `axis` into runs of `size` neighbours, and numbers those of a run. It is none of axes().
  MeshShape with_repeats(std::string_view axis, Size size) const;
  /// Returns that axis; without it, one of size 1.
  AxisSet repeats() const { return {axes_.size()}; }

  Size num_ranks() const { return num_ranks_; }
  std::size_t num_axes() const { return axes_.size(); }
  const std::vector<Axis>& axes() const { return axes_; }
  const Axis& axis(std::size_t number) const {
    return number < axes_.size() ? axes_[number] : repeats_;
  }
  std::vector<std::string> axis_names() const;

  std::optional<std::size_t> find(std::string_view name) const;
  /// Returns the position of an axis. Throws ConfigError for `key` with the nearest name if there
  /// is none.
  std::size_t require(std::string_view name, std::string_view key = "axis") const;
  /// Returns 1 for an axis that the mesh does not have.
  Size size_of(std::string_view name) const;

  AxisSet all_axes() const;
  /// Returns the axes with these names. The mesh need not have all of them.
  AxisSet axes_named(const std::vector<std::string_view>& names) const;
  /// Returns the name of the group over several axes in the ledger and in plans: "data+fsdp", of
  /// the axes larger than 1. Returns "" if there are none; such a group communicates nothing.
  std::string group_name(AxisSet axes) const;
  /// Returns the number of ranks in that group.
  Size group_size(AxisSet axes) const;

  /// Returns the coordinates of a rank, one per axis.
  std::vector<Size> coordinates(Size rank) const;
  Size coordinate(Size rank, std::size_t axis) const;
  /// The same; 0 for an axis that the mesh does not have.
  Size coordinate(Size rank, std::string_view axis) const;
  /// Returns the ranks between neighbours along an axis.
  Size stride(std::size_t axis) const { return strides_[axis]; }
  /// Returns the number of a rank in its group over several axes, row-major in their order.
  Size coordinate(Size rank, AxisSet axes) const;
  Size rank_at(const std::vector<Size>& coordinates) const;
  /// Returns the rank with this coordinate along an axis and 0 along the others; 0 for an axis that
  /// the mesh does not have.
  Size rank_at(std::string_view axis, Size coordinate) const;
  /// Returns the lowest rank of a rank's group over several axes.
  Size first_of_group(AxisSet axes, Size rank) const;
  /// Returns the ranks of that group, ascending.
  std::vector<Size> group(AxisSet axes, Size rank) const;
  /// Returns how many ranks in the group of rank 0 are less than `rank`.
  Size group_below(AxisSet axes, Size rank) const;

  /// "data=2,model=4"
  std::string to_string() const;

  friend bool operator==(const MeshShape&, const MeshShape&) = default;

 private:
  std::vector<Axis> axes_;
  Axis repeats_{"repeats", 1};
  std::vector<Size> strides_;  ///< of the axes and of repeats_
  Size num_ranks_ = 1;
};

}  // namespace tessera
