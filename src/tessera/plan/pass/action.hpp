// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a step. The plan fills in every field of an action. Engine, traffic, memory,
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
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// An operation of a training step. Each makes at most one collective call.
enum class StepOperation : std::uint8_t {
  gather,          ///< gathers a bucket's parameters from the shares
  redistribute,    ///< changes the placement of a tensor along an axis
  accumulate,      ///< adds one tensor to another, copies it or converts its type
  count_targets,   ///< counts the targets of the batch that ModelSpec::ignore_index lets count
  forward,         ///< computes one layer on one microbatch
  loss_terms,      ///< computes the local terms of a softmax with split columns, or of split norms
  loss,            ///< computes the local loss sum and the gradient of the prediction
  backward,        ///< computes the gradients of one layer's parameters and inputs
  receive,         ///< receives a tensor from a pipeline stage, or the rank before along `context`
  send,            ///< sends a tensor to a pipeline stage, or to the next rank along `context`
  reduce_scatter,  ///< sums a bucket's gradient; each rank keeps its share of the sum
  reduce,          ///< sums a bucket's gradient, or the rank's share, over the replicas
  reduce_rows,     ///< sums gradients of a unit over `model`, where each rank added its own rows
  check_finite,    ///< checks on all ranks that the whole gradient is finite
  find_largest,    ///< finds the largest magnitude of the gradient, for a norm without rounding
  clip,            ///< clips gradients by value or by global norm
  update,          ///< applies the optimizer to the parameters that this rank owns
};

/// The phase of an operation. A whole operation is complete when the action is. A started one runs
/// during the next actions, until an action with the phase `finish` waits for it.
enum class Phase : std::uint8_t { whole, start, finish };

/// The kind of object on which an action works. It determines the meaning of Action::index.
enum class ActionSubject : std::uint8_t { step, layer, unit, bucket, tensor };

/// The rule for the number of elements of a call's full logical buffer, which payload_bytes()
/// applies.
enum class Payload : std::uint8_t {
  bucket,             ///< the whole bucket, with padding
  own_gradient,       ///< the part of the bucket's gradient that the rank keeps
  partial_gradients,  ///< the part of UnitPlan::partial_gradients that the rank keeps; in a fixed
                      ///< order of sums, all of it
  tensor,             ///< the block of `from` that the ranks of the call hold together
  own_tensor,         ///< the rank's own block of `from` or, if it has none, of `to`
  scalar,             ///< one element
  limbs,              ///< the sums of ExactSquares
};

/// The collective call or message of an action.
struct ActionCall {
  RankSet ranks = RankSet::batch;
  Operation operation = Operation::all_reduce;
  Payload payload = Payload::scalar;
  DType type = DType::float64;
  std::string_view what{};  ///< purpose, such as "gradients"

  friend bool operator==(const ActionCall&, const ActionCall&) = default;
};

/// The properties of an operation that hold for every action with it.
struct StepOperationRow {
  std::string_view name;
  ActionSubject subject = ActionSubject::step;
  bool of_microbatch = false;  ///< printed with its microbatch
  /// Returns the call of an operation on buckets, units or the step. The pass and the schedule
  /// choose the calls on tensors.
  std::optional<ActionCall> (*call)(const PlanInput& input) = nullptr;
  /// Returns true if the steps of a plan end with this operation, after all reductions of gradients
  /// and in the order of the enumerators. nullptr: the pass or the schedule places the operation.
  bool (*ends_step)(const PlanInput& input) = nullptr;
};

/// In the order of the enumerators.
inline constexpr std::array<StepOperationRow, 17> step_operation_rows{{
    {.name = "gather",
     .subject = ActionSubject::bucket,
     .call = [](const PlanInput& input) -> std::optional<ActionCall> {
       return ActionCall{RankSet::shard, Operation::all_gather, Payload::bucket, input.compute_type,
                         "parameters"};
     }},
    {.name = "redistribute", .subject = ActionSubject::tensor, .of_microbatch = true},
    {.name = "accumulate", .subject = ActionSubject::tensor, .of_microbatch = true},
    {.name = "count_targets",
     .call = [](const PlanInput&) -> std::optional<ActionCall> {
       return ActionCall{.ranks = RankSet::batch, .what = "counting targets"};
     }},
    {.name = "forward", .subject = ActionSubject::layer, .of_microbatch = true},
    {.name = "loss_terms", .of_microbatch = true},
    {.name = "loss", .of_microbatch = true},
    {.name = "backward", .subject = ActionSubject::layer, .of_microbatch = true},
    {.name = "receive", .subject = ActionSubject::tensor, .of_microbatch = true},
    {.name = "send", .subject = ActionSubject::tensor, .of_microbatch = true},
    {.name = "reduce_scatter",
     .subject = ActionSubject::bucket,
     .call = [](const PlanInput& input) -> std::optional<ActionCall> {
       return ActionCall{RankSet::shard, Operation::reduce_scatter, Payload::bucket,
                         input.state_type, "gradients"};
     }},
    {.name = "reduce",
     .subject = ActionSubject::bucket,
     .call = [](const PlanInput& input) -> std::optional<ActionCall> {
       return ActionCall{RankSet::replica, Operation::all_reduce, Payload::own_gradient,
                         input.state_type, "gradients"};
     }},
    {.name = "reduce_rows",
     .subject = ActionSubject::unit,
     .call = [](const PlanInput& input) -> std::optional<ActionCall> {
       return ActionCall{RankSet::model, Operation::all_reduce, Payload::partial_gradients,
                         input.state_type, "gradients of split rows"};
     }},
    {.name = "check_finite",
     .call = [](const PlanInput&) -> std::optional<ActionCall> {
       return ActionCall{.ranks = RankSet::mesh, .what = "finite flag"};
     },
     .ends_step = [](const PlanInput& input) { return input.looks_for_infinities(); }},
    {.name = "find_largest",
     .call = [](const PlanInput&) -> std::optional<ActionCall> {
       return ActionCall{.ranks = RankSet::split, .what = "gradient norm"};
     },
     .ends_step =
         [](const PlanInput& input) { return input.clips_by_norm && input.numerics.reproducible; }},
    {.name = "clip",
     .call = [](const PlanInput& input) -> std::optional<ActionCall> {
       if (!input.clips_by_norm) return std::nullopt;
       return ActionCall{.ranks = RankSet::split,
                         .payload = input.numerics.reproducible ? Payload::limbs : Payload::scalar,
                         .what = "gradient norm"};
     },
     .ends_step =
         [](const PlanInput& input) { return input.clips_by_value || input.clips_by_norm; }},
    {.name = "update", .ends_step = [](const PlanInput&) { return true; }},
}};

