// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/memory_placement.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// A tensor that travels from one chunk of layers to the next, or its gradient on the way back.
struct BoundaryTensor {
  SlotId slot = no_slot;
  Size tag = 0;  ///< that of no other tensor or boundary of the pipeline
};

/// What a stage does with one microbatch in a run of layers: the actions of microbatch 0. What
/// belongs to parameters, gathers and reductions, and messages, the schedule puts in between.
struct ChunkPass {
  std::vector<Action> forward;   ///< and the loss, behind the model's last layer
  std::vector<Action> backward;  ///< without the gradients of weights, if they come apart
  std::vector<Action> weights;
  std::vector<BoundaryTensor> inputs, outputs;                    ///< of forward
  std::vector<BoundaryTensor> output_gradients, input_gradients;  ///< read and made by backward
};

/// The tensors between the layers of a stage.
struct PassPlan {
  std::vector<Slot> slots;        ///< batch/x and batch/y first
  std::vector<Storage> storages;  ///< of slots that live in the frame; not placed yet
  std::vector<ChunkPass> chunks;
};

inline constexpr SlotId slot_of_x = 0;
inline constexpr SlotId slot_of_y = 1;

/// Lowers the layers of each chunk to actions on slots. Nothing is copied that can be shared:
/// outputs take the memory of inputs that nobody reads again, sums over `model` are formed in
/// place, and gradients that a layer passes on are one slot. An input that had to be redistributed
/// is made again for backward instead of being kept, except the last one of a chunk, which is
/// needed again first. Between chunks travels what later layers read, as it lies along `model`;
/// sums are formed before.
PassPlan make_passes(const PlanInput& input, const std::vector<Layout>& layouts,
                     const std::vector<Range>& chunks);

/// Rows of the first, and so the largest, microbatch over all ranks.
Size first_microbatch_rows(const PlanInput& input);

}  // namespace tessera
