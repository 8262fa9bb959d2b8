// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <tessera/base/types.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/mesh/partition_spec.hpp>
#include <tessera/mesh/rules.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/nn/loss_kind.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/nn/products/matmul_precision.hpp>
#include <tessera/plan/strategy_options.hpp>

namespace tessera {

/// What a backward pass computes again in place of keeping it (Chen et al. 2016).
struct Recomputation {
  /// Units of a segment, of which only the inputs are kept, in all segments but the last of the
  /// model; 0: everything is kept.
  Size units = 0;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// Everything that a plan depends on. No field needs MPI or a device, so plans are made on login
/// nodes, for 8 ranks or for 100,000.
struct PlanInput : StrategyOptions {
  ModelSpec model;
  MeshShape mesh{{{"data", 1}}};
  Size threads = 0;  ///< of a rank; 0: as many as the launch gives it
  /// What shards parameters along `model`: rules by logical name, and specs by parameter path,
  /// which win.
  MeshRules rules = default_rules();
  std::map<std::string, PartitionSpec> parameter_specs;
  LossKind loss = LossKind::mse;
  DType state_type = DType::float32;    ///< of parameters, gradients and moments, and of all sums
  DType compute_type = DType::float32;  ///< of activations, and of the operands of products
  MatmulPrecision precision = MatmulPrecision::strict;
  bool rounds_natively = false;    ///< products round to that precision by themselves
  bool emulates_products = false;  ///< their operands are widened to the state type first
  Size global_batch = 32;          ///< samples of one optimizer step, over all ranks
  Size microbatches = 1;           ///< forward-backward passes per step on each rank
  Size samples = 32;               ///< of the data set; an epoch visits each once
  Size validation_samples = 0;     ///< behind those of the data set
  Size data_scratch_bytes = 0;     ///< of device memory, while samples are made
  bool shuffles = false;           ///< every rank has the whole data set, and batches are copies
  Size moments = 2;                ///< optimizer moments per parameter
  bool check_finite = false;       ///< all ranks agree that the gradient is finite, every step
  bool clips_by_value = false;
  bool clips_by_norm = false;
  Size check_replicas_every = 0;  ///< steps; 0: never
  bool writes_checkpoints = false;
  Recomputation recomputation;

  /// Gradients are reduced behind each microbatch and added up in shares; else they are added up
  /// first, and reduced once per step.
  bool reduces_every_microbatch() const {
    return sharding_on(strategy, mesh).gradients && !has_stages();
  }
  /// Layers compute with copies of the parameters in a shorter type.
  bool has_copies() const { return state_type != compute_type; }
  /// Small gradients would vanish; those that overflow skip the step.
  bool scales_loss() const { return compute_type == DType::float16; }
  /// Sums that the loss is made of: its own, and that of layers which add to it.
  Size loss_terms() const { return adds_loss(model) ? 2 : 1; }
  Size batches_of(Size n) const { return (n + global_batch - 1) / global_batch; }
  Size steps_per_epoch() const { return batches_of(samples); }
  Size validation_batches() const { return batches_of(validation_samples); }
  /// A validation also compares predictions with the exact solution.
  bool compares_solutions() const { return validation_samples > 0 && loss == LossKind::poisson; }
  /// What the sum of the losses of `samples` samples is divided by.
  Size loss_count(Size samples) const {
    const LossShape shape =
        loss_shape(loss, samples, model.output_positions(), model.output_width());
    return tessera::loss_count(loss, shape.rows, shape.cols);
  }
  bool looks_for_infinities() const { return check_finite || scales_loss(); }
  bool has_stages() const { return mesh.size_of("pipeline") > 1; }
  /// One stage has nothing to schedule: each backward pass follows its forward pass.
  PipelineShape pipeline() const {
    if (!has_stages()) return {PipelineSchedule::one_f_one_b, 1, microbatches, 1};
    return {schedule, mesh.size_of("pipeline"), microbatches, virtual_stages};
  }
  bool splits_backward() const {
    return tessera::kinds_of(pipeline().schedule).back() == PassKind::weight_gradients;
  }
};

}  // namespace tessera
