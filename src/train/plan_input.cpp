// SPDX-License-Identifier: Apache-2.0
#include <tessera/train/plan_input.hpp>

namespace tessera {

PlanInput plan_input(const Config& config, const MeshShape& mesh) {
  const TrainingConfig& training = config.training;
  PlanInput input;
  input.model = mlp(config.model.mlp);
  input.mesh = mesh;
  input.dtype = config.model.dtype;
  input.precision = config.model.matmul_precision;
  input.global_batch = training.batch_size;
  input.microbatches = training.microbatches;
  input.samples = config.data.samples;
  input.moments = moments_per_parameter(training.optimizer);
  input.bucket_bytes = training.distributed.bucket_bytes;
  input.overlap = training.distributed.overlap;
  input.clips = training.clip.value || training.clip.global_norm;
  return input;
}

}  // namespace tessera
