// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a step: one struct per operation. Engine, traffic, memory, prediction and
// printing visit the actions with match(), so an operation that one of them forgets does not
// compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/base/match.hpp>
#include <tessera/comm/operation.hpp>
#include <tessera/plan/layout/slot.hpp>

namespace tessera {

/// The phase of a call. A whole call is complete when its action is. A started one runs during the
/// next actions, until an action with the phase `finish` waits for it.
enum class Phase : std::uint8_t { whole, start, finish };

/// The gradients that a backward pass computes.
enum class Gradients : std::uint8_t { all, of_inputs, of_parameters };

// ---- Kernels. An operand that a layer does not have is no_slot, also among the inputs.

/// The fields that the forward and the backward pass of a layer share.
struct Compute {
  Size layer = 0;                ///< position in ModelSpec::layers
  std::vector<SlotId> inputs{};  ///< by input
  SlotId output = no_slot;       ///< written forward; backward, no_slot unless it is read
  SlotId saved = no_slot;        ///< values for the backward pass, besides the output
  SlotId ring_sums = no_slot;    ///< unrounded sums of a layer in a ring
  /// Part of a layer in a ring; -1: the whole layer. Attention has parts of keys and values of
  /// ranks of `context`, a product has pieces of rows of ranks of `model`.
  Size ring_part = -1;
  bool operator==(const Compute&) const = default;
};

/// Computes a layer.
struct Forward : Compute {
  static constexpr std::string_view name = "forward";
  bool recomputes = false;  ///< repeated for the backward pass (recomputation)
  bool operator==(const Forward&) const = default;
};

/// Computes the gradients of a layer's parameters and inputs.
struct Backward : Compute {
  static constexpr std::string_view name = "backward";
  SlotId output_gradient = no_slot;
  std::vector<SlotId> input_gradients{};  ///< by input
  Gradients gradients = Gradients::all;
  bool adds = false;  ///< adds to the gradients of inputs instead of overwriting them
  bool operator==(const Backward&) const = default;
};

/// Computes the rank's terms of a softmax with split columns, or of split norms.
struct PartialLoss {
  static constexpr std::string_view name = "loss_terms";
  SlotId prediction = no_slot;
  SlotId terms = no_slot;
  bool operator==(const PartialLoss&) const = default;
};

/// Computes the local loss sum and the gradient of the prediction.
struct Loss {
  static constexpr std::string_view name = "loss";
  SlotId prediction = no_slot;
  SlotId terms = no_slot;  ///< of PartialLoss, from all ranks; no_slot: the loss needs none
  SlotId gradient = no_slot;
  bool operator==(const Loss&) const = default;
};

/// Adds one tensor to another, copies it or converts its type.
struct Accumulate {
  static constexpr std::string_view name = "accumulate";
  SlotId from = no_slot, to = no_slot;
  bool adds = false;  ///< false: overwrites `to`
  bool operator==(const Accumulate&) const = default;
};

// ---- Moves and messages.

/// Changes the placement of a tensor along an axis.
struct Move {
  static constexpr std::string_view name = "redistribute";
  SlotId from = no_slot, to = no_slot;
  SlotId scratch = no_slot;              ///< for packed messages
  std::size_t axis = 0;                  ///< of the mesh
  std::optional<Operation> operation{};  ///< none if the move is local
  bool operator==(const Move&) const = default;
};

/// Sends a tensor to, or receives it from, another pipeline stage or a neighbour in a ring.
struct Message {
  bool sends = false;  ///< false: receives
  SlotId tensor = no_slot;
  AxisSet ranks{};  ///< the axis along which it goes
  Size peer = -1;   ///< the other stage; -1: the next or the previous rank of the ring
  Size tag = 0;     ///< the same for a tensor in every microbatch
  Phase phase = Phase::start;
  bool operator==(const Message&) const = default;
};

/// A call on the parameters or the gradient of a bucket.
struct BucketMove {
  Size bucket = 0;  ///< position in ParameterLayout::buckets
  AxisSet ranks{};  ///< the axes along which the ranks of the call differ
  Phase phase = Phase::whole;
  bool operator==(const BucketMove&) const = default;
};

/// All-gathers a bucket's parameters from the shares, or a share of them from the parts that ranks
/// update (BucketPlan::moves_share()).
struct Gather : BucketMove {
  static constexpr std::string_view name = "gather";
  bool operator==(const Gather&) const = default;
};

/// Sums a bucket's gradient, or shares of it; each rank keeps its share, or what it updates.
struct ReduceScatter : BucketMove {
  static constexpr std::string_view name = "reduce_scatter";
  bool operator==(const ReduceScatter&) const = default;
};

/// All-reduces the gradient of what a rank updates of a bucket over the replicas.
struct Reduce : BucketMove {
  static constexpr std::string_view name = "reduce";
  bool operator==(const Reduce&) const = default;
};

/// A part of muon's update of the matrices of a bucket: `start` renews their momentum and makes
/// directions of it, `whole` orthogonalizes whole matrices of these, and `finish` moves parameters.
struct Orthogonalize : BucketMove {
  static constexpr std::string_view name = "orthogonalize";
  bool operator==(const Orthogonalize&) const = default;
};

/// Gathers the directions of a bucket over the ranks of its shares or over `model`, or moves them
/// to the owners of matrices and back.
struct MoveDirections : BucketMove {
  static constexpr std::string_view name = "move_directions";
  Operation operation = Operation::all_gather;
  bool back = false;
  bool operator==(const MoveDirections&) const = default;
};

/// All-reduces UnitPlan::partial_gradients over `model`: with sequence parallelism, norms and
/// biases see only the rank's own rows.
struct ReduceRows {
  static constexpr std::string_view name = "reduce_rows";
  Size unit = 0;    ///< position in ParameterLayout::units
  AxisSet ranks{};  ///< `model`, or `context` for the gradients of one layer
  Size layer = -1;  ///< PlanInput::sums_positions_first(): number in the model; -1: all of the unit
  bool operator==(const ReduceRows&) const = default;
};

/// All-reduces the gradient of a tied unit between the first and the last stage, which both have
/// it. Stages between them issue no call.
struct ReduceTied {
  static constexpr std::string_view name = "reduce_tied";
  Size bucket = -1;  ///< of the unit; -1: the stage does not have it
  AxisSet ranks{};   ///< `pipeline`
  bool operator==(const ReduceTied&) const = default;
};

// ---- Scalars and the update.

/// Reduces a few numbers of the whole step.
struct Scalars {
  AxisSet ranks{};  ///< the axes along which the ranks of the call differ
  bool operator==(const Scalars&) const = default;
};

/// Counts the targets of the batch that ModelSpec::ignore_index lets count.
struct CountTargets : Scalars {
  static constexpr std::string_view name = "count_targets";
  bool operator==(const CountTargets&) const = default;
};

/// Checks on all ranks that the whole gradient is finite.
struct CheckFinite : Scalars {
  static constexpr std::string_view name = "check_finite";
  bool operator==(const CheckFinite&) const = default;
};

/// Finds the largest magnitude of the gradient, for a norm without rounding.
struct FindLargest : Scalars {
  static constexpr std::string_view name = "find_largest";
  bool operator==(const FindLargest&) const = default;
};

/// Clips gradients by value or by global norm.
struct Clip : Scalars {
  static constexpr std::string_view name = "clip";
  bool operator==(const Clip&) const = default;
};

/// Applies the optimizer to the parameters that this rank owns.
struct Update {
  static constexpr std::string_view name = "update";
  bool operator==(const Update&) const = default;
};

/// One operation of a step. Each makes at most one collective call.
using Action = std::variant<Forward, Backward, PartialLoss, Loss, Accumulate, Move, Message, Gather,
                            ReduceScatter, Reduce, ReduceTied, ReduceRows, CountTargets,
                            CheckFinite, FindLargest, Clip, Orthogonalize, MoveDirections, Update>;

/// An action that the entries of many microbatches share.
class SharedAction {
 public:
  SharedAction(Action action = {}) : action_(std::make_shared<const Action>(std::move(action))) {}
  const Action& operator*() const { return *action_; }
  operator const Action&() const { return *action_; }
  bool operator==(const SharedAction& other) const { return *action_ == *other.action_; }

