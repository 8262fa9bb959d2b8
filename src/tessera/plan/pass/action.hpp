// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/mesh/transition.hpp>
#include <tessera/plan/layout/slot.hpp>

namespace tessera {

/// What a rank does. Each kind makes at most one collective call.
enum class ActionKind : std::uint8_t {
  gather,         ///< a bucket's parameters from all their shares, to the end
  start_gather,   ///< the same, started only
  finish_gather,  ///< waits for a started gather

  redistribute,      ///< a tensor with other placements along `model`
  accumulate,        ///< adds one tensor to another, or copies it
  forward,           ///< one layer on one microbatch
  loss_terms,        ///< what ranks that have some columns of a prediction tell each other
  loss,              ///< local loss sum and the gradient of the prediction
  backward,          ///< one layer: gradients of its parameters, and of the inputs that need one
  backward_inputs,   ///< only those of the inputs
  backward_weights,  ///< only those of the parameters

  start_receive,   ///< a tensor from a neighbouring pipeline stage
  finish_receive,  ///< waits for it
  start_send,      ///< a tensor to a neighbouring pipeline stage
  finish_send,     ///< waits until its memory may be written again

  reduce_scatter,         ///< a bucket's gradient, of which each rank keeps its share
  start_reduce_scatter,   ///< the same, started only
  finish_reduce_scatter,  ///< waits for a started one
  reduce,         ///< a bucket's gradient, or the share of it, over the replicas, to the end
  start_reduce,   ///< the same, started only
  finish_reduce,  ///< waits for a started one
  reduce_rows,    ///< a unit's gradients of which each rank of `model` saw its own rows only

  check_finite,  ///< all ranks learn whether the gradient is finite everywhere
  clip,          ///< gradients by value or by global norm
  update,        ///< the optimizer on what this rank owns
};

/// What Action::index counts.
enum class ActionSubject : std::uint8_t { none, layer, unit, bucket, slot };

struct ActionRow {
  std::string_view name;
  ActionSubject subject;
  bool of_microbatch;  ///< not of the step as a whole
};

/// In the order of the enumerators.
inline constexpr std::array<ActionRow, 25> action_rows{{
    {"gather", ActionSubject::bucket, false},
    {"start_gather", ActionSubject::bucket, false},
    {"finish_gather", ActionSubject::bucket, false},
    {"redistribute", ActionSubject::slot, true},
    {"accumulate", ActionSubject::slot, true},
    {"forward", ActionSubject::layer, true},
    {"loss_terms", ActionSubject::none, true},
    {"loss", ActionSubject::none, true},
    {"backward", ActionSubject::layer, true},
    {"backward_inputs", ActionSubject::layer, true},
    {"backward_weights", ActionSubject::layer, true},
    {"start_receive", ActionSubject::slot, true},
    {"finish_receive", ActionSubject::slot, true},
    {"start_send", ActionSubject::slot, true},
    {"finish_send", ActionSubject::slot, true},
    {"reduce_scatter", ActionSubject::bucket, false},
    {"start_reduce_scatter", ActionSubject::bucket, false},
    {"finish_reduce_scatter", ActionSubject::bucket, false},
    {"reduce", ActionSubject::bucket, false},
    {"start_reduce", ActionSubject::bucket, false},
    {"finish_reduce", ActionSubject::bucket, false},
    {"reduce_rows", ActionSubject::unit, false},
    {"check_finite", ActionSubject::none, false},
    {"clip", ActionSubject::none, false},
    {"update", ActionSubject::none, false},
}};

constexpr const ActionRow& row_of(ActionKind kind) {
  return action_rows[static_cast<std::size_t>(kind)];
}
constexpr std::string_view name_of(ActionKind kind) { return row_of(kind).name; }

/// One entry of a step's schedule, with its operands.
struct Action {
  ActionKind kind = ActionKind::forward;
  Size index = 0;  ///< a layer, a unit, a bucket, or the slot that is written, as the kind says
  Size microbatch = 0;
  /// forward: the inputs. backward: the output's gradient, the inputs, the output, what forward
  /// kept (no_slot for what it does not read). loss_terms: prediction and target. loss: the same,
  /// and the terms of all ranks, if they have columns apart. Else the tensor that is moved.
  std::vector<SlotId> reads{};
  /// forward: the output, what is kept. backward: the inputs' gradients, no_slot where none is
  /// wanted. Else the one tensor that is made.
  std::vector<SlotId> writes{};
  SlotId scratch = no_slot;  ///< of a redistribution whose messages are packed
  bool adds = false;         ///< to what is in `writes`
  bool again = false;        ///< of forward: for a backward pass, and not for the first time
  Size peer = -1;            ///< of a message: the other stage
  Size tag = 0;              ///< of a message: the same for its tensor in every microbatch

  friend bool operator==(const Action&, const Action&) = default;
};

/// The first actions of a list are those of microbatch 0. So many microbatches go through them, one
/// after another, before the rest of the list begins: a list is as long for a million microbatches
/// as for three.
struct Repetition {
  Size actions = 0;
  Size times = 1;
};

/// Calls act(number, microbatch) for all actions of a list in their order, with the position of
/// each.
template <class Act>
void for_each_action(const std::vector<Action>& list, const Repetition& repeated, const Act& act) {
  for (Size m = 0; m < repeated.times; ++m)
    for (std::size_t i = 0; i < static_cast<std::size_t>(repeated.actions); ++i) act(i, m);
  for (auto i = static_cast<std::size_t>(repeated.actions); i < list.size(); ++i)
    act(i, list[i].microbatch);
}

/// The same action on another microbatch.
inline Action on_microbatch(Action action, Size microbatch) {
  action.microbatch = microbatch;
  return action;
}

}  // namespace tessera
