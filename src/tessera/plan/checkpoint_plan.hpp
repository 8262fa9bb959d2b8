// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

/// One tensor of a checkpoint, whole: what lies in the file depends on the model and the optimizer
/// only, never on a mesh.
struct CheckpointTensor {
  std::string name;  ///< "parameters/layer1/kernel", "moment1/layer1/kernel"
  Shape shape;
  std::vector<std::string> logical_axes;  ///< one for each dimension; "" where it has no name
  DType type = DType::float32;
};

/// Parameters, then each of their moments, in the order of the model; the same on every rank.
std::vector<CheckpointTensor> checkpoint_tensors(const Plan& plan);

/// What a rank writes and reads of one of these tensors.
struct CheckpointPart {
  Size tensor = 0;  ///< its number among them
  TensorPart part;
  bool writes = true;  ///< false: another replica of the state does
  /// Elements of the block: each element of the tensor is written by one rank.
  Range written() const { return writes && part.counts ? part.owned : Range{part.owned.begin, 0}; }
};

/// Of a rank, in the order of the tensors; those of other pipeline stages are left out.
std::vector<CheckpointPart> checkpoint_parts(const Plan& plan, Size rank);

/// Bytes of elements that a rank moves between its memory and a checkpoint.
struct CheckpointBytes {
  Size written = 0;  ///< over all ranks, each element once
  Size read = 0;     ///< all that the rank keeps
  friend auto operator<=>(const CheckpointBytes&, const CheckpointBytes&) = default;
  // nvcc declares the one that follows from <=> and does not define it.
  friend bool operator==(const CheckpointBytes&, const CheckpointBytes&) = default;
};
CheckpointBytes checkpoint_bytes(const Plan& plan, Size rank);

}  // namespace tessera
