// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <tessera/base/types.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/mesh/rules.hpp>
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
  MeshRules rules = default_rules();  ///< mesh axes of the parameters' logical dimensions
  std::map<std::string, PartitionSpec> parameter_specs{};  ///< by path, instead of the rules
  bool prefetch = true;               ///< gather a unit while the one before it is used
  bool reshard_after_forward = true;  ///< false: gathered units stay until their backward pass
  bool keep_last_unit = true;  ///< the last unit stays gathered between its forward and backward
  bool sequence_parallel = false;  ///< reduce-scatter and all-gather in place of an all-reduce
  bool check_finite = false;       ///< a step whose gradients are not finite stops the run
  bool clips_by_value = false;
  bool clips_by_norm = false;     ///< by the global norm
  Size check_replicas_every = 0;  ///< steps between checks that replicas are equal; 0: never
};

}  // namespace tessera
