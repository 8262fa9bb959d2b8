// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/plan/action.hpp>
#include <tessera/plan/buckets.hpp>
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/layers.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/plan/tensors.hpp>
#include <tessera/plan/units.hpp>

namespace tessera {

/// Multiply-adds count as two. Only matrix products are counted.
struct FlopPlan {
  Size forward = 0;
  Size backward = 0;  ///< without the first layer's input gradient, which nobody needs
  Size total() const { return forward + backward; }
};

/// What one training step does, on every rank, before anything runs.
struct Plan {
  PlanInput input;
  Layouts layouts;
  std::vector<TensorPlan> tensors;
  std::vector<Bucket> buckets;  ///< in the order in which their gradients become ready
  std::vector<Action> actions;  ///< the schedule of one step, the same for every rank
  FlopPlan flops;               ///< of one step, over all ranks

  /// Rows of the global batch that `rank` computes.
  Range rows(Size rank) const;
  /// Rows of microbatch `microbatch`, counted from the rank's first row.
  Range microbatch_rows(Size rank, Size microbatch) const;
  /// Steps of one epoch; the last batch may be smaller than the others.
  Size steps_per_epoch() const;
  /// Rows of the data set that `rank` ever computes: its share of each batch of an epoch.
  Size data_rows(Size rank) const;

  /// The model with the layers' extents on `rank`.
  ModelSpec local_model(Size rank) const;
  /// Where `rank` keeps its parameters, gradients and moments.
  StatePlan state(Size rank) const;
  LocalRows local_rows(Size rank) const;
  /// What counts on `rank` in a sum over the ranks that split parameters (unique_gradients).
  std::vector<Range> unique_gradients(Size rank) const;
  MemoryPlan memory(Size rank) const;
  /// The calls of `rank`, in a step, an epoch and a check of replicas.
  std::vector<CollectivePlan> collectives(Size rank) const;
};

/// The rows of a batch that `rank` computes: a balanced split along each batch axis in turn.
Range batch_share(const MeshShape& mesh, Size batch, Size rank);

/// Elements of Engine's buffer of fp64 sums, in its order: the loss sums of an epoch by (step,
/// microbatch), the partial sums of the gradient's squared norm, the finite flag.
struct SumsPlan {
  Size losses = 0;
  Size norms = 0;
  Size finite = 0;
  Size total() const { return losses + norms + finite; }
};
SumsPlan plan_sums(const Plan& plan);

/// Makes the plan of one step. Throws ConfigError for an input that no plan can serve.
Plan make_plan(const PlanInput& input);

}  // namespace tessera
