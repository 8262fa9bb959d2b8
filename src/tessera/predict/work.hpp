// SPDX-License-Identifier: Apache-2.0
// The kernels and calls of a plan's actions, with their FLOPs and bytes.
#pragma once

#include <optional>
#include <vector>

#include <tessera/plan/layout/rank_boxes.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// A kernel of an action, or its call.
struct Work {
  StepOperation operation = StepOperation::forward;
  double flops = 0;  ///< FLOPs of matrix products
  double bytes = 0;  ///< payload of a call, or the operands of a kernel, each read or written once
  bool has_products = false;  ///< a layer that consists mainly of matrix products

  /// The call, if this is one. A started call carries the payload; the matching finish has none.
  std::optional<ActionCall> call{};
  Phase phase = Phase::whole;
  Size number = 0;  ///< identifies a call in flight: its bucket or message
  Size peer = -1;   ///< the other stage of a message

  bool is_message() const { return call && call->ranks == RankSet::pipeline; }
  /// Returns true if there is nothing to do on this rank.
  bool is_empty() const { return flops == 0 && bytes == 0; }
  friend bool operator==(const Work&, const Work&) = default;
};

/// The sizes that determine the work of a rank, computed once per rank.
struct WorkSizes {
  CallSizes calls;
  std::vector<LayerSpec> layers;  ///< layers with the rank's extents
  Size unique_gradients = 0;      ///< elements of the rank in the sum of the gradient's norm
};
WorkSizes work_sizes(const Plan& plan, Size rank);

/// Returns the work of an action in the order of the engine. All ranks of a stage get equal numbers
/// of pieces, some of which may be empty. A call of one rank alone is left out.
std::vector<Work> work_of(const Action& action, const Plan& plan, const WorkSizes& sizes);

/// Boxes of ranks with equal work and, by box, the first rank with the same work.
struct EqualWork {
  RankBoxes boxes;
  std::vector<Size> first;
};
EqualWork ranks_with_equal_work(const Plan& plan);

}  // namespace tessera
