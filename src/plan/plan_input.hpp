// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/nn/matmul_precision.hpp>
#include <tessera/nn/model_spec.hpp>
#include <tessera/plan/strategy.hpp>

namespace tessera {

/// Everything that a plan depends on. No field needs MPI or a device, so plans are made on login
/// nodes, for 8 ranks or for 100,000.
struct PlanInput {
  ModelSpec model;
  MeshShape mesh{{{"data", 1}}};
  Strategy strategy = Strategy::data;
  DType dtype = DType::float32;
  MatmulPrecision precision = MatmulPrecision::strict;
  Size global_batch = 32;        ///< rows of one optimizer step, over all ranks
  Size microbatches = 1;         ///< forward-backward passes per step on each rank
  Size samples = 32;             ///< rows of the data set; an epoch visits each once
  Size moments = 2;              ///< optimizer moments per parameter
  Size bucket_bytes = 25 << 20;  ///< most bytes that one reduction carries, unless a unit is larger
  bool overlap = false;          ///< a bucket's reduction starts while the backward pass goes on
  bool clips = false;            ///< gradients are clipped, by value or by global norm
};

}  // namespace tessera
