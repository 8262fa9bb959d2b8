// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/layout/slot.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/memory_placement.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What the ranks of one pipeline stage do in a step. Without an axis `pipeline` there is one
/// stage, with all layers.
struct StagePlan {
  std::vector<Range> chunks;   ///< of the model's layers; several with virtual stages
  ParameterLayout parameters;  ///< in units and buckets
  std::vector<Slot> slots;     ///< every tensor: batch, activations, parameters, gradients, moments
  std::vector<Storage> storages;   ///< memory of the slots in the frame
  Size frame_bytes = 0;            ///< of all of it
  std::vector<Action> actions;     ///< the schedule of one step, the same for every rank
  Repetition repeated;             ///< of these actions
  std::vector<PassSpan> passes;    ///< in these actions
  std::vector<Action> evaluation;  ///< forward passes and losses of a batch, nothing else
  Repetition evaluation_repeated;

  /// Whether two tensors of the pass lie in the same memory.
  bool in_one_place(SlotId a, SlotId b) const;
};

/// What one training step does, on every rank, before anything runs.
struct Plan {
  PlanInput input;
  std::vector<Layout> layouts;  ///< of the model's layers, along `model`
  std::vector<StagePlan> stages;
  PassCount flops;        ///< of one step, over all ranks; matrix products only
  double recomputed = 0;  ///< FLOPs of forward passes that backward passes repeat, beside them

  /// The coordinate of a rank along `pipeline`, 0 without one.
  Size stage_number(Size rank) const;
  /// The stage of a rank.
  const StagePlan& stage(Size rank) const;
  /// The first rank of a stage.
  Size first_rank(Size stage) const;

  /// Samples of the global batch that `rank` computes.
  Range rows(Size rank) const;
  /// Samples of microbatch `microbatch`, counted from the rank's first one.
  Range microbatch_rows(Size rank, Size microbatch) const;
  /// Steps of one epoch; the last batch may be smaller than the others.
  Size steps_per_epoch() const { return input.steps_per_epoch(); }
  /// Samples of the data set that `rank` ever computes: its share of each batch of an epoch.
  Size data_rows(Size rank) const { return data_rows(rank, input.samples); }
  /// The same of another number of samples in batches of this size.
  Size data_rows(Size rank, Size samples) const;

  /// The rank's coordinate along `model`, 0 without one.
  Size model_coordinate(Size rank) const;
  /// The layers with the extents that they have on `rank`.
  std::vector<LayerSpec> local_layers(Size rank) const;
  /// The block of a parameter that `rank` computes with.
  Block block(Size rank, const ParameterPlan& parameter) const;
  /// Where `rank` keeps its parameters, gradients and moments.
  StatePlan state(Size rank) const;
  /// What counts on `rank` when something is summed over all ranks that split parameters, each
  /// element once: runs of its buffer of gradients, in order.
  std::vector<Range> unique_gradients(Size rank) const;
  MemoryPlan memory(Size rank) const;
  /// The calls of `rank`, in a step, an epoch and a check of replicas.
  std::vector<CollectivePlan> collectives(Size rank) const;
};

/// "forward(layer1/output)", with a microbatch "forward(layer1/output, m0)", "gather(layer1)",
/// "redistribute(layer2/product, all_reduce)", "update".
std::string to_string(const Action& action, const Plan& plan, const StagePlan& stage);

/// The samples of a batch that `rank` computes: a balanced split along each batch axis in turn.
Range batch_share(const MeshShape& mesh, Size batch, Size rank);

/// Elements of Engine's buffer of fp64 sums, in its order: the loss sums of an epoch, and those of
/// a validation, by (step, microbatch, term), sums of squares of errors and of solutions, the
/// partial sums of the gradient's squared norm, the finite flag.
struct SumsPlan {
  Size losses = 0;
  Size validation = 0;
  Size errors = 0;
  Size norms = 0;
  Size finite = 0;
  Size first_error() const { return losses + validation; }
  Size first_norm() const { return first_error() + errors; }
  Size first_finite() const { return first_norm() + norms; }
  Size total() const { return first_finite() + finite; }
};
SumsPlan plan_sums(const PlanInput& input, const StagePlan& stage);
/// How many sums the losses of so many batches are.
Size loss_sums(const PlanInput& input, Size batches);

/// Makes the plan of one step. Throws ConfigError for an input that no plan can serve.
Plan make_plan(const PlanInput& input);

/// The plan of the last batch of so many samples, which may be smaller than the others.
Plan plan_last_batch(const Plan& plan, Size samples);

}  // namespace tessera
