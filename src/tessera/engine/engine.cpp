// SPDX-License-Identifier: Apache-2.0
// The step: its actions on layers and on gradients. What moves between ranks is in
// engine_calls.cpp.
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/convert.hpp>
#include <tessera/nn/loss.hpp>
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
      frame_(plan, mesh.rank()),
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
  for (std::size_t number = 0; number < stage_->actions.size(); ++number) {
    if (pass < pass_names_.size()) {
      const Range span = stage_->passes[pass].actions;
      if (static_cast<Size>(number) == span.end()) of_pass.reset(), ++pass;
      if (pass < pass_names_.size() &&
          static_cast<Size>(number) == stage_->passes[pass].actions.begin)
        of_pass.emplace(pass_names_[pass].c_str());
    }
    const Action& action = stage_->actions[number];
    if (action.microbatch != part.number) part = microbatch_of(batch, action.microbatch);
    act(action, operands_[number], part, slot, learning_rate);
    if (in_flight_ > 0) poll();
  }
}

template <class T>
void Engine<T>::evaluate(const Batch<State>& batch, Size slot, const TakePrediction& take) {
  const Region region("tessera::evaluate");
  for (std::size_t number = 0; number < stage_->evaluation.size(); ++number) {
    const Action& action = stage_->evaluation[number];
    const Microbatch<State> part = microbatch_of(batch, action.microbatch);
    if (action.kind != ActionKind::loss) {
      act(action, evaluation_operands_[number], part, slot, 0);
      continue;
    }
    loss(action, part, slot, false);
    if (sums_plan_.errors > 0 && slot >= plan_.steps_per_epoch())
      add_solution_error<Compute>(as_loss_sees(frame_.read(action.reads[0], part), part),
                                  as_loss_sees(part.y, part), sums_, sums_plan_.first_error());
    if (take) take(part, frame_.read(action.reads[0], part));
  }
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
      return forward(operands_of(action, operands, batch, slot));
    }
    case ActionKind::loss_terms:
      return loss_terms(action, batch);
    case ActionKind::loss:
      return loss(action, batch, slot, true);
    case ActionKind::backward:
    case ActionKind::backward_inputs:
    case ActionKind::backward_weights: {
      const Region region("tessera::backward");
      return backward(operands_of(action, operands, batch, slot));
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
const LayerCall<T>& Engine<T>::operands_of(const Action& action, Operands& made,
                                           const Microbatch<State>& batch, Size slot) {
  const bool is_forward = action.kind == ActionKind::forward;
  if (made.samples != batch.samples) {
    made.call.emplace(is_forward ? forward_operands(action, batch)
                                 : backward_operands(action, batch));
    made.samples = batch.samples;
  }
  // The batch is somewhere else in every step.
  if constexpr (std::is_same_v<State, Compute>)
    for (std::size_t i = is_forward ? 0 : 1; i < action.reads.size(); ++i)
      if (action.reads[i] == slot_of_x) made.call->inputs[is_forward ? i : i - 1] = batch.x;
  if (row_of(layers_[action.index]).reads_batch) made.call->batch = facts_of(action, batch, slot);
  return *made.call;
}

template <class T>
auto Engine<T>::facts_of(const Action& action, const Microbatch<State>& batch, Size slot) const
    -> BatchFacts<State> {
  BatchFacts<State> facts{batch.x, batch.first, steps_};
  facts.from_prior = batch.from_prior;
  if (action.kind == ActionKind::forward && !action.again &&
      row_of(layers_[action.index]).adds_loss)
    facts.loss = sums_.data() + loss_slot(batch, slot) + 1;
  facts.gradient_scale =
      static_cast<State>(loss_scale_.value()) / static_cast<State>(loss_divisor(batch));
  return facts;
}

template <class T>
LayerCall<T> Engine<T>::operands_of_layer(Size layer, const Microbatch<State>& batch) const {
  LayerCall<Compute> call{layers_[layer], gemm_, batch.samples};
  call.scratch = scratch_;
  const std::vector<ParameterView>& views = views_[layer];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameters[p] = used_.part(views[p].bucket, views[p].elements);
  return call;
}

/// The batch itself may have another type than layers compute with.
template <class T>
bool Engine<T>::reads_x_as_fact(Size layer, SlotId input) const {
  return input == slot_of_x && row_of(layers_[layer]).reads_batch;
}

template <class T>
LayerCall<T> Engine<T>::forward_operands(const Action& action,
                                         const Microbatch<State>& batch) const {
  LayerCall<Compute> call = operands_of_layer(action.index, batch);
  for (std::size_t i = 0; i < action.reads.size(); ++i)
    if (!reads_x_as_fact(action.index, action.reads[i]))
      call.inputs[i] = frame_.read(action.reads[i], batch);
  if (const SlotId output = action.writes[0]; frame_.holds_sums(output))
    call.output_terms = frame_.sums(output, batch);
  else
    call.output = frame_(output, batch);
  if (action.writes.size() > 1) call.kept = frame_.sums(action.writes[1], batch);
  return call;
}

template <class T>
LayerCall<T> Engine<T>::backward_operands(const Action& action,
                                          const Microbatch<State>& batch) const {
  LayerCall<Compute> call = operands_of_layer(action.index, batch);
  const std::size_t inputs = action.writes.size();
  call.output_gradient = frame_.read(action.reads[0], batch);
  for (std::size_t i = 0; i < inputs; ++i) {
    const SlotId read = action.reads[1 + i];
    if (read != no_slot && !reads_x_as_fact(action.index, read))
      call.inputs[i] = frame_.read(read, batch);
    const SlotId gradient = action.writes[i];
    if (gradient == no_slot) continue;
    if (frame_.holds_sums(gradient))
      call.input_gradient_terms[i] = frame_.sums(gradient, batch);
    else
      call.input_gradients[i] = frame_(gradient, batch);
  }
  if (action.reads[1 + inputs] != no_slot) call.output = frame_(action.reads[1 + inputs], batch);
  if (action.reads[2 + inputs] != no_slot) call.kept = frame_.sums(action.reads[2 + inputs], batch);
  call.add_input_gradients = action.adds;
  const std::vector<ParameterView>& views = views_[action.index];
  for (std::size_t p = 0; p < views.size() && action.kind != ActionKind::backward_inputs; ++p)
    call.parameter_gradients[p] = gradients_.part(views[p].bucket, views[p].elements);
  call.add_parameter_gradients = batch.number > 0 && !state_.reduces_every_microbatch;
  return call;
}

/// A prediction, or targets, in the rows that the loss counts.
template <class T>
template <class E>
Matrix<const E> Engine<T>::as_loss_sees(const Matrix<const E>& all,
                                        const Microbatch<State>& batch) const {
  const LossShape shape =
      loss_shape(plan_.input.loss, batch.samples, plan_.input.model.output_positions(),
                 static_cast<Size>(all.extent(1)));
  return alias_matrix(all.data(), shape.rows, shape.cols);
}

/// What the batch's sum of losses is divided by.
template <class T>
Size Engine<T>::loss_divisor(const Microbatch<State>& batch) const {
  return options_.sum_gradients ? 1 : plan_.input.loss_count(batch.global_samples);
}

template <class T>
Size Engine<T>::loss_slot(const Microbatch<State>& batch, Size slot) const {
  return (slot * plan_.input.microbatches + batch.number) * plan_.input.loss_terms();
}

template <class T>
void Engine<T>::loss_terms(const Action& action, const Microbatch<State>& batch) const {
  cross_entropy_terms<Compute>(frame_.read(action.reads[0], batch), batch.y, layers_.back().first,
                               frame_.sums(action.writes[0], batch));
}

template <class T>
void Engine<T>::loss(const Action& action, const Microbatch<State>& batch, Size slot,
                     bool gradient) {
  const Region region("tessera::loss");
  const auto prediction = as_loss_sees(frame_.read(action.reads[0], batch), batch);
  LossDetails<State> details{loss_scale_.value(), options_.border_weight};
  if (action.reads.size() > 2) {
    details.first_class = layers_.back().first;
    details.classes = plan_.input.model.output_width();
    details.terms = frame_.sums(action.reads[2], batch);
  }
  loss_and_gradient<Compute>(plan_.input.loss, prediction, as_loss_sees(batch.y, batch),
                             loss_divisor(batch), sums_, loss_slot(batch, slot),
                             gradient ? frame_(action.writes[0], batch) : Matrix<Compute>(),
                             details);
}

template <class T>
void Engine<T>::check_finite() {
  const Region region("tessera::check_finite");
  const Size slot = sums_plan_.first_finite();
  Kokkos::deep_copy(ExecSpace(), Kokkos::subview(sums_, slot), 0.0);
  for (const ParameterRun<State>& run : runs_) find_not_finite<State>(run.grads, sums_, slot);
  overflows_ = sum_over(communicators_[RankSet::mesh], slot, ReduceOp::max) > 0;
  if (overflows_ && !loss_scale_.can_shrink())
    throw Error(ExitCode::wrong_result,
                fmt::format("training diverged: the gradient of step {} is not finite", steps_));
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
Size Engine<T>::change_samples(Size samples, Size validation_samples) {
  const Size before = sums_plan_.total();
  plan_.input.samples = samples;
  plan_.input.validation_samples = validation_samples;
  sums_plan_ = plan_sums(plan_.input, *stage_);
  if (sums_plan_.total() == before) return 0;
  sums_ = {};
  sums_ = allocate_zeros<double>("tessera::sums", sums_plan_.total());
  host_sums_ = Kokkos::create_mirror_view(sums_);
  return (sums_plan_.total() - before) * size_of(DType::float64);
}

template <class T>
std::vector<double> Engine<T>::losses(const std::vector<Size>& global_samples, Size first_slot) {
  const std::size_t steps = global_samples.size();
  const Size of_step = loss_sums(plan_.input, 1), first = first_slot * of_step;
  const Vector<double> sums =
      alias_vector(sums_.data() + first, static_cast<Size>(steps) * of_step);
  communicators_[RankSet::loss].all_reduce(sums);
  Kokkos::deep_copy(host_sums_, sums_);
  std::vector<double> losses(steps);
  for (std::size_t s = 0; s < steps; ++s) {
    for (Size i = 0; i < of_step; ++i) losses[s] += host_sums_(first + s * of_step + i);
    losses[s] /= static_cast<double>(plan_.input.loss_count(global_samples[s]));
  }
  // A stage writes only the terms that its layers make.
  Kokkos::deep_copy(ExecSpace(), sums, 0.0);
  return losses;
}

template <class T>
std::vector<double> Engine<T>::losses_so_far(Size steps) {
  const Size of_step = loss_sums(plan_.input, 1);
  const Vector<double> sums = allocate_vector<double>("tessera::losses_so_far", sums_plan_.losses);
  Kokkos::deep_copy(sums, alias_vector(sums_.data(), sums_plan_.losses));
  communicators_[RankSet::loss].all_reduce(sums);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<double> losses(static_cast<std::size_t>(steps));
  for (Size s = 0; s < steps; ++s)
    for (Size i = 0; i < of_step; ++i) losses[s] += host(s * of_step + i);
  return losses;
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

template <class T>
double Engine<T>::solution_error() {
  const Vector<double> sums =
      alias_vector(sums_.data() + sums_plan_.first_error(), sums_plan_.errors);
  communicators_[RankSet::loss].all_reduce(sums);
  Kokkos::deep_copy(host_sums_, sums_);
  const Size first = sums_plan_.first_error();
  const double error = std::sqrt(host_sums_(first) / host_sums_(first + 1));
  Kokkos::deep_copy(ExecSpace(), sums, 0.0);
  return error;
}

template class Engine<float>;
template class Engine<double>;
template class Engine<BFloat16>;
template class Engine<Float16>;

}  // namespace tessera
