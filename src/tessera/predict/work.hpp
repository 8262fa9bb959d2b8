// SPDX-License-Identifier: Apache-2.0
// What takes time in a step: the kernels and calls behind the plan's actions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/plan/layout/rank_boxes.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

enum class WorkKind : std::uint8_t {
  forward,
  backward,
  loss,
  accumulate,
  copy,
  clip_by_value,
  sum_of_squares,
  find_not_finite,
  update,
  redistribute,  ///< with the packing of its messages
  all_gather,
  reduce_scatter,
  all_reduce,
  message,  ///< from a neighbouring stage
};
template <>
inline constexpr std::array<std::string_view, 14> names_of<WorkKind>{
    "forward",        "backward",        "loss",   "accumulate",   "copy",       "clip_by_value",
    "sum_of_squares", "find_not_finite", "update", "redistribute", "all_gather", "reduce_scatter",
    "all_reduce",     "message"};

/// One kernel, or the kernels of a layer, or one call.
struct Work {
  WorkKind kind = WorkKind::forward;
  /// Everything but the size that its time depends on: "linear 256x512 float32".
  std::string shape;
  /// Rows of a layer or of a redistribution, samples of a layer that mixes the rows of one, payload
  /// bytes of a call, else elements.
  Size size = 0;
  bool has_products = false;  ///< a layer that is mainly matrix products

  /// Where ranks exchange something. A call that is `started` goes on until the work that
  /// `finishes` it; `bucket` tells which of them.
  std::optional<RankSet> ranks{};
  Operation operation = Operation::all_reduce;
  enum class Phase : std::uint8_t { whole, started, finishes } phase = Phase::whole;
  Size bucket = 0;  ///< or of a message its own number
  Size peer = -1;   ///< of a message: the other stage

  double flops = 0;  ///< of its products
  double bytes = 0;  ///< payload of a call; else of a kernel's operands, each read or written once

  /// "forward linear 256x512 float32"
  std::string name() const;
  friend bool operator==(const Work&, const Work&) = default;
};

/// The sizes on a rank that its work depends on, worked out once for a rank.
struct WorkSizes {
  CallSizes calls;
  std::vector<LayerSpec> layers;  ///< with the rank's extents
  Size unique_gradients = 0;      ///< elements that the rank's share of the norm is made of
};
WorkSizes work_sizes(const Plan& plan, Size rank);

/// In the order in which the engine does it. All ranks have the same number of them; what a rank
/// has nothing to do in has size 0. A set of ranks of which each rank is alone makes no call.
std::vector<Work> work_of(const Action& action, const Plan& plan, const WorkSizes& sizes);

/// Boxes of ranks that do equal work, and for each the first rank of all that do.
struct EqualWork {
  RankBoxes boxes;
  std::vector<Size> first;
};
EqualWork ranks_with_equal_work(const Plan& plan);

}  // namespace tessera
