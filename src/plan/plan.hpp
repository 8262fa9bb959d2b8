// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>
#include <tessera/plan/action.hpp>
#include <tessera/plan/buckets.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/plan/tensors.hpp>

namespace tessera {

/// How often a planned collective happens.
enum class Cadence { step, epoch };
std::string_view name_of(Cadence cadence);

/// One line of the traffic that a step, or an epoch, causes on every rank of an axis.
struct CollectivePlan {
  std::string axis;
  Operation operation = Operation::all_reduce;
  Size calls = 0;          ///< per step or epoch
  Size payload_bytes = 0;  ///< of all these calls together
  Cadence cadence = Cadence::step;
  std::string what;
};

/// Multiply-adds count as two. Only matrix products are counted.
struct FlopPlan {
  Size forward = 0;
  Size backward = 0;  ///< without the first layer's input gradient, which nobody needs
  Size total() const { return forward + backward; }
};

/// What one training step does, on every rank, before anything runs.
struct Plan {
  PlanInput input;
  std::vector<TensorPlan> tensors;
  std::vector<Bucket> buckets;  ///< in the order in which their gradients become ready
  std::vector<CollectivePlan> collectives;
  std::vector<Action> actions;  ///< the schedule of one step
  FlopPlan flops;               ///< of one step, over all ranks

  /// Rows of the global batch that `rank` computes.
  Range rows(Size rank) const;
  /// Rows of microbatch `microbatch`, counted from the rank's first row.
  Range microbatch_rows(Size rank, Size microbatch) const;
  /// Steps of one epoch; the last batch may be smaller than the others.
  Size steps_per_epoch() const;
  /// Rows of the data set that `rank` ever computes: its share of each batch of an epoch.
  Size data_rows(Size rank) const;
  MemoryPlan memory(Size rank) const;
};

/// The rows of a batch that `rank` computes: a balanced split along each batch axis in turn.
Range batch_share(const MeshShape& mesh, Size batch, Size rank);

/// Makes the plan of one step. Throws ConfigError for an input that no plan can serve.
Plan make_plan(const PlanInput& input);

}  // namespace tessera
