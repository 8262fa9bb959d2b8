// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <tessera/tensor/placement.hpp>

namespace tessera {

/// Returns the sharding of a tensor as text: its shape, its PartitionSpec (its placements if it is
/// Partial), and the global indices of every distinct piece with the ranks that hold it. Lists at
/// most 16 pieces.
std::string inspect_sharding(std::string_view name, const Shape& global_shape,
                             const Placements& placements, const MeshShape& mesh);

/// The same for a sharded tensor. No communication.
template <class Tensor>
std::string inspect_sharding(const Tensor& tensor, std::string_view name = "array") {
  return inspect_sharding(name, tensor.global_shape(), tensor.placements(), tensor.mesh().shape());
}

}  // namespace tessera