constexpr const StepOperationRow& row_of(StepOperation operation) {
  return step_operation_rows[static_cast<std::size_t>(operation)];
}

/// The slots that an action reads and writes. An operand that it does not have is no_slot, also
/// among the inputs.
struct Operands {
  std::vector<SlotId> inputs{};  ///< of a layer, by input; prediction and targets of a loss
  SlotId output = no_slot;       ///< of a layer
  SlotId saved = no_slot;  ///< values that a layer saves for its backward pass, besides its output
  SlotId output_gradient = no_slot;
  std::vector<SlotId> input_gradients{};  ///< of a layer, by input
  /// Terms of the softmax, if the loss reads split columns; unrounded sums of a layer in a ring.
  SlotId terms = no_slot;
  SlotId from = no_slot, to = no_slot;  ///< source and target of a tensor that moves or is added
  SlotId scratch = no_slot;             ///< for messages that a redistribution packs

  friend bool operator==(const Operands&, const Operands&) = default;
};

/// Calls visit(slot) for every operand but no_slot.
template <class Visit>
void for_each_slot(const Operands& operands, const Visit& visit) {
  const auto visit_one = [&](SlotId id) {
    if (id != no_slot) visit(id);
  };
  for (const SlotId id : operands.inputs) visit_one(id);
  for (const SlotId id : operands.input_gradients) visit_one(id);
  for (const SlotId id : {operands.output, operands.saved, operands.output_gradient, operands.terms,
                          operands.from, operands.to, operands.scratch})
    visit_one(id);
}

/// The gradients that a backward pass computes.
enum class Gradients : std::uint8_t { all, of_inputs, of_parameters };

/// One entry of a step's schedule.
struct Action {
  StepOperation operation = StepOperation::forward;
  Phase phase = Phase::whole;
  Size index = 0;  ///< number of the layer, unit or bucket (ActionSubject); 0 for other subjects
  Size microbatch = 0;
  Operands operands{};
  std::optional<ActionCall> call{};
  Gradients gradients = Gradients::all;
  bool adds = false;        ///< adds to the tensors that it writes, instead of overwriting them
  bool recomputes = false;  ///< a forward action that the backward pass repeats (recomputation)
  Size peer = -1;           ///< the other stage of a message; -1 for other operations
  Size part = -1;           ///< number of the part of a layer in a ring; -1: the whole layer
  Size tag = 0;             ///< the tag of a message, the same for a tensor in every microbatch

  bool is(StepOperation other) const { return operation == other; }
  /// Returns true if this action issues a call. A finish only waits for one.
  bool issues_call() const { return call && phase != Phase::finish; }
  /// Returns the tensor of a send or receive, or the target of a redistribution.
  SlotId message() const { return operation == StepOperation::send ? operands.from : operands.to; }

  friend bool operator==(const Action&, const Action&) = default;
};

/// Returns a name such as "forward", "start_reduce" or "backward_inputs".
std::string name_of(const Action& action);

/// The repeated part of a list of actions. The first `before` actions are executed once. Then
/// microbatches 0 to `times` - 1 execute the next `actions` actions, one microbatch after another.
/// Then the rest of the list follows once. So a list has the same length for a million
/// microbatches as for three.
struct Repetition {
  Size actions = 0;  ///< 0 if nothing is repeated
  Size times = 1;
  Size before = 0;
  Size end() const { return before + actions; }
};

/// Calls act(i, microbatch) for all actions in the order of execution. `i` is the position in
/// `list`.
template <class Act>
void for_each_action(const std::vector<Action>& list, const Repetition& repeated, const Act& act) {
  const auto once = [&](Size begin, Size end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      act(i, list[i].microbatch);
  };
  once(0, repeated.before);
  for (Size m = 0; m < repeated.times; ++m)
    for (Size i = repeated.before; i < repeated.end(); ++i) act(static_cast<std::size_t>(i), m);
  once(repeated.end(), static_cast<Size>(list.size()));
}

/// Returns the same action on another microbatch.
inline Action on_microbatch(Action action, Size microbatch) {
  action.microbatch = microbatch;
  return action;
}

}  // namespace tessera
