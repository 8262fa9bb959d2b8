// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a step. The plan fills in every field of an action; engine, traffic, memory,
// prediction and printing read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/operation.hpp>
#include <tessera/plan/layout/rank_set.hpp>
#include <tessera/plan/layout/slot.hpp>

namespace tessera {

/// An operation of a training step. Each makes at most one collective call.
enum class StepOperation : std::uint8_t {
  gather,          ///< a bucket's parameters from all their shares
  redistribute,    ///< a tensor to another placement along `model`
  accumulate,      ///< adds one tensor to another, or copies or converts it
  forward,         ///< one layer on one microbatch
  loss_terms,      ///< terms of a softmax whose columns are split over ranks
  loss,            ///< local loss sum and the gradient of the prediction
  backward,        ///< one layer: gradients of its parameters and inputs
  receive,         ///< a tensor from a neighbouring pipeline stage
  send,            ///< a tensor to a neighbouring pipeline stage
  reduce_scatter,  ///< a bucket's gradient: each rank keeps its share of the sum
  reduce,          ///< a bucket's gradient, or the rank's share of it, over the replicas
  reduce_rows,     ///< gradients of a unit to which each rank of `model` added its own rows
  check_finite,    ///< all ranks learn whether the gradient is finite everywhere
  clip,            ///< gradients by value or by global norm
  update,          ///< the optimizer on the parameters that this rank owns
};

/// A whole operation returns when it is complete. A started one runs beside later actions until its
/// finish.
enum class Phase : std::uint8_t { whole, start, finish };

/// What Action::index counts.
enum class ActionSubject : std::uint8_t { step, layer, unit, bucket, tensor };

struct StepOperationRow {
  std::string_view name;
  ActionSubject subject;
  bool of_microbatch;  ///< once for each microbatch, not once for the step
};

/// In the order of the enumerators.
inline constexpr std::array<StepOperationRow, 15> step_operation_rows{{
    {"gather", ActionSubject::bucket, false},
    {"redistribute", ActionSubject::tensor, true},
    {"accumulate", ActionSubject::tensor, true},
    {"forward", ActionSubject::layer, true},
    {"loss_terms", ActionSubject::step, true},
    {"loss", ActionSubject::step, true},
    {"backward", ActionSubject::layer, true},
    {"receive", ActionSubject::tensor, true},
    {"send", ActionSubject::tensor, true},
    {"reduce_scatter", ActionSubject::bucket, false},
    {"reduce", ActionSubject::bucket, false},
    {"reduce_rows", ActionSubject::unit, false},
    {"check_finite", ActionSubject::step, false},
    {"clip", ActionSubject::step, false},
    {"update", ActionSubject::step, false},
}};

constexpr const StepOperationRow& row_of(StepOperation operation) {
  return step_operation_rows[static_cast<std::size_t>(operation)];
}

/// The slots that an action reads and writes; no_slot if it has no such operand.
struct Operands {
  std::vector<SlotId> inputs{};  ///< of a layer, as far as read; prediction and targets of the loss
  SlotId output = no_slot;       ///< of a layer
  SlotId kept = no_slot;         ///< by a layer's forward pass for its backward pass
  SlotId output_gradient = no_slot;
  std::vector<SlotId> input_gradients{};  ///< of a layer, one for each input
  SlotId terms = no_slot;                 ///< of the loss, if its columns are split
  SlotId from = no_slot, to = no_slot;    ///< of a tensor that is moved, added or sent
  SlotId scratch = no_slot;               ///< of a redistribution that packs its messages

  friend bool operator==(const Operands&, const Operands&) = default;
};

/// Calls visit(slot) for every operand that there is.
template <class Visit>
void for_each_slot(const Operands& operands, const Visit& visit) {
  const auto visit_one = [&](SlotId id) {
    if (id != no_slot) visit(id);
  };
  for (const SlotId id : operands.inputs) visit_one(id);
  for (const SlotId id : operands.input_gradients) visit_one(id);
  for (const SlotId id : {operands.output, operands.kept, operands.output_gradient, operands.terms,
                          operands.from, operands.to, operands.scratch})
    visit_one(id);
}

/// The elements of a call's full logical buffer, as a rule that payload_bytes() applies on a rank.
enum class Payload : std::uint8_t {
  bucket,        ///< all elements of the bucket, with padding
  own_gradient,  ///< the rank's part of the bucket's gradient
  own_rows,      ///< the rank's part of the gradients that a unit reduces over `model`
  tensor,        ///< the block of `from` that the ranks of the call hold together
  own_tensor,    ///< the rank's own block of a tensor
  scalar,
};

/// The collective call or message of an action.
struct ActionCall {
  RankSet ranks = RankSet::batch;
  Operation operation = Operation::all_reduce;
  Payload payload = Payload::scalar;
  DType type = DType::float64;
  std::string_view what{};  ///< for people: "gradients"

  friend bool operator==(const ActionCall&, const ActionCall&) = default;
};

/// The gradients that a backward pass computes.
enum class Gradients : std::uint8_t { all, of_inputs, of_parameters };

/// One entry of a step's schedule.
struct Action {
  StepOperation operation = StepOperation::forward;
  Phase phase = Phase::whole;
  Size index = 0;  ///< of a layer, a unit or a bucket
  Size microbatch = 0;
  Operands operands{};
  std::optional<ActionCall> call{};
  Gradients gradients = Gradients::all;
  bool adds = false;   ///< to the values in the tensors that it writes
  bool again = false;  ///< a forward pass that is repeated for the backward pass
  Size peer = -1;      ///< of a message: the other stage
  Size tag = 0;        ///< of a message: the same for its tensor in every microbatch

  bool is(StepOperation other) const { return operation == other; }
  /// Whether this action issues its call, and does not only wait for it.
  bool issues_call() const { return call && phase != Phase::finish; }
  /// The tensor of a message.
  SlotId message() const { return operation == StepOperation::send ? operands.from : operands.to; }

  friend bool operator==(const Action&, const Action&) = default;
};

/// "forward", "start_reduce", "backward_inputs"
std::string name_of(const Action& action);

/// The first `actions` actions of a list belong to microbatch 0. `times` microbatches go through
/// them, one after another, before the rest of the list: a list is as long for a million
/// microbatches as for three.
struct Repetition {
  Size actions = 0;
  Size times = 1;
};

/// Calls act(number, microbatch) for all actions of a list in order, with the position of each.
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