 private:
  std::shared_ptr<const Action> action_;
};

/// One entry of a step's list.
struct ListedAction {
  SharedAction action{};
  Size microbatch = 0;

  /// Returns the action if it is of this type, else nullptr.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&*action);
  }
  bool operator==(const ListedAction&) const = default;
};

/// Returns what the passes of a layer have in common; nullptr for another action.
inline const Compute* compute_of(const Action& action) {
  if (const auto* forward = std::get_if<Forward>(&action)) return forward;
  return std::get_if<Backward>(&action);
}
inline Compute* compute_of(Action& action) {
  if (auto* forward = std::get_if<Forward>(&action)) return forward;
  return std::get_if<Backward>(&action);
}

/// Calls visit(slot) for every operand but no_slot.
template <class Visit>
void for_each_slot(const Action& action, const Visit& visit) {
  const auto each = [&](const auto&... ids) { ((ids == no_slot ? void() : visit(ids)), ...); };
  const auto operands = [&](const Compute& of) {
    for (const SlotId& id : of.inputs) each(id);
    each(of.output, of.saved, of.ring_sums);
  };
  match(
      action, [&](const Forward& a) { operands(a); },
      [&](const Backward& a) {
        operands(a);
        for (const SlotId& id : a.input_gradients) each(id);
        each(a.output_gradient);
      },
      [&](const PartialLoss& a) { each(a.prediction, a.terms); },
      [&](const Loss& a) { each(a.prediction, a.terms, a.gradient); },
      [&](const Accumulate& a) { each(a.from, a.to); },
      [&](const Move& a) { each(a.from, a.to, a.scratch); },
      [&](const Message& a) { each(a.tensor); }, [](const BucketMove&) {}, [](const ReduceTied&) {},
      [](const ReduceRows&) {}, [](const Scalars&) {}, [](const Update&) {});
}

