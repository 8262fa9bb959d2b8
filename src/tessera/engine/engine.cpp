// SPDX-License-Identifier: Apache-2.0
// The step: its actions on gradients. The operands of layers are in engine_operands.cpp, losses in
// engine_loss.cpp, and what moves between ranks in engine_calls.cpp.

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/products/convert.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {
namespace {

/// The elements of an arena that the optimizer updates: one run where the own parameters and
/// gradients lie together, else a run for each bucket.
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

/// What layers use of the parameters: them, or new memory.
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
      stage_(&plan_.stage(mesh.rank())),
      layers_(plan.local_layers(mesh.rank())),
      state_(plan.state(mesh.rank())),
      options_(options),
      sums_plan_(plan_sums(plan_.input, *stage_)),
      communicators_(plan.input, mesh),
      parameters_(StateArena<State>::parameters(state_)),
      used_(used_parameters<Compute>(state_, parameters_)),
      gradients_(StateArena<State>::gradients(state_)),
      incoming_(allocate_vector<State>("tessera::incoming_gradients", state_.incoming)),
      arriving_(allocate_vector<State>("tessera::arriving_gradients", state_.arriving)),
      frame_(plan_, mesh.rank()),
      views_(layers_.size()),
      padding_(state_.buckets.size()),
      optimizer_(options.optimizer, state_.moments()),
      runs_(runs_of(state_, parameters_, gradients_)),
      unique_(plan.unique_gradients(mesh.rank())),
      gemm_(plan.input.precision, matmul_scratch(plan, mesh.rank())),
      scratch_(allocate_vector<State>("tessera::layer_scratch", layer_scratch(plan, mesh.rank()))),
      operands_(stage_->actions.size()),
      evaluation_operands_(stage_->evaluation.size()),
      sums_(allocate_zeros<double>("tessera::sums", sums_plan_.total())),
      host_sums_(Kokkos::create_mirror_view(sums_)),
      reductions_(state_.buckets.size()),
      loss_scale_(plan.input.scales_loss()) {
  const ParameterLayout& layout = plan.stage(mesh.rank()).parameters;
  for (const ParameterPlan& parameter : layout.parameters) {
    const Size bucket = parameter.bucket;
    const Size elements = num_elements(plan.block(mesh.rank(), parameter).extent);
    views_[parameter.layer].push_back({bucket, {parameter.place.begin, elements}});
    if (const Size rest = parameter.place.count - elements; rest > 0)
      padding_[bucket].push_back({parameter.place.begin + elements, rest});
  }
  for (const Action& action : stage_->actions)
    if (action.peer >= 0)
      for (Size c = 0; c < stage_->storages[stage_->slots[action.index].storage].copies; ++c)
        messages_.try_emplace({action.index, c});
  if (plan.input.has_stages())
    for (const PassSpan& span : stage_->passes)
      pass_names_.push_back("tessera::pass " + short_name(span.pass, plan.input.pipeline()));
  draw_parameters(plan, mesh.rank(), parameters_, state_.parameters_in_shares());
  if (!state_.has_copies) return;
  draw_parameters(plan, mesh.rank(), used_, state_.sharding.parameters);
  copies_ = runs_of(state_, used_);
}

template <class T>
void Engine<T>::step(const Batch<State>& batch, Size slot, double learning_rate) {
  const Region region("tessera::step");
  gradient_scale_ = static_cast<State>(1 / loss_scale_.value());
  overflows_ = false;
  ++steps_;
  Microbatch<State> part = microbatch_of(batch, 0);
  std::size_t pass = 0;
  std::optional<Region> of_pass;
  for_each_action(stage_->actions, stage_->repeated, [&](std::size_t number, Size microbatch) {
    if (pass < pass_names_.size()) {
      const Range span = stage_->passes[pass].actions;
      if (static_cast<Size>(number) == span.end()) of_pass.reset(), ++pass;
      if (pass < pass_names_.size() &&
          static_cast<Size>(number) == stage_->passes[pass].actions.begin)
        of_pass.emplace(pass_names_[pass].c_str());
    }
    if (microbatch != part.number) part = microbatch_of(batch, microbatch);
    act(stage_->actions[number], operands_[number], part, slot, learning_rate);
    if (in_flight_ > 0) poll();
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
void Engine<T>::act(const Action& action, Operands& operands, const Microbatch<State>& batch,
                    Size slot, double rate) {
  const Size index = action.index;
  switch (action.kind) {
    case ActionKind::gather:
      return gather(index);
    case ActionKind::start_gather:
      return start_gather(index);
    case ActionKind::finish_gather:
      return finish(gather_in_flight_);
    case ActionKind::redistribute:
      return redistribute(action, batch);
    case ActionKind::accumulate:
      return accumulate_slots(action, batch);
    case ActionKind::forward: {
      const Region region("tessera::forward");
      const LayerCall<Compute>& call = operands_of(action, operands, batch, slot);
      MemoryGuard guard;
      close_arenas(guard);
      for_each_operand(call, [&](const auto& view) { guard.open(view); });
      return forward(call);
    }
    case ActionKind::loss_terms:
      return loss_terms(action, batch);
    case ActionKind::loss:
      return loss(action, batch, slot, true);
    case ActionKind::backward:
    case ActionKind::backward_inputs:
    case ActionKind::backward_weights: {
      const Region region("tessera::backward");
      const LayerCall<Compute>& call = operands_of(action, operands, batch, slot);
      MemoryGuard guard;
      close_arenas(guard);
      for_each_operand(call, [&](const auto& view) { guard.open(view); });
      return backward(call);
    }
    case ActionKind::start_receive:
    case ActionKind::start_send:
      return start_message(action, batch);
    case ActionKind::finish_receive:
    case ActionKind::finish_send:
      return finish(message_of(action, batch));
    case ActionKind::reduce_scatter:
      return reduce_scatter(index, batch.number);
    case ActionKind::start_reduce_scatter:
      return start_reduce_scatter(index, batch.number);
    case ActionKind::finish_reduce_scatter:
      return finish_reduce_scatter(index, batch.number);
    case ActionKind::reduce:
      return communicators_[RankSet::replica].all_reduce(gradients_.range(state_.gradient(index)));
    case ActionKind::start_reduce:
      return start_reduce(index);
    case ActionKind::finish_reduce:
      return finish(reductions_[index]);
    case ActionKind::reduce_rows:
      return reduce_rows(index);
    case ActionKind::check_finite:
      return check_finite();
    case ActionKind::clip:
      return clip();
    case ActionKind::update:
      return update(static_cast<State>(rate));
  }
}

template <class T>
void Engine<T>::check_finite() {
  const Region region("tessera::check_finite");
  const Size slot = sums_plan_.first_finite();
  Kokkos::deep_copy(ExecSpace(), Kokkos::subview(sums_, slot), 0.0);
  for (const ParameterRun<State>& run : runs_) find_not_finite<State>(run.grads, sums_, slot);
  overflows_ = sum_over(communicators_[RankSet::mesh], slot, ReduceOp::max) > 0;
  if (overflows_ && !loss_scale_.can_shrink())
    throw Error(ExitCode::wrong_result, "training diverged: the gradient of step {} is not finite",
                steps_);
}

/// Each element of the gradient counts once over all ranks, in double.
template <class T>
void Engine<T>::clip() {
  const Region region("tessera::clip");
  const double scale = loss_scale_.value();
  if (options_.clip.value)
    clip_by_value<State>(gradients_.flat(), static_cast<State>(*options_.clip.value * scale));
  if (!options_.clip.global_norm) return;
  const Size first = sums_plan_.first_norm();
  Size slot = first;
  for (const Range& range : unique_) sum_of_squares<State>(gradients_.range(range), sums_, slot++);
  if (unique_.empty()) sum_of_squares<State>(Vector<State>(), sums_, slot++);
  if (slot > first + 1) add_up(sums_, first, slot - first);
  const double squared_norm = sum_over(communicators_[RankSet::split], first, ReduceOp::sum);
  gradient_scale_ =
      static_cast<State>(clip_scale(options_.clip, squared_norm / (scale * scale)) / scale);
}

/// A step whose gradients overflow leaves parameters, moments and their count as they are.
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
double Engine<T>::sum_over(const Communicator& ranks, Size slot, ReduceOp op) {
  ranks.all_reduce(alias_vector(sums_.data() + slot, 1), op);
  double value = 0;
  Kokkos::deep_copy(value, Kokkos::subview(sums_, slot));
  return value;
}

template <class T>
void Engine<T>::resume(Size steps, const LossScaleState& loss_scale,
                       const std::vector<double>& losses_so_far) {
  steps_ = steps;
  optimizer_.set_steps(steps - loss_scale.skipped_steps);
  loss_scale_.set_state(loss_scale);
  // A sum that one rank has, and the others zero, comes out of losses() as it went in.
  if (communicators_[RankSet::loss].rank() == 0) {
    const Size of_step = loss_sums(plan_.input, 1);
    Kokkos::deep_copy(host_sums_, sums_);
    for (std::size_t s = 0; s < losses_so_far.size(); ++s)
      host_sums_(static_cast<Size>(s) * of_step) = losses_so_far[s];
    Kokkos::deep_copy(sums_, host_sums_);
  }
  renew_copies();
  if (state_.has_copies && state_.sharding.moments && !state_.sharding.parameters)
    for (Size b = 0; b < static_cast<Size>(state_.buckets.size()); ++b) gather(b);
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
