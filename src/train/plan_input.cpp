// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <tessera/train/plan_input.hpp>

namespace tessera {
namespace {

/// `name` is that of an available strategy, which validate() sees to.
Strategy strategy_of(const std::string& name) {
  const auto found = std::find(strategy_names.begin(), strategy_names.end(), name);
  return static_cast<Strategy>(found - strategy_names.begin());
}

}  // namespace

PlanInput plan_input(const Config& config, const MeshShape& mesh) {
  const TrainingConfig& training = config.training;
  PlanInput input;
  input.model = mlp(config.model.mlp);
  input.mesh = mesh;
  input.strategy = strategy_of(training.distributed.strategy);
  input.dtype = config.model.dtype;
  input.precision = config.model.matmul_precision;
  input.global_batch = training.batch_size;
  input.microbatches = training.microbatches;
  input.samples = config.data.samples;
  input.moments = moments_per_parameter(training.optimizer);
  input.bucket_bytes = training.distributed.bucket_bytes;
  input.overlap = training.distributed.overlap;
  input.clips_by_value = training.clip.value.has_value();
  input.clips_by_norm = training.clip.global_norm.has_value();
  return input;
}

}  // namespace tessera
