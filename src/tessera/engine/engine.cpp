// SPDX-License-Identifier: Apache-2.0
// The step and the dispatch of its actions. Actions on tensors between layers are in
// engine_tensors.cpp.
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/action_text.hpp>
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
  if (plan.input.traits.device != this_device)
    throw Error(ExitCode::usage, "a plan for a {} cannot be executed on a {}",
                name_of(plan.input.traits.device), name_of(this_device));
  return plan;
}

/// Keeps the profiling region of the current pipeline pass open.
class PassRegions {
 public:
  /// `names` are the names of the regions; none without a pipeline.
  PassRegions(const std::vector<PassSpan>& passes, const std::vector<std::string>& names)
      : passes_(passes), names_(names) {}

  /// Closes and opens regions before an action of the step. A repeated pass has the name of the
  /// first one.
  void before(Size action) {
    if (names_.empty()) return;
    const auto next = std::ranges::upper_bound(
        passes_, action, {}, [](const PassSpan& span) { return span.actions.begin; });
    if (next == passes_.begin() || action >= std::prev(next)->actions.end())
      region_.reset();
    else if (action == std::prev(next)->actions.begin)
      region_.emplace(names_[std::prev(next) - passes_.begin()].c_str());
  }

 private:
  const std::vector<PassSpan>& passes_;
  const std::vector<std::string>& names_;
  std::optional<Region> region_;
};

}  // namespace

template <class T>
Engine<T>::Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options)
    : plan_(executable(plan)),
      rank_(mesh.rank()),
      stage_(plan_.stage(mesh.rank())),
      state_(plan.state(mesh.rank())),
      options_(options),
      communicators_(plan, mesh),
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
      losses_per_sample_(plan.input.loss_count(1)),
      samples_(plan.input, plan.input.batch_size, mesh.rank()) {
  if (plan.input.has_stages())
    for (const PassSpan& span : stage_.passes)
      pass_names_.push_back("tessera::pass " + short_name(span.pass, plan.input.pipeline()));
  for (const LayerSpec& layer : operands_.layers())
    layer_names_.push_back({"tessera::forward " + layer.name, "tessera::backward " + layer.name});
  const Sharding& sharding = state_.sharding;
  draw_parameters(plan, mesh.rank(), parameters_, sharding.held_parameters(state_.has_copies));
  if (state_.has_copies) draw_parameters(plan, mesh.rank(), used_, sharding.held_parameters(false));
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
    const Action& action = stage_.actions[i].action;
    // In a pipeline, each repetition has other memory than the one before it.
    if (plan_.input.has_stages() && stage_.repeated.holds(static_cast<Size>(i)))
      step_calls_[i].reset();
    mark_event(action_event, [&] { return std::to_string(i); });
    mark_event(tensor_event, [&] { return subject_of(action, plan_, stage_); });
    carry_out(action, step_calls_[i], now);
    mark_event(tensor_event, [] { return ""; });
    // MPI makes progress on non-blocking calls only inside MPI calls.
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
                    const Action& action = stage_.evaluation[i].action;
                    now.microbatch = microbatch_of(batch, microbatch);
                    const Loss* const last = std::get_if<Loss>(&action);
                    const bool repeats = stage_.evaluation_repeated.holds(static_cast<Size>(i));
                    if (plan_.input.has_stages() && repeats) evaluation_calls_[i].reset();
                    if (last == nullptr) return carry_out(action, evaluation_calls_[i], now);
                    loss(*last, now, false);
                    if (sums_.evaluated().extent(0) > 0) count_evaluated_targets(now.microbatch);
                    if (sums_.errors().extent(0) > 0 && number >= plan_.steps_per_epoch())
                      add_error(*last, now.microbatch);
                    if (take) take(now.microbatch, frame_.read(last->prediction, now.microbatch));
                  });
}

template <class T>
auto Engine<T>::microbatch_of(const Batch<State>& batch, Size number) -> Microbatch<State> {
  if (samples_.global() != batch.global_samples)
    samples_ = BatchSamples(plan_.input, batch.global_samples, rank_);
  const Range part = samples_.own(number);
  const auto rows = [&](const Matrix<const State>& of) {
    const Size positions = static_cast<Size>(of.extent(0)) / std::max<Size>(1, batch.samples);
    return rows_of(of, {part.begin * positions, part.count * positions});
  };
  return {rows(batch.x),        rows(batch.y), part.count,       batch.first + part.begin,
          batch.global_samples, number,        batch.from_prior, &samples_};
}

