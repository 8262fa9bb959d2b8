// SPDX-License-Identifier: Apache-2.0
// The step and the dispatch of its actions. Actions on tensors between layers are in
// engine_tensors.cpp.
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

/// Returns the parameters that layers read: the same memory, or copies.
template <class T>
StateArena<T> used_parameters(const StatePlan& state, const StateArena<StateOf<T>>& parameters) {
  if constexpr (std::is_same_v<T, StateOf<T>>)
    return parameters;
  else
    return StateArena<T>::copies(state);
}

/// Returns the plan. Throws Error (usage) if it is for another device.
const Plan& executable(const Plan& plan) {
  if (plan.input.device != this_device)
    throw Error(ExitCode::usage, "a plan for a {} cannot be executed on a {}",
                name_of(plan.input.device), name_of(this_device));
  return plan;
}

/// Keeps the profiling region of the current pipeline pass open.
class PassRegions {
 public:
  /// `names` are the names of the regions; none without a pipeline.
  PassRegions(const std::vector<PassSpan>& passes, const std::vector<std::string>& names)
      : passes_(passes), names_(names) {}

  /// Closes and opens regions before an action of the step.
  void before(Size action) {
    if (pass_ < names_.size() && action == passes_[pass_].actions.end()) region_.reset(), ++pass_;
    if (pass_ < names_.size() && action == passes_[pass_].actions.begin)
      region_.emplace(names_[pass_].c_str());
  }

 private:
  const std::vector<PassSpan>& passes_;
  const std::vector<std::string>& names_;
  std::size_t pass_ = 0;
  std::optional<Region> region_;
};

}  // namespace

template <class T>
Engine<T>::Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options)
    : plan_(executable(plan)),
      rank_(mesh.rank()),
      stage_(plan_.stage(mesh.rank())),
      state_(plan.state(mesh.rank())),
      along_(plan.along(mesh.rank())),
      options_(options),
      communicators_(plan.input, mesh),
      parameters_(StateArena<State>::parameters(state_)),
      used_(used_parameters<Compute>(state_, parameters_)),
      gradients_(StateArena<State>::gradients(state_)),
      gradient_tree_(state_, gradients_),
      frame_(plan_, mesh.rank()),
      operands_(plan_, mesh.rank(), frame_, used_, gradient_tree_),
      row_blocks_(plan_, mesh.rank()),
      buckets_(plan_, mesh.rank(), communicators_, used_, gradients_, gradient_tree_),
      messages_(stage_),
      sums_(plan_.input, stage_, communicators_),
      optimizer_step_(plan_, mesh.rank(), state_, options.optimizer, options.clip, communicators_,
                      sums_, parameters_, used_, gradients_),
      step_calls_(stage_.actions.size()),
      evaluation_calls_(stage_.evaluation.size()),
      first_loss_sum_(first_loss_sum(plan.input, mesh.rank())) {
  if (plan.input.has_stages())
    for (const PassSpan& span : stage_.passes)
      pass_names_.push_back("tessera::pass " + short_name(span.pass, plan.input.pipeline()));
  for (const LayerSpec& layer : operands_.layers())
    layer_names_.push_back({"tessera::forward " + layer.name, "tessera::backward " + layer.name});
  draw_parameters(plan, mesh.rank(), parameters_, state_.parameters_in_shares());
  if (state_.has_copies) draw_parameters(plan, mesh.rank(), used_, state_.sharding.parameters);
}

template <class T>
void Engine<T>::step(const Batch<State>& batch, Size number, double learning_rate) {
  const Region region("tessera::step");
  optimizer_step_.begin();
  Now now{microbatch_of(batch, 0), number, learning_rate, batch.y};
  PassRegions regions(stage_.passes, pass_names_);
  for_each_action(stage_.actions, stage_.repeated, [&](std::size_t i, Size microbatch) {
    regions.before(static_cast<Size>(i));
    if (microbatch != now.microbatch.number) now.microbatch = microbatch_of(batch, microbatch);
    mark_event(tensor_event, [&] { return subject_of(stage_.actions[i], plan_, stage_); });
    act(stage_.actions[i], step_calls_[i], now);
    // MPI makes progress on non-blocking calls only inside MPI calls.
    mark_event(tensor_event, [] { return ""; });
    if (buckets_.in_flight() > 0) buckets_.poll();
    if (messages_.in_flight() > 0) messages_.poll();
  });
}

template <class T>
void Engine<T>::evaluate(const Batch<State>& batch, Size number, const TakePrediction& take) {
  const Region region("tessera::evaluate");
  Now now{.batch_number = number};
  for_each_action(stage_.evaluation, stage_.evaluation_repeated,
                  [&](std::size_t i, Size microbatch) {
                    const Action& action = stage_.evaluation[i];
                    now.microbatch = microbatch_of(batch, microbatch);
                    if (!action.is(StepOperation::loss))
                      return act(action, evaluation_calls_[i], now);
                    loss(action, now, false);
                    if (sums_.places().counts > 0) count_evaluated_targets(now.microbatch);
                    if (sums_.places().errors > 0 && number >= plan_.steps_per_epoch())
                      add_error(action, now.microbatch);
                    if (take)
                      take(now.microbatch, frame_.read(action.operands.inputs[0], now.microbatch));
                  });
}

