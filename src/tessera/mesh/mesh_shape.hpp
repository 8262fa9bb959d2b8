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
#include <tessera/mesh/topology.hpp>

namespace tessera {

/// Sizes of an axis that the launch decides: the remaining ranks, its nodes, the ranks of each
/// node.
inline constexpr Size size_rest = -1;
inline constexpr Size size_nodes = std::numeric_limits<Size>::min();
inline constexpr Size size_per_node = size_nodes + 1;

/// How users write those that are no number.
struct SizeWord {
  std::string_view name;
  Size size;
};
inline constexpr std::array<SizeWord, 2> size_words{
    {{"nodes", size_nodes}, {"per_node", size_per_node}}};

/// MPI numbers ranks by int.
inline constexpr Size most_ranks = std::numeric_limits<int>::max();

/// One named direction of a mesh.
struct Axis {
  std::string name;
  Size size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// "data=nodes,model=4" as it stands, sizes unchecked. ConfigError for the key "mesh" if it is no
/// list of names and of whole numbers or size_words.
std::vector<Axis> parse_axes(std::string_view text);

/// The named N-D arrangement of ranks, row-major in the order of the axes: the last axis varies
/// fastest. Plain data, so it describes meshes of any size without MPI.
class MeshShape {
 public:
  /// At least one axis, unique names ([A-Za-z_][A-Za-z0-9_]*), positive sizes of at most
  /// `most_ranks` in all; otherwise ConfigError for the key "mesh".
  explicit MeshShape(std::vector<Axis> axes);

  /// "data=2,model=4". A size may be "nodes" or "per_node", and one may be -1, the rest of the
  /// ranks: all of them over the product of the other sizes. ConfigError for the key "mesh" if the
  /// product is not the number of ranks, or if a size needs nodes that are not known or not alike.
  static MeshShape parse(std::string_view text, const Topology& topology);

  /// The same for a list of axes.
  static MeshShape fit(std::vector<Axis> axes, const Topology& topology);

  Size num_ranks() const { return num_ranks_; }
  std::size_t num_axes() const { return axes_.size(); }
  const std::vector<Axis>& axes() const { return axes_; }
  std::vector<std::string> axis_names() const;

  std::optional<std::size_t> find(std::string_view name) const;
  /// Position of an axis; ConfigError for `key` with the nearest name if there is none.
  std::size_t require(std::string_view name, std::string_view key = "axis") const;
  /// 1 for an axis that the mesh does not have.
  Size size_of(std::string_view name) const;

  /// The axes among `names` that are larger than 1, in the order of the mesh.
  std::vector<std::size_t> effective(const std::vector<std::string>& names) const;
  /// Name, in the ledger and in plans, of the group over several axes: "data+fsdp"; only axes
  /// larger than 1 count. "" if there are none: a group of one rank communicates nothing.
  std::string group_name(const std::vector<std::string>& names) const;
  /// Ranks in that group.
  Size group_size(const std::vector<std::string>& names) const;
  Size group_size(const std::vector<std::size_t>& axes) const;

  /// Coordinate of a rank along each axis.
  std::vector<Size> coordinates(Size rank) const;
  Size coordinate(Size rank, std::size_t axis) const;
  /// Its place among the ranks of a group over several axes: row-major in their order.
  Size coordinate(Size rank, const std::vector<std::size_t>& axes) const;
  Size rank_at(const std::vector<Size>& coordinates) const;
  /// The lowest rank of a rank's group over several axes, and all of them, ascending.
  Size first_of_group(const std::vector<std::size_t>& axes, Size rank) const;
  std::vector<Size> group(const std::vector<std::size_t>& axes, Size rank) const;
  /// How many ranks of the group of rank 0 are below `rank`.
  Size group_below(const std::vector<std::size_t>& axes, Size rank) const;

  /// "data=2,model=4"
  std::string to_string() const;

  friend bool operator==(const MeshShape&, const MeshShape&) = default;

 private:
  std::vector<Axis> axes_;
  std::vector<Size> strides_;  // ranks between neighbours along an axis
  Size num_ranks_ = 1;
};

/// Sizes of the axes that strategies know; one of them may be size_rest.
struct AxisSizes {
  Size pipeline = 1;
  Size data = size_rest;
  Size fsdp = 1;
  Size model = 1;
};

/// The mesh made when the user names none: the axes larger than 1 in the order pipeline, data,
/// fsdp, model, so that `model`, then `fsdp`, vary fastest and stay inside a node; `data` alone if
/// there is none.
MeshShape auto_mesh(AxisSizes sizes, Size ranks);

}  // namespace tessera