/// Replaces every operand but no_slot by rename(slot).
template <class Rename>
void rename_slots(Action& action, const Rename& rename) {
  for_each_slot(action, [&](const SlotId& id) { const_cast<SlotId&>(id) = rename(id); });
}

/// The repeated part of a list of actions. The first `before` actions are executed once. Then the
/// next `actions` actions are executed `times` times, each time on microbatches whose numbers are
/// larger by `period`. Then the rest of the list, with its own numbers, follows once. So a list has
/// the same length for a million microbatches as for a few.
struct Repetition {
  Size actions = 0;  ///< 0 if nothing is repeated
  Size times = 1;
  Size before = 0;
  Size period = 1;  ///< microbatches
  Size end() const { return before + actions; }
  bool holds(Size i) const { return before <= i && i < end(); }
  /// Returns the microbatches that are not listed.
  Size left_out() const { return (times - 1) * period; }
  /// Returns the number of the microbatch of the entry at position `i` among the listed ones.
  Size listed(Size i, Size microbatch) const {
    return i < end() ? microbatch : microbatch - left_out();
  }
};

/// Calls act(i, microbatch) for all actions in the order of execution. `i` is the position in
/// `list`.
template <class Act>
void for_each_action(const std::vector<ListedAction>& list, const Repetition& repeated,
                     const Act& act) {
  const auto once = [&](Size begin, Size end, Size later) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      act(i, list[i].microbatch + later);
  };
  once(0, repeated.before, 0);
  for (Size time = 0; time < repeated.times; ++time)
    once(repeated.before, repeated.end(), time * repeated.period);
  once(repeated.end(), static_cast<Size>(list.size()), 0);
}

}  // namespace tessera