template <class T>
auto Engine<T>::microbatch_of(const Batch<State>& batch, Size number) const -> Microbatch<State> {
  const Range part = balanced_split(batch.samples, plan_.input.microbatches, number);
  const auto rows = [&](Size positions) {
    return Range{part.begin * positions, part.count * positions};
  };
  const Size group = along_.expert_ranks > 1
                         ? group_samples(plan_.input, batch.global_samples, rank_, number)
                         : part.count;
  return {rows_of(batch.x, rows(operands_.layers().front().in_positions)),
          rows_of(batch.y, rows(operands_.layers().back().positions)),
          part.count,
          batch.first + part.begin,
          group,
          batch.global_samples,
          number,
          batch.from_prior};
}

template <class T>
void Engine<T>::act(const Action& action, std::optional<LayerCall<Compute>>& call, const Now& now) {
  switch (action.operation) {
    case StepOperation::gather:
      return buckets_.gather(action);
    case StepOperation::count_targets:
      return count_targets(action, now);
    case StepOperation::redistribute:
      return redistribute(action, now.microbatch);
    case StepOperation::accumulate:
      return accumulate_tensors(action, now.microbatch);
    case StepOperation::forward:
    case StepOperation::backward:
      return layer(action, call, now);
    case StepOperation::loss_terms:
      return loss_terms(action, now.microbatch);
    case StepOperation::loss:
      return loss(action, now, true);
    case StepOperation::receive:
    case StepOperation::send:
      return message(action, now.microbatch);
    case StepOperation::reduce_scatter:
      return buckets_.reduce_scatter(action, now.microbatch.number);
    case StepOperation::reduce:
      return buckets_.reduce(action);
    case StepOperation::reduce_rows:
      return buckets_.reduce_rows(action, now.microbatch.number);
    default:
      return optimizer_step_.act(action, now.learning_rate);
  }
}

template <class T>
void Engine<T>::layer(const Action& action, std::optional<LayerCall<Compute>>& made,
                      const Now& now) const {
  const bool is_forward = action.is(StepOperation::forward);
  const LayerNames& names = layer_names_[action.index];
  const Region region((is_forward ? names.forward : names.backward).c_str());
  LayerCall<Compute>& call = operands_.of(action, made, now.microbatch);
  if (row_of(call.layer).reads_batch) call.batch = facts_of(action, now);
  {
    MemoryGuard guard;
    close_arenas(guard);
    for_each_operand(call, [&](const auto& view) { guard.open(view); });
    is_forward ? tessera::forward(call) : row_blocks_.backward(action.index, call);
  }
  if (!is_forward && action.gradients != Gradients::of_inputs)
    operands_.complete_gradients(action.index, now.microbatch.number);
}

/// Returns the position of the loss sum of the microbatch.
template <class T>
Size Engine<T>::loss_slot(const Now& now) const {
  return sums_.at(now.batch_number, first_loss_sum_ + now.microbatch.number);
}

template <class T>
auto Engine<T>::facts_of(const Action& action, const Now& now) const -> BatchFacts<State> {
  BatchFacts<State> facts{now.microbatch.x, now.microbatch.first, optimizer_step_.steps()};
  facts.from_prior = now.microbatch.from_prior;
  if (action.is(StepOperation::forward) && !action.recomputes) {
    const LayerSums before = sums_of(plan_.input.model, action.index);
    // The first of the ranks of `context` counts what all of them compute.
    const Slot& output = stage_.slots[action.operands.output];
    const bool counts = along_.context == 0 || output.along_context.is_shard();
    if (counts && row_of(operands_.layer(action.index)).adds_loss)
      facts.loss = sums_.all().data() + loss_slot(now) + 1 + before.losses;
    if (counts && now.targets.data() != nullptr)  // not in an evaluation
      facts.routing = sums_.all().data() + sums_.places().first_routing() + before.routing;
  }
  facts.gradient_scale =
      static_cast<State>(loss_scale().value()) / static_cast<State>(loss_divisor(now.microbatch));
  return facts;
}

/// Closes the memory that tensors share; the caller opens its operands. Memory that started calls
/// may write to stays open: the watchdog's thread, too, lets MPI deliver messages. The caller makes
/// no MPI call before the guard ends.
template <class T>
void Engine<T>::close_arenas(MemoryGuard& guard) const {
  guard.close(operands_.scratch());
  if (messages_.in_flight() == 0) guard.close(frame_.memory());
  if (buckets_.in_flight() > 0) return;
  for (const StateArena<State>* arena : {&parameters_, &gradients_})
    guard.close(arena->flat()), guard.close(arena->buffer());
  guard.close(used_.flat()), guard.close(used_.buffer());
}

template <class T>
Size Engine<T>::change_samples(Size samples, Size validation_samples) {
  plan_.input.samples = samples;
  plan_.input.validation_samples = validation_samples;
  return sums_.resize(stage_);
}

template <class T>
void Engine<T>::resume(Size steps, const LossScaleState& loss_scale,
                       const std::vector<LossParts>& first_loss_sums) {
  optimizer_step_.resume(steps, loss_scale);
  sums_.set_first_loss_sums(first_loss_sums);
  // A step gathers sharded copies after the update, so these actions are repeated here.
  if (!state_.has_copies) return;
  auto action = std::find_if(stage_.actions.begin(), stage_.actions.end(),
                             [](const Action& a) { return a.is(StepOperation::update); });
  for (; action != stage_.actions.end(); ++action)
    if (action->is(StepOperation::gather)) buckets_.gather(*action);
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
