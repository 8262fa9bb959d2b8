// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/placement.hpp>
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
};

/// Every tensor of one microbatch's step: the batch, the layers' outputs, and each parameter with
/// its gradient and moments.
std::vector<TensorPlan> place_tensors(const PlanInput& input);

}  // namespace tessera
