// SPDX-License-Identifier: Apache-2.0
// The kernels and calls behind a plan's actions, with their FLOPs and bytes.
#pragma once

#include <optional>
#include <vector>

#include <tessera/plan/layout/rank_boxes.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The kernels of an action, or its call.
struct Work {
  StepOperation operation = StepOperation::forward;
  double flops = 0;           ///< of matrix products
  double bytes = 0;           ///< payload of a call; else operands, each read or written once
  bool has_products = false;  ///< a layer that consists mainly of matrix products

  /// Of a call. A started one, with its payload, is in flight until the work that finishes it.
  std::optional<ActionCall> call{};
  Phase phase = Phase::whole;
  Size number = 0;  ///< tells calls in flight apart: the bucket, or a number of the message
  Size peer = -1;   ///< of a message: the other stage

  bool is_message() const { return call && call->ranks == RankSet::pipeline; }
  /// Nothing to do on this rank.
  bool is_empty() const { return flops == 0 && bytes == 0; }
  friend bool operator==(const Work&, const Work&) = default;
};

/// The sizes on a rank that its work depends on, computed once for a rank.
struct WorkSizes {
  CallSizes calls;
  std::vector<LayerSpec> layers;  ///< with the rank's extents
  Size unique_gradients = 0;      ///< elements of the rank that count for the gradient's norm
};
WorkSizes work_sizes(const Plan& plan, Size rank);

/// The work of an action in the order of the engine. All ranks of a stage get as many pieces, which
/// may be empty. A call over a set of one rank is left out.
std::vector<Work> work_of(const Action& action, const Plan& plan, const WorkSizes& sizes);

/// Boxes of ranks that do equal work, and for each the first rank of all that do.
struct EqualWork {
  RankBoxes boxes;
  std::vector<Size> first;
};
EqualWork ranks_with_equal_work(const Plan& plan);

}  // namespace tessera
