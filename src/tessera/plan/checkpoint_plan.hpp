// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

/// One whole tensor of a checkpoint file. The list of tensors depends only on the model and the
/// optimizer, not on the mesh.
struct CheckpointTensor {
  std::string name;                       ///< "layer1/kernel", "moment1/layer1/kernel"
  Shape shape;                            ///< global shape
  std::vector<std::string> logical_axes;  ///< one per dimension; "" for none
  DType type = DType::float32;
};

/// Returns the parameters, then each of their moments, in the order of the model. All ranks get the
/// same list.
std::vector<CheckpointTensor> checkpoint_tensors(const Plan& plan);

/// The part of a checkpoint tensor that a rank reads, and writes unless another replica does.
struct CheckpointPart {
  Size tensor = 0;  ///< position in checkpoint_tensors()
  TensorPart part;
  /// Returns the elements of the block that this rank writes. Exactly one rank writes each element
  /// of the tensor.
  Range written() const {
    return part.is_first && part.counts ? part.owned : Range{part.owned.begin, 0};
  }
};

/// Returns the parts of a rank's pipeline stage, in the order of the tensors.
std::vector<CheckpointPart> checkpoint_parts(const Plan& plan, Size rank);

/// Bytes that a rank moves between its memory and a checkpoint.
struct CheckpointBytes {
  Size written = 0;  ///< summed over all ranks: the bytes of all tensors of the checkpoint
  Size read = 0;     ///< all elements that the rank keeps
  auto operator<=>(const CheckpointBytes&) const = default;
};
CheckpointBytes checkpoint_bytes(const Plan& plan, Size rank);

}  // namespace tessera
