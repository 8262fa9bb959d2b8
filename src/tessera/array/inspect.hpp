// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <tessera/mesh/placement.hpp>

namespace tessera {

/// "[0:2, 4:7]": the global indices of a block.
std::string to_string(const Block& block);

/// Where a tensor lives: its shape, its PartitionSpec (its placements where it is Partial), and the
/// global indices of every distinct block with the ranks that hold it. Long lists are cut.
std::string inspect_sharding(std::string_view name, const Shape& global_shape,
                             const Placements& placements, const MeshShape& mesh);

/// The same for a sharded tensor; needs no communication.
template <class Tensor>
std::string inspect_sharding(const Tensor& tensor, std::string_view name = "array") {
  return inspect_sharding(name, tensor.global_shape(), tensor.placements(), tensor.mesh().shape());
}

}  // namespace tessera
