// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/mesh/placement.hpp>
#include <tessera/plan/layers.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

enum class TensorRole { parameter, gradient, moment, activation, batch };
std::string_view name_of(TensorRole role);

/// Where one tensor of a step lives.
struct TensorPlan {
  std::string path;
  TensorRole role = TensorRole::parameter;
  std::vector<Size> shape;  ///< global
  Placements placements;    ///< one per mesh axis
  /// A rank holds of its block only what lies in its share of the flat unit.
  bool in_shares = false;
  Size layer = 0;  ///< of a parameter, its gradient and moments
};

/// Every tensor of one microbatch's step: the batch, the layers' outputs, and each parameter with
/// its gradient and moments.
std::vector<TensorPlan> place_tensors(const PlanInput& input, const Layouts& layouts);

/// The elements of a layer's flat unit that are one parameter's, or its gradient's or a moment's.
/// `layer`: with the rank's extents.
Range part_of_unit(const TensorPlan& tensor, const LinearSpec& layer);

/// The part of a rank's block of `tensor` that the rank keeps between steps, as a run of the
/// block's elements in row-major order. `share`: the rank's part of its unit.
Range kept_part(const TensorPlan& tensor, const ModelSpec& local, Range share);

}  // namespace tessera
