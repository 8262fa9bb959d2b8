// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// A mesh of the ranks of a communicator; MeshShape gives the coordinates of each rank. A handle,
/// cheap to copy.
class Mesh {
 public:
  /// Collective over `world`. Throws ConfigError for the key "mesh" unless the sizes multiply to
  /// its number of ranks.
  Mesh(const Communicator& world, MeshShape shape);

  const MeshShape& shape() const;
  Size rank() const;
  const std::vector<Size>& coordinates() const;

  const Communicator& world() const;
  /// Returns the communicator of the ranks whose coordinates equal this rank's along all other
  /// axes; its rank is the coordinate along the axis. Returns this rank alone for an axis of size 1
  /// or an unknown one.
  const Communicator& axis(std::string_view name) const;
  const Communicator& axis(std::size_t index) const;
  /// Returns the communicator of the ranks whose coordinates equal this rank's along all axes but
  /// these, row-major in the order of the mesh and named by MeshShape::group_name. The first call
  /// for a set of axes is collective over the mesh; later calls are local.
  Communicator over(AxisSet axes) const;
  /// The same for `shape`, this mesh with_repeats(). Over repeats(), each call is the first one.
  Communicator over(AxisSet axes, const MeshShape& shape) const;
  Communicator over(const std::vector<std::string_view>& names) const {
    return over(shape().axes_named(names));
  }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
