// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>
#include <utility>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/passes.hpp>

namespace tessera::detail {
namespace {

/// Calls visit(slot, position) for each tensor that a chunk receives, uses or sends, in the order
/// of execution. The visit may replace the slot.
template <class Visit>
void for_each_use(ChunkPass& chunk, const Visit& visit) {
  Size at = 0;
  const auto messages = [&](std::vector<BoundaryTensor>& tensors) {
    for (BoundaryTensor& tensor : tensors) visit(tensor.slot, at);
    ++at;
  };
  const auto actions = [&](std::vector<Action>& list) {
    for (Action& action : list) {
      rename_slots(action, [&](SlotId id) { return visit(id, at), id; });
      ++at;
    }
  };
  messages(chunk.inputs);
  actions(chunk.forward);
  messages(chunk.outputs);
  messages(chunk.output_gradients);
  actions(chunk.backward);
  messages(chunk.input_gradients);
  actions(chunk.weights);
}

constexpr Size forward_begin = 1;
Size backward_begin(const ChunkPass& chunk) { return static_cast<Size>(chunk.forward.size()) + 3; }

/// Returns the positions from the first to the last use of each slot, or of a piece of it, in a
/// chunk.
std::vector<Range> lifetimes(ChunkPass& chunk, const std::vector<Slot>& slots) {
  std::vector<Range> alive(slots.size());
  for_each_use(chunk, [&](SlotId id, Size at) {
    if (slots[id].piece_of != no_slot) id = slots[id].piece_of;
    if (alive[id].count == 0) alive[id].begin = at;
    alive[id].count = at + 1 - alive[id].begin;
  });
  return alive;
}

/// Returns true if the layer of the action before can add its gradient to `sum.to` by itself.
bool adds_itself(const PlanInput& input, const std::vector<Action>& before, const Accumulate& sum) {
  const auto* layer = before.empty() ? nullptr : std::get_if<Backward>(&before.back());
  return layer != nullptr && input.model.layers[layer->layer].kind->adds_gradient &&
         layer->input_gradients.size() == 1 && layer->input_gradients[0] == sum.from &&
         layer->output_gradient != sum.to && !input.numerics.reproducible;
}

/// Sets `memory`, the slot whose memory each slot of the chunk has.
void replace_in_place(const PlanInput& input, ChunkPass& chunk, PassTensors& tensors,
                      std::vector<SlotId>& memory) {
  const std::vector<Range> alive = lifetimes(chunk, tensors.plan().slots);
  const auto replaces = [&](SlotId to, SlotId from, Size at) {
    const Slot &before = tensors.slot(from), &after = tensors.slot(to);
    if (before.role == TensorRole::batch || alive[from].end() != at + 1 ||
        tensors.bytes_of(before) != tensors.bytes_of(after))
      return false;
    memory[to] = memory[from];
    return true;
  };
  const auto visit = [&](const Action& action, Size at, Size begin_of_list) {
    if (const auto* forward = std::get_if<Forward>(&action)) {
      const int number = input.model.layers[forward->layer].kind->in_place_of;
      if (number < 0) return;
      const SlotId from = forward->inputs[static_cast<std::size_t>(number)];
      if (alive[from].begin >= begin_of_list &&
          tensors.slot(from).placements == tensors.slot(forward->output).placements)
        replaces(forward->output, from, at);
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      if (!input.model.layers[backward->layer].kind->gradient_in_place) return;
      const SlotId dy = backward->output_gradient;
      for (const SlotId dx : backward->input_gradients)
        if (dx != no_slot && dx != dy && replaces(dx, dy, at)) return;
    } else if (const auto* move = std::get_if<Move>(&action)) {
      if (is_sum(tensors.slot(move->from).placements, tensors.slot(move->to).placements))
        replaces(move->to, move->from, at);
    }
  };
  Size at = forward_begin;
  for (const Action& action : chunk.forward) visit(action, at++, 0);
  at = backward_begin(chunk);
  for (const Action& action : chunk.backward) visit(action, at++, backward_begin(chunk));
}

}  // namespace

void join_gradients(const PlanInput& input, ChunkPass& chunk, const std::vector<Slot>& slots) {
  std::vector<Range> alive = lifetimes(chunk, slots);
  std::vector<SlotId> joined(slots.size());  // the slot in place of each
  std::iota(joined.begin(), joined.end(), SlotId{0});
  Size at = backward_begin(chunk);
  for (Action& action : std::exchange(chunk.backward, {})) {
    rename_slots(action, [&](SlotId id) { return joined[id]; });
    ++at;
    if (const auto* sum = std::get_if<Accumulate>(&action); sum && alive[sum->from].end() == at) {
      if (!sum->adds && slots[sum->from].type == slots[sum->to].type) {
        alive[sum->from].count = alive[sum->to].end() - alive[sum->from].begin;
        joined[sum->to] = sum->from;
        continue;
      }
      if (sum->adds && adds_itself(input, chunk.backward, *sum)) {
        auto& layer = std::get<Backward>(chunk.backward.back());
        layer.input_gradients[0] = sum->to;
        layer.adds = true;
        continue;
      }
    }
    chunk.backward.push_back(std::move(action));
  }
  for_each_use(chunk, [&](SlotId& id, Size) { id = joined[id]; });
}

void assign_storages(const PlanInput& input, PassTensors& tensors, bool in_place) {
  PassPlan& plan = tensors.plan();
  std::vector<SlotId> memory(plan.slots.size());
  std::iota(memory.begin(), memory.end(), SlotId{0});
  if (in_place)
    for (ChunkPass& chunk : plan.chunks) replace_in_place(input, chunk, tensors, memory);

  // Slots and storages are numbered in the order of their first use.
  std::vector<SlotId> number(plan.slots.size(), no_slot);
  std::vector<Slot> slots;
  std::map<SlotId, Size> storage_of;  // by the slot whose memory it is
  const auto renumbered = [&](SlotId id, const auto& again) -> SlotId {
    if (number[id] != no_slot) return number[id];
    Slot slot = plan.slots[id];
    if (slot.piece_of != no_slot) {
      slot.piece_of = again(slot.piece_of, again);
      slot.storage = slots[slot.piece_of].storage;
    } else if (slot.role != TensorRole::batch) {
      const auto [storage, is_new] =
          storage_of.try_emplace(memory[id], static_cast<Size>(plan.storages.size()));
      if (is_new) plan.storages.push_back({tensors.bytes_of(slot)});
      slot.storage = storage->second;
    }
    slots.push_back(std::move(slot));
    return number[id] = static_cast<SlotId>(slots.size()) - 1;
  };
  renumbered(slot_of_x, renumbered);
  renumbered(slot_of_y, renumbered);
  for (ChunkPass& chunk : plan.chunks)
    for_each_use(chunk, [&](SlotId& id, Size) { id = renumbered(id, renumbered); });
  plan.slots = std::move(slots);
}

}  // namespace tessera::detail
