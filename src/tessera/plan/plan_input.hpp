// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include <tessera/base/pair_tree.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/device_traits.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/step_config.hpp>
#include <tessera/plan/strategy_options.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/tensor/partition_spec.hpp>
#include <tessera/tensor/rules.hpp>

namespace tessera {

/// The complete input of a plan. No field needs MPI or a device, so a login node can plan for 8
/// ranks or for 100,000.
struct PlanInput : StrategyOptions, StepConfig {
  ModelSpec model;
  MeshShape mesh{{{"data", 1}}};
  std::shared_ptr<const PassTable> pass_table{};  ///< of schedule_file; null: none
  Size threads = 0;  ///< threads of a rank, for printing; 0: the launch decides
  /// Placement of parameters along `model`: rules by logical name, and specs by parameter path. A
  /// spec overrides the rules.
  MeshRules rules = default_rules();
  std::map<std::string, PartitionSpec> parameter_specs;
  DeviceTraits traits{};                ///< of the device that executes the plan
  DType state_type = DType::float32;    ///< parameters, gradients, moments, sums over ranks
  DType compute_type = DType::float32;  ///< activations and operands of products
  MatmulPrecision precision = MatmulPrecision::strict;
  Size samples = 32;              ///< samples of the data set; an epoch visits each once
  Size validation_samples = 0;    ///< samples of a validation, numbered after those of the data set
  Size data_scratch_bytes = 0;    ///< device memory that making samples needs
  bool shuffles = false;          ///< every rank holds the whole data set and copies its batches
  Size moments = 2;               ///< moments of the optimizer per parameter
  bool orthogonalizes = false;    ///< OptimizerKind::muon
  bool has_bf16_moments = false;  ///< OptimizerConfig::moments_type
  bool clips_by_value = false;
  bool clips_by_norm = false;
  bool writes_checkpoints = false;
  bool hashes_steps = false;

  /// Returns true if products round their operands to `precision` themselves.
  bool rounds_natively() const { return traits.tf32 && !numerics.reproducible; }
  /// Returns true if operands of products are converted to the state type first. In a fixed order
  /// of sums products widen them.
  bool emulates_products() const {
    return is_half(compute_type) && !numerics.reproducible && !traits.multiplies(compute_type);
  }
  /// Returns true if gradients are reduced after each microbatch and accumulated in shares. If
  /// false, they are accumulated first and reduced once per step. In a fixed order of sums, a
  /// rank's microbatches come before the other ranks.
  bool reduces_every_microbatch() const {
    return sharding_on(strategy, mesh).gradients && !has_stages() && !sums_microbatches_in_tree();
  }
  bool sums_microbatches_in_tree() const { return numerics.reproducible && microbatches > 1; }
  /// Returns true if the loss reads all positions of a sample at once.
  bool needs_whole_samples() const { return loss == LossKind::bce || loss == LossKind::poisson; }
  /// Returns the blocks of the positions of a sample in which sums have a fixed order, a power of
  /// two; 0: in no fixed order.
  Size position_blocks(Size positions) const {
    const bool in_blocks = numerics.reproducible && !needs_whole_samples();
    return in_blocks ? nested_blocks(positions, numerics.model_grains) : 0;
  }
  /// Returns the part of `positions` positions that a rank of `context` has.
  SplitPart context_share(Size positions, Size rank) const {
    return {{positions, mesh.size_of("context"), 1, zigzag, position_blocks(positions)},
            mesh.coordinate(rank, "context")};
  }
  /// Returns true if ranks of `context` sum the gradients of each microbatch. In no fixed order,
  /// they are summed with those of the batch.
  bool sums_positions_first() const { return numerics.reproducible && mesh.size_of("context") > 1; }
  /// Returns the number of ranks that have different samples of a batch.
  Size batch_ranks() const { return mesh.group_size(batch_axes(mesh)); }
  /// Returns the number of a batch's loss sums, for each term of the loss: one for each microbatch
  /// of the rank or, in a fixed order, one for each block of positions of all ranks.
  Size loss_sums() const {
    return numerics.reproducible ? numerics.grains * loss_blocks() : microbatches;
  }
  /// Returns the blocks of positions that have a loss sum each.
  Size loss_blocks() const {
    const bool by_row = loss != LossKind::relative_l2;
    return std::max<Size>(1, by_row ? position_blocks(model.output_positions()) : 1);
  }
  /// Returns true if layers compute with copies of the parameters in a shorter type.
  bool has_copies() const { return state_type != compute_type; }
  DType moments_type() const { return has_bf16_moments ? DType::bfloat16 : state_type; }
  /// Returns true if the loss is scaled, because small gradients would vanish in float16. A step
  /// whose gradients overflow is then skipped.
  bool scales_loss() const { return compute_type == DType::float16; }
  /// Returns the number of loss sums of a microbatch: that of the loss, and one for each layer that
  /// adds to the loss.
  Size loss_terms() const { return 1 + sums_of(model).losses; }
  /// Returns the number of batches of `n` samples.
  Size batches_of(Size n) const { return (n + batch_size - 1) / batch_size; }
  Size steps_per_epoch() const { return batches_of(samples); }
  Size validation_batches() const { return batches_of(validation_samples); }
  /// Returns true if a validation also compares predictions with an exact solution.
  bool compares_solutions() const { return validation_samples > 0 && loss == LossKind::poisson; }
  /// Returns the divisor that turns the sum of the losses of `samples` samples into their mean.
  Size loss_count(Size samples) const {
    const LossShape shape =
        loss_shape(loss, samples, model.output_positions(), model.output_width());
    return tessera::loss_count(loss, shape.rows, shape.cols);
  }
  /// Returns true if every step reduces a flag that tells whether all gradients are finite.
  bool looks_for_infinities() const { return check_finite || scales_loss(); }
  /// Returns true if products and moves along `model` overlap.
  bool streams_model() const { return model_overlap && mesh.size_of("model") > 1; }
  bool has_stages() const { return mesh.size_of("pipeline") > 1; }
  /// Returns the layer to which the last one is tied (LayerSpec::tied_to); -1: none.
  Size tied_layer() const { return model.layers.back().tied_to; }
  /// Returns true if the first and the last chunk are on two stages and share a tied unit.
  bool ties_stages() const {
    const PipelineShape shape = pipeline();
    return tied_layer() >= 0 && stage_of(shape.stages * shape.virtual_stages - 1, shape) != 0;
  }
  /// Returns true if the two layers of a stage that use a tied unit sum its gradients apart.
  bool sums_uses_apart() const { return numerics.reproducible && !ties_stages(); }
  /// Returns the shape of the pipeline. Without an axis `pipeline` it is one stage with schedule
  /// 1f1b: each forward pass is followed by its backward pass.
  PipelineShape pipeline() const {
    if (!has_stages()) return {PipelineSchedule::one_f_one_b, 1, microbatches, 1};
    return {schedule, mesh.size_of("pipeline"), microbatches,
            pass_table ? pass_table->virtual_stages : virtual_stages, pass_table};
  }
  /// Returns true if the schedule separates gradients of inputs from gradients of weights.
  bool splits_backward() const { return kinds_of(pipeline()).back() == PassKind::weight_gradients; }
};

}  // namespace tessera
