// SPDX-License-Identifier: Apache-2.0
// The step and the dispatch of its actions. Actions on tensors between layers are in
// engine_tensors.cpp.
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/products/convert.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {
namespace {

/// Returns the elements of an arena that the optimizer updates: one run if the rank's parameters
/// and gradients are contiguous, else a run per bucket.
template <class T>
std::vector<Vector<T>> runs_of(const StatePlan& state, const StateArena<T>& arena) {
  const Sharding& sharding = state.sharding;
  if (sharding.parameters || !sharding.moments) return {arena.flat()};
  std::vector<Vector<T>> runs;
  for (Size b = 0; b < static_cast<Size>(state.buckets.size()); ++b) runs.push_back(arena.share(b));
  return runs;
}

template <class T>
std::vector<ParameterRun<T>> runs_of(const StatePlan& state, const StateArena<T>& parameters,
                                     const StateArena<T>& gradients) {
  std::vector<ParameterRun<T>> runs;
  const std::vector<Vector<T>> of_gradients = runs_of(state, gradients);
  for (const Vector<T>& run : runs_of(state, parameters))
    runs.push_back({run, of_gradients[runs.size()]});
  return runs;
}

/// Returns the parameters that layers read: the same memory, or copies.
template <class T>
StateArena<T> used_parameters(const StatePlan& state, const StateArena<StateOf<T>>& parameters) {
  if constexpr (std::is_same_v<T, StateOf<T>>)
    return parameters;
  else
    return StateArena<T>::copies(state);
}

}  // namespace

template <class T>
Engine<T>::Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options)
    : plan_(plan),
      stage_(plan_.stage(mesh.rank())),
      state_(plan.state(mesh.rank())),
      options_(options),
      communicators_(plan.input, mesh),
      parameters_(StateArena<State>::parameters(state_)),
      used_(used_parameters<Compute>(state_, parameters_)),
      gradients_(StateArena<State>::gradients(state_)),
      frame_(plan_, mesh.rank()),
      operands_(plan_, mesh.rank(), frame_, used_, gradients_),
      buckets_(plan_, mesh.rank(), communicators_, used_, gradients_),
      messages_(stage_),
      sums_(plan_.input, stage_, communicators_),
      optimizer_(options.optimizer, state_.moments()),
      runs_(runs_of(state_, parameters_, gradients_)),
      unique_(plan.unique_gradients(mesh.rank())),
      step_calls_(stage_.actions.size()),
      evaluation_calls_(stage_.evaluation.size()),
      loss_scale_(plan.input.scales_loss()) {
  if (plan.input.has_stages())
    for (const PassSpan& span : stage_.passes)
      pass_names_.push_back("tessera::pass " + short_name(span.pass, plan.input.pipeline()));
  draw_parameters(plan, mesh.rank(), parameters_, state_.parameters_in_shares());
  if (!state_.has_copies) return;
  draw_parameters(plan, mesh.rank(), used_, state_.sharding.parameters);
  copies_ = runs_of(state_, used_);
}

template <class T>
void Engine<T>::step(const Batch<State>& batch, Size number, double learning_rate) {
  const Region region("tessera::step");
  gradient_scale_ = static_cast<State>(1 / loss_scale_.value());
  overflows_ = false;
  ++steps_;
  Now now{microbatch_of(batch, 0), number, learning_rate};
  std::size_t pass = 0;
  std::optional<Region> of_pass;
  for_each_action(stage_.actions, stage_.repeated, [&](std::size_t i, Size microbatch) {
    if (pass < pass_names_.size()) {
      if (static_cast<Size>(i) == stage_.passes[pass].actions.end()) of_pass.reset(), ++pass;
      if (pass < pass_names_.size() && static_cast<Size>(i) == stage_.passes[pass].actions.begin)
        of_pass.emplace(pass_names_[pass].c_str());
    }
    if (microbatch != now.batch.number) now.batch = microbatch_of(batch, microbatch);
    act(stage_.actions[i], step_calls_[i], now);
    // MPI makes progress on non-blocking calls only inside MPI calls.
    if (buckets_.in_flight() > 0) buckets_.poll();
    if (messages_.in_flight() > 0) messages_.poll();
  });
}

template <class T>
void Engine<T>::evaluate(const Batch<State>& batch, Size number, const TakePrediction& take) {
  const Region region("tessera::evaluate");
  Now now{.number = number};
  for_each_action(stage_.evaluation, stage_.evaluation_repeated,
                  [&](std::size_t i, Size microbatch) {
                    const Action& action = stage_.evaluation[i];
                    now.batch = microbatch_of(batch, microbatch);
                    if (!action.is(StepOperation::loss))
                      return act(action, evaluation_calls_[i], now);
                    loss(action, now, false);
                    if (sums_.places().errors > 0 && number >= plan_.steps_per_epoch())
                      add_error(action, now.batch);
                    if (take) take(now.batch, frame_.read(action.operands.inputs[0], now.batch));
                  });
}

template <class T>
auto Engine<T>::microbatch_of(const Batch<State>& batch, Size number) const -> Microbatch<State> {
  const Range part = balanced_split(batch.samples, plan_.input.microbatches, number);
  const auto rows = [&](Size positions) {
    return Range{part.begin * positions, part.count * positions};
  };
  const ModelSpec& model = plan_.input.model;
  return {rows_of(batch.x, rows(model.input_positions)),
          rows_of(batch.y, rows(model.output_positions())),
          part.count,
          batch.first + part.begin,
          batch.global_samples,
          number,
          batch.from_prior};
}