template <class T>
void Engine<T>::carry_out(const Action& action, std::optional<LayerCall<Compute>>& call,
                          const Now& now) {
  const Microbatch<State>& batch = now.microbatch;
  match(
      action, [&](const Forward& a) { forward(a, call, now); },
      [&](const Backward& a) { backward(a, call, now); },
      [&](const PartialLoss& a) { loss_terms(a, batch); },
      [&](const Loss& a) { loss(a, now, true); },
      [&](const Accumulate& a) { accumulate_tensors(a, batch); },
      [&](const Move& a) { redistribute(a, batch); }, [&](const Message& a) { message(a, batch); },
      [&](const Gather& a) { buckets_.gather(a); },
      [&](const ReduceScatter& a) { buckets_.reduce_scatter(a, batch.number); },
      [&](const Reduce& a) { buckets_.reduce(a); },
      [&](const ReduceTied& a) { buckets_.reduce_tied(a); },
      [&](const ReduceRows& a) {
        if (a.layer < 0) return buckets_.reduce_rows(a, batch.number);
        row_blocks_.reduce(communicators_[a.ranks]);
        operands_.complete_gradients(a.layer, batch.number);
      },
      [&](const CountTargets& a) { count_targets(a, now); },
      [&](const CheckFinite& a) { optimizer_step_.run(a); },
      [&](const FindLargest& a) { optimizer_step_.run(a); },
      [&](const Clip& a) { optimizer_step_.run(a); },
      [&](const Orthogonalize& a) { optimizer_step_.run(a, now.learning_rate); },
      [&](const MoveDirections& a) { optimizer_step_.run(a); },
      [&](const Update&) { optimizer_step_.update(now.learning_rate); });
}

template <class T>
void Engine<T>::forward(const Forward& forward, std::optional<LayerCall<Compute>>& made,
                        const Now& now) const {
  const Region region(layer_names_[forward.layer].forward.c_str());
  LayerCall<Compute>& call = operands_.of(forward, made, now.microbatch);
  if (const LayerKind& kind = *call.layer.kind; kind.reads_batch) {
    call.batch = facts_of(now);
    // The first of the ranks with the same output counts it.
    const MeshShape& mesh = plan_.input.mesh;
    const AxisSet copies = replicating_axes(mesh) - axes_of(stage_.slots[forward.output].cuts);
    const bool counts = mesh.coordinate(rank_, copies) == 0;
    const LayerSums before = sums_of(plan_.input.model, forward.layer);
    if (counts && !forward.recomputes && !kind.loss_terms.empty())
      call.batch.loss = loss_sums(now).data() + 1 + before.losses;
    if (counts && !forward.recomputes && now.targets.data() != nullptr)  // not in an evaluation
      call.batch.routing = sums_.routing().data() + before.routing;
  }
  MemoryGuard guard;
  open_operands(call, guard);
  tessera::forward(call);
}

template <class T>
void Engine<T>::backward(const Backward& backward, std::optional<LayerCall<Compute>>& made,
                         const Now& now) {
  const Region region(layer_names_[backward.layer].backward.c_str());
  LayerCall<Compute>& call = operands_.of(backward, made, now.microbatch);
  if (call.layer.kind->reads_batch) call.batch = facts_of(now);
  const bool has_stacks = call.layer.experts() > 0 && state_.grains_of_experts.size() > 1;
  {
    MemoryGuard guard;
    open_operands(call, guard);
    if (!has_stacks) {
      row_blocks_.backward(backward.layer, call);  // in blocks in a fixed order only
    } else {
      const Size stacks = backward.gradients == Gradients::of_inputs
                              ? 0
                              : static_cast<Size>(state_.grains_of_experts.size());
      for (Size stack = 0; stack < stacks; ++stack) {
        const LayerCall<Compute> own = operands_.of_stack(call, backward, now.microbatch, stack);
        for_each_operand(own, [&](const auto& view) { guard.open(view); });
        row_blocks_.backward(backward.layer, own, stack, stacks);
      }
      call.parameter_gradients = {};
      if (call.wants_input_gradients()) tessera::backward(call);
    }
  }
  if (backward.gradients != Gradients::of_inputs && !plan_.input.sums_positions_first())
    operands_.complete_gradients(backward.layer, now.microbatch.number);
}

/// Returns the loss sums of the microbatch, of a block of positions. One without a grain, which has
/// no samples, gets those of another rank's grain.
template <class T>
Vector<double> Engine<T>::loss_sums(const Now& now, Size block) const {
  const Size grain = state_.grains.begin + now.microbatch.number,
             number = grain * plan_.input.loss_blocks() + block;
  return sums_.losses(now.batch_number, {number % plan_.input.loss_sums(), 1});
}

template <class T>
auto Engine<T>::facts_of(const Now& now) const -> BatchFacts<State> {
  BatchFacts<State> facts{now.microbatch.x, now.microbatch.first, optimizer_step_.steps()};
  facts.from_prior = now.microbatch.from_prior;
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

/// Closes the memory that tensors share, but for the operands of a layer.
template <class T>
void Engine<T>::open_operands(const LayerCall<Compute>& call, MemoryGuard& guard) const {
  close_arenas(guard);
  for_each_operand(call, [&](const auto& view) { guard.open(view); });
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
  auto listed = std::find_if(stage_.actions.begin(), stage_.actions.end(),
                             [](const ListedAction& a) { return a.as<Update>() != nullptr; });
  for (; listed != stage_.actions.end(); ++listed)
    if (const auto* gather = listed->template as<Gather>()) buckets_.gather(*gather);
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
