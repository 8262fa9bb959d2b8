// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/pass/memory_placement.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// A tensor that travels from one chunk of layers to the next, or its gradient on the way back.
struct BoundaryTensor {
  SlotId slot = no_slot;
  Size tag = 0;  ///< unique among tensors and boundaries of the pipeline
};

/// The actions of one stage on microbatch 0 in a run of layers. The schedule adds gathers,
/// reductions and messages.
struct ChunkPass {
  std::vector<Action> forward;   ///< ends with the loss in the last chunk of the model
  std::vector<Action> backward;  ///< without gradients of weights if the schedule splits them off
  std::vector<Action> weights;   ///< gradients of weights that the schedule splits off
  std::vector<BoundaryTensor> inputs, outputs;                    ///< received and sent by forward
  std::vector<BoundaryTensor> output_gradients, input_gradients;  ///< received and sent by backward
};

/// The passes of a stage and their tensors.
struct PassPlan {
  std::vector<Slot> slots;        ///< batch/x and batch/y first
  std::vector<Storage> storages;  ///< of the slots in the frame; not placed yet
  std::vector<ChunkPass> chunks;
};

inline constexpr SlotId slot_of_x = 0;
inline constexpr SlotId slot_of_y = 1;

/// The passes over the naive list (passes.hpp). A test leaves some out: the bits stay the same.
struct PlanPasses {
  bool split_weights = true;  ///< for schedules that delay the gradients of weights
  bool drop = true;           ///< repeat layers and redistributions in the backward pass
  bool join = true;           ///< leave out copies and additions of gradients
  bool share_memory = true;   ///< write over tensors that are not read again
};

/// Turns the layers of each chunk into actions on slots: a naive list, in which each tensor has
/// memory of its own, and passes over it. Chunks send the tensors that later layers read with their
/// placement along `model`; a Partial tensor is summed before.
PassPlan make_passes(const PlanInput& input, const std::vector<LayerPlacements>& placed,
                     const std::vector<Range>& chunks, const PlanPasses& passes = {});

}  // namespace tessera
