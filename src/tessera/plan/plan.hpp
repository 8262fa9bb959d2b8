// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/layout/slot.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/memory_placement.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/pass/schedule.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The step of the ranks of one pipeline stage. Without an axis `pipeline` there is one stage with
/// all layers.
struct StagePlan : StageSchedule {
  std::vector<Range> chunks;  ///< the stage's runs of layers; several with virtual stages
  ParameterLayout parameters;
  std::vector<Slot> slots;  ///< every tensor: batch, activations, parameters, gradients, moments
  std::vector<Storage> storages;  ///< memory of the slots in the frame
  Size frame_bytes = 0;           ///< size of the frame: the memory of all storages
};

/// One training step of all ranks, known before anything runs.
struct Plan {
  PlanInput input;
  std::vector<LayerPlacements> placements;  ///< of each layer
  std::vector<StagePlan> stages;
  PassCount flops;               ///< FLOPs of one step, all ranks together; matrix products only
  double orthogonalization = 0;  ///< FLOPs of muon's products, all ranks together
  double recomputed = 0;         ///< FLOPs of recomputed forward passes, not included in `flops`
  /// The number of layers of each kind whose forward pass is recomputed, in every microbatch.
  std::map<std::string_view, Size> recomputed_layers{};

  /// Returns the coordinate of a rank along `pipeline`; 0 without that axis.
  Size stage_number(Size rank) const { return input.mesh.coordinate(rank, "pipeline"); }
  /// Returns the stage to which a rank belongs.
  const StagePlan& stage(Size rank) const;
  /// Returns the lowest rank of stage number `stage`.
  Size first_rank(Size stage) const { return input.mesh.rank_at("pipeline", stage); }

  /// Returns the samples of the global batch that `rank` computes.
  Range batch_samples(Size rank) const;
  /// Returns the number of steps of one epoch. The last batch may be smaller than the others.
  Size steps_per_epoch() const { return input.steps_per_epoch(); }
  /// Returns the number of samples that `rank` computes in one epoch: its share of each batch.
  Size data_samples(Size rank) const { return data_samples(rank, input.samples); }
  /// Returns the same for a data set of `samples` samples.
  Size data_samples(Size rank, Size samples) const;

  /// Returns the FLOPs of one step by coordinate along `context`, all ranks with it together.
  std::vector<PassCount> flops_along_context() const;
  /// Returns true if an earlier rank along state_axes(), or an earlier stage, has the same elements
  /// of a parameter.
  bool is_copy(Size rank, const ParameterPlan& parameter) const;
  /// Returns the layers with the extents that they have on `rank`, or if only `axes` split them.
  std::vector<LayerSpec> local_layers(Size rank) const {
    return local_layers(rank, input.mesh.all_axes());
  }
  std::vector<LayerSpec> local_layers(Size rank, AxisSet axes) const;
  /// Returns the piece of a parameter with which `rank` computes. Of a sharded parameter it holds a
  /// part between steps: see StatePlan.
  Piece piece(Size rank, const ParameterPlan& parameter) const;
  /// Returns the places of parameters, gradients and moments in the buffers of `rank`.
  StatePlan state(Size rank) const;
  /// Returns the elements that the rank adds to a sum over state_axes(), so that each element of
  /// the model's gradient is added once. Parameters with a sign_rate are left out. The ranges are
  /// places in the rank's flat buffer of gradients, in ascending order.
  std::vector<Range> unique_gradients(Size rank) const;
  /// Returns the bytes of device memory of `rank`.
  MemoryPlan memory(Size rank) const;
  /// Returns the calls of `rank` by cadence, axis, operation and purpose, in the order of their
  /// first call.
  std::vector<CollectivePlan> collectives(Size rank) const;
};

/// The numbers of the engine's fp64 sums (StepSums), which are sections of one buffer.
struct SumsPlan {
  Size losses = 0;      ///< of an epoch, by (batch, microbatch, term)
  Size validation = 0;  ///< losses of a validation
  Size errors = 0;
  Size counted = 0;
  Size evaluated = 0;
  Size norm = 0;  ///< partial sums of the gradient's squared norm
  Size finite = 0;
  Size routing = 0;
  Size part = 0;  ///< of a loss sum of several
  Size total() const {
    return losses + validation + errors + counted + evaluated + norm + finite + routing + part;
  }
};
SumsPlan plan_sums(const PlanInput& input, const StagePlan& stage);
/// Returns the number of loss sums of `batches` batches.
Size loss_sums(const PlanInput& input, Size batches);

/// Returns the plan without actions and tensors: its input, the placements, and the layers and
/// parameters of each stage. Throws ConfigError like make_plan().
Plan outline_plan(PlanInput input);

/// Makes the plan of one step. Throws ConfigError, which names the key, if the input has no valid
/// plan. Only tests leave out passes.
Plan make_plan(const PlanInput& input);
Plan make_plan(const PlanInput& input, const PlanPasses& passes);

/// Returns the plan of the last batch of a data set of `samples` samples, which may be smaller than
/// the others.
Plan plan_last_batch(const Plan& plan, Size samples);

}  // namespace tessera
