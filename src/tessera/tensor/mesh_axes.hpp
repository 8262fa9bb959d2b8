// SPDX-License-Identifier: Apache-2.0
// The mesh axes that trainings know, and what each of them splits. To add an axis, add a row.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// A claim on the columns that each layer names itself, such as mlp.
inline constexpr std::string_view own_columns = "columns";

/// One mesh axis.
struct AxisRow {
  std::string_view name;
  /// The dimensions that the axis splits. It takes the first one that a layer has; "batch" are the
  /// samples.
  std::array<std::string_view, 5> claims{};
  /// Ranks along the axis use the same parameters, apart from those of experts, for different rows.
  /// So gradients are summed over these ranks.
  bool repeats_parameters = false;

  constexpr bool splits(std::string_view dimension) const {
    return std::find(claims.begin(), claims.end(), dimension) != claims.end();
  }
};

/// Slowest first. A mesh made from sizes arranges its axes in this order.
inline constexpr std::array<AxisRow, 6> mesh_axes{{
    {"pipeline"},
    {"data", {"batch"}, true},
    {"fsdp", {"batch"}, true},
    {"expert", {"batch", "experts"}, true},
    {"context", {"positions", "modes", "slots"}, true},
    {"model", {"heads", "vocab", "modes", "experts", own_columns}},
}};

/// The names of all axes.
inline constexpr auto known_axes = [] {
  std::array<std::string_view, mesh_axes.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = mesh_axes[i].name;
  return names;
}();

/// Returns the position of an axis in mesh_axes. `name` must be one of known_axes.
constexpr std::size_t axis_number(std::string_view name) {
  std::size_t number = 0;
  while (mesh_axes[number].name != name) ++number;
  return number;
}
/// Returns the row of such an axis.
constexpr const AxisRow& axis_row(std::string_view name) { return mesh_axes[axis_number(name)]; }

/// Returns the axes of a mesh whose rows satisfy a predicate.
template <class Predicate>
AxisSet axes_where(const MeshShape& mesh, const Predicate& predicate) {
  AxisSet found;
  for (const AxisRow& row : mesh_axes)
    if (const auto axis = mesh.find(row.name); axis && predicate(row))
      found = found | AxisSet{*axis};
  return found;
}

}  // namespace tessera
