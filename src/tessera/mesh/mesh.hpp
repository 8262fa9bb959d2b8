// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// A mesh shape filled with the ranks of a communicator: rank r has the coordinates of r. A handle,
/// cheap to copy.
class Mesh {
 public:
  /// Collective over `world`. ConfigError for the key "mesh" unless the sizes multiply to its
  /// ranks.
  Mesh(const Communicator& world, MeshShape shape);

  const MeshShape& shape() const;
  Size rank() const;
  const std::vector<Size>& coordinates() const;

  const Communicator& world() const;
  /// The ranks that differ from this one in the coordinate along the axis only; its rank is that
  /// coordinate. For an axis of size 1, or one that the mesh does not have, this rank alone.
  const Communicator& axis(std::string_view name) const;
  const Communicator& axis(std::size_t index) const;
  /// The ranks that differ in the coordinates along these axes only, row-major in the order of the
  /// mesh; named by MeshShape::group_name. Collective over the mesh when a set of axes is asked for
  /// the first time, local later.
  Communicator over(const std::vector<std::string>& axes) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
