// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layer_spec.hpp>
#include <tessera/plan/action.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Forward, loss and backward of one microbatch: the tensors between layers and what is done with
/// them. What belongs to parameters, gathers and reductions, the schedule puts in between.
struct PassPlan {
  std::vector<Slot> slots;      ///< batch/x and batch/y first
  std::vector<Action> actions;  ///< of microbatch 0
  Size frame_bytes = 0;         ///< memory of the slots that live in a frame, on every rank
};

inline constexpr SlotId slot_of_x = 0;
inline constexpr SlotId slot_of_y = 1;

/// Lowers the layers to actions on slots. Nothing is copied that can be shared: outputs take the
/// memory of inputs that nobody reads again, sums over `model` are formed in place, and gradients
/// that a layer passes on are one slot. An input that had to be redistributed is made again for
/// backward instead of being kept, except the last one, which is needed again first.
PassPlan make_pass(const PlanInput& input, const std::vector<Layout>& layouts);

/// Rows of the first, and so the largest, microbatch over all ranks.
Size first_microbatch_rows(const PlanInput& input);

}  // namespace tessera