template <class T>
void Engine<T>::act(const Action& action, std::optional<LayerCall<Compute>>& call, const Now& now) {
  switch (action.operation) {
    case StepOperation::gather:
      return buckets_.gather(action);
    case StepOperation::redistribute:
      return redistribute(action, now.batch);
    case StepOperation::accumulate:
      return accumulate_tensors(action, now.batch);
    case StepOperation::forward:
    case StepOperation::backward:
      return layer(action, call, now);
    case StepOperation::loss_terms:
      return loss_terms(action, now.batch);
    case StepOperation::loss:
      return loss(action, now, true);
    case StepOperation::receive:
    case StepOperation::send:
      return message(action, now.batch);
    case StepOperation::reduce_scatter:
      return buckets_.reduce_scatter(action, now.batch.number);
    case StepOperation::reduce:
      return buckets_.reduce(action);
    case StepOperation::reduce_rows:
      return buckets_.reduce_rows(action);
    case StepOperation::check_finite:
      return check_finite(action);
    case StepOperation::clip:
      return clip(action);
    case StepOperation::update:
      return update(static_cast<State>(now.learning_rate));
  }
}

template <class T>
void Engine<T>::layer(const Action& action, std::optional<LayerCall<Compute>>& made,
                      const Now& now) const {
  const bool is_forward = action.is(StepOperation::forward);
  const Region region(is_forward ? "tessera::forward" : "tessera::backward");
  LayerCall<Compute>& call = operands_.of(action, made, now.batch);
  if (row_of(call.layer).reads_batch) call.batch = facts_of(action, now);
  MemoryGuard guard;
  close_arenas(guard);
  for_each_operand(call, [&](const auto& view) { guard.open(view); });
  is_forward ? forward(call) : backward(call);
}

template <class T>
auto Engine<T>::facts_of(const Action& action, const Now& now) const -> BatchFacts<State> {
  BatchFacts<State> facts{now.batch.x, now.batch.first, steps_};
  facts.from_prior = now.batch.from_prior;
  if (action.is(StepOperation::forward) && !action.again &&
      row_of(operands_.layer(action.index)).adds_loss)
    facts.loss = sums_.all().data() + sums_.at(now.number, now.batch.number) + 1;
  facts.gradient_scale =
      static_cast<State>(loss_scale_.value()) / static_cast<State>(loss_divisor(now.batch));
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
void Engine<T>::check_finite(const Action& action) {
  const Region region("tessera::check_finite");
  const Size flag = sums_.places().first_finite();
  Kokkos::deep_copy(ExecSpace(), Kokkos::subview(sums_.all(), flag), 0.0);
  for (const ParameterRun<State>& run : runs_) find_not_finite<State>(run.grads, sums_.all(), flag);
  overflows_ = sums_.reduce(communicators_[action.call->ranks], flag, ReduceOp::max) > 0;
  if (overflows_ && !loss_scale_.can_shrink())
    throw Error(ExitCode::wrong_result, "training diverged: the gradient of step {} is not finite",
                steps_);
}

/// Clips gradients. Each element counts once in the norm over all ranks, which is summed in double.
template <class T>
void Engine<T>::clip(const Action& action) {
  const Region region("tessera::clip");
  const double scale = loss_scale_.value();
  if (options_.clip.value)
    clip_by_value<State>(gradients_.flat(), static_cast<State>(*options_.clip.value * scale));
  if (!options_.clip.global_norm) return;
  const Size first = sums_.places().first_norm();
  Size next = first;
  for (const Range& range : unique_)
    sum_of_squares<State>(gradients_.range(range), sums_.all(), next++);
  if (unique_.empty()) sum_of_squares<State>(Vector<State>(), sums_.all(), next++);
  if (next > first + 1) add_up(sums_.all(), first, next - first);
  const double squared_norm =
      sums_.reduce(communicators_[action.call->ranks], first, ReduceOp::sum);
  gradient_scale_ =
      static_cast<State>(clip_scale(options_.clip, squared_norm / (scale * scale)) / scale);
}

/// Applies the optimizer. A step whose gradients overflow leaves parameters, moments and their
/// count unchanged.
template <class T>
void Engine<T>::update(State rate) {
  if (!overflows_) {
    optimizer_.step(runs_, rate, gradient_scale_);
    renew_copies();
  }
  loss_scale_.step(overflows_);
}

template <class T>
void Engine<T>::renew_copies() {
  if constexpr (!std::is_same_v<State, Compute>)
    for (std::size_t r = 0; r < runs_.size(); ++r)
      convert<State, Compute>(runs_[r].params, copies_[r]);
}

template <class T>
Size Engine<T>::change_samples(Size samples, Size validation_samples) {
  plan_.input.samples = samples;
  plan_.input.validation_samples = validation_samples;
  return sums_.resize(stage_);
}

template <class T>
void Engine<T>::resume(Size steps, const LossScaleState& loss_scale,
                       const std::vector<double>& losses_so_far) {
  steps_ = steps;
  optimizer_.set_steps(steps - loss_scale.skipped_steps);
  loss_scale_.set_state(loss_scale);
  sums_.set_losses(losses_so_far);
  renew_copies();
  if (!state_.has_copies) return;
  // Copies of sharded parameters are gathered as after an update, at the end of a step.
  auto action = std::find_if(stage_.actions.begin(), stage_.actions.end(),
                             [](const Action& a) { return a.is(StepOperation::update); });
  for (++action; action != stage_.actions.end(); ++action) buckets_.gather(*action);
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
