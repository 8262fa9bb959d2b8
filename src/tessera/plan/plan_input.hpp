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

/// Activations that a backward pass recomputes in place of keeping them (Chen et al. 2016).
struct Recomputation {
  /// Number of units in a segment. Each segment but the model's last one keeps only its inputs. 0:
  /// all activations are kept.
  Size units = 0;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// The complete input of a plan. No field needs MPI or a device, so a login node can plan for 8
/// ranks or for 100,000.
struct PlanInput : StrategyOptions {
  ModelSpec model;
  MeshShape mesh{{{"data", 1}}};
  Size threads = 0;  ///< threads of a rank; 0: the launch decides
  /// Placement of parameters along `model`: rules by logical name, and specs by parameter path. A
  /// spec overrides the rules.
  MeshRules rules = default_rules();
  std::map<std::string, PartitionSpec> parameter_specs;
  LossKind loss = LossKind::mse;
  DType state_type = DType::float32;    ///< parameters, gradients, moments and all sums
  DType compute_type = DType::float32;  ///< activations and operands of products
  MatmulPrecision precision = MatmulPrecision::strict;
  bool rounds_natively = false;    ///< products round their operands to `precision` themselves
  bool emulates_products = false;  ///< operands of products are converted to the state type first
  Size global_batch = 32;          ///< samples of one optimizer step, over all ranks
  Size microbatches = 1;           ///< forward-backward passes per step on each rank
  Size samples = 32;               ///< samples of the data set; an epoch visits each once
  Size validation_samples = 0;     ///< numbered after those of the data set
  Size data_scratch_bytes = 0;     ///< device memory that making samples needs
  bool shuffles = false;           ///< every rank has the whole data set, and batches are copies
  Size moments = 2;                ///< moments of the optimizer per parameter
  bool check_finite = false;       ///< all ranks agree that the gradient is finite, every step
  bool clips_by_value = false;
  bool clips_by_norm = false;
  Size check_replicas_every = 0;  ///< steps; 0: never
  bool writes_checkpoints = false;
  Recomputation recomputation;

  /// Returns true if gradients are reduced after each microbatch and accumulated in shares. If
  /// false, they are accumulated first and reduced once per step.
  bool reduces_every_microbatch() const {
    return sharding_on(strategy, mesh).gradients && !has_stages();
  }
  /// Layers compute with copies of the parameters in a shorter type.
  bool has_copies() const { return state_type != compute_type; }
  /// Returns true if the loss is scaled: small gradients would vanish in float16. A step whose
  /// gradients overflow is skipped.
  bool scales_loss() const { return compute_type == DType::float16; }
  /// Returns the number of sums in the loss: its own, and one for layers that add to the loss.
  Size loss_terms() const { return adds_loss(model) ? 2 : 1; }
  Size batches_of(Size n) const { return (n + global_batch - 1) / global_batch; }
  Size steps_per_epoch() const { return batches_of(samples); }
  Size validation_batches() const { return batches_of(validation_samples); }
  /// Returns true if a validation also compares predictions with the exact solution.
  bool compares_solutions() const { return validation_samples > 0 && loss == LossKind::poisson; }
  /// Returns the divisor that makes a mean of the sum of the losses of `samples` samples.
  Size loss_count(Size samples) const {
    const LossShape shape =
        loss_shape(loss, samples, model.output_positions(), model.output_width());
    return tessera::loss_count(loss, shape.rows, shape.cols);
  }
  bool looks_for_infinities() const { return check_finite || scales_loss(); }
  bool has_stages() const { return mesh.size_of("pipeline") > 1; }
  /// Returns the shape of the pipeline. With one stage, each backward pass follows its forward
  /// pass.
  PipelineShape pipeline() const {
    if (!has_stages()) return {PipelineSchedule::one_f_one_b, 1, microbatches, 1};
    return {schedule, mesh.size_of("pipeline"), microbatches, virtual_stages};
  }
  bool splits_backward() const {
    return tessera::kinds_of(pipeline().schedule).back() == PassKind::weight_gradients;
  }
};

}  // namespace tessera
