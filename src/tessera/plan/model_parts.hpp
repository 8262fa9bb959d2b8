// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Tells apart what coordinates along `model` give to ranks: the extents of their layers and of
/// their tensors in the frame. There are few different ones, however many ranks the axis has: part
/// i of n items is larger where i < n mod ranks, and nothing else depends on i.
class ModelParts {
 public:
  explicit ModelParts(const Plan& plan) : plan_(plan) {}

  /// Equal for ranks of one stage with as many samples that have equal extents.
  Size operator()(Size rank);

 private:
  std::vector<Size> bounds(const StagePlan& stage, Size samples) const;

  const Plan& plan_;
  /// By stage and samples: the coordinates, in order, from which on a part is smaller.
  std::map<std::pair<Size, Size>, std::vector<Size>> bounds_;
};

}  // namespace tessera
