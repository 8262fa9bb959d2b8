// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include <tessera/plan/pass/bucket_calls.hpp>
#include <tessera/plan/pass/schedule.hpp>

namespace tessera {
namespace {

constexpr Size none = BucketCalls::none;

/// Returns the bucket of each layer of the model; none for layers without parameters and those of
/// other stages.
std::vector<Size> buckets_of_layers(const PlanInput& input, const std::vector<UnitPlan>& units) {
  std::vector<Size> buckets(input.model.layers.size(), none);
  for (const UnitPlan& unit : units)
    for (Size l = unit.layers.begin; l < unit.layers.end(); ++l)
      if (input.model.layers[l].uses_parameters()) buckets[l] = unit.bucket;
  for (std::size_t l = 0; l < buckets.size(); ++l)
    if (const Size owner = input.model.layers[l].tied_to; owner >= 0 && buckets[l] == none)
      buckets[l] = buckets[owner];
  return buckets;
}

/// Returns the bucket of the last layer that has one.
Size last_bucket(const std::vector<Size>& of_layers) {
  const auto last = std::find_if(of_layers.rbegin(), of_layers.rend(),
                                 [](Size bucket) { return bucket != none; });
  return last == of_layers.rend() ? none : *last;
}

/// Makes the list of one stage, action by action. It is used once, for a step or for an evaluation.
class Scheduler {
 public:
  Scheduler(const PlanInput& input, const PassPlan& pass, const ParameterLayout& parameters,
            Size stage)
      : input_(input),
        shape_(listed_passes(input)),
        stage_(stage),
        pass_(pass),
        units_(parameters.units),
        buckets_(parameters.buckets),
        bucket_of_layer_(buckets_of_layers(input, units_)),
        calls_(input, buckets_, last_bucket(bucket_of_layer_), list_),
        period_(period_of(input.pipeline())) {
    rows_after_.assign(input.model.layers.size(), none);
    if (input.numerics.reproducible)
      for (std::size_t u = 0; u < units_.size(); ++u) {
        Size first = units_[u].parameters.begin;
        const Size end = units_[u].parameters.end();
        while (first < end && !parameters.parameters[first].partial_gradient) ++first;
        if (first < end) rows_after_[parameters.parameters[first].layer] = static_cast<Size>(u);
      }
    // The chunks of a microbatch go backward; the last one completes the gradient of a tied unit.
    last_pass_.resize(buckets_.size());
    for (Size c = std::ssize(pass.chunks) - 1; c >= 0; --c)
      for (const PassKind kind : kinds_of(shape_).subspan(1))
        for (const Action& action : actions_of({kind, 0, c}))
          if (!std::holds_alternative<Forward>(action) && bucket_of(action) != none)
            last_pass_[bucket_of(action)] = {kind, 0, c};
  }

  /// Lists a step.
  std::vector<ListedAction> step(const std::vector<PipelineAction>& list) {
    const bool has_loss = stage_of(shape_.stages * shape_.virtual_stages - 1, shape_) == stage_;
    if (has_loss && input_.model.ignore_index) add(CountTargets{{replicating_axes(mesh())}});
    calls_.gather_first();
    first_ = first_repeated(list);
    for (const PipelineAction& action : list) add(action);
    calls_.finish_reductions();
    if (input_.ties_stages()) reduce_tied();
    if (!input_.numerics.reproducible)
      for (Size u = 0; u < static_cast<Size>(units_.size()); ++u)
        if (units_[u].partial_gradients.count > 0) reduce_rows(u);
    if (input_.looks_for_infinities()) add(CheckFinite{{mesh().all_axes()}});
    const AxisSet of_state = state_axes(input_, mesh());
    if (input_.clips_by_norm && input_.numerics.reproducible) add(FindLargest{{of_state}});
    if (input_.clips_by_value || input_.clips_by_norm) add(Clip{{of_state}});
    calls_.orthogonalize_all();
    add(Update{});
    calls_.gather_updated();
    return std::move(list_.actions);
  }

  const std::vector<PassSpan>& passes() const { return passes_; }
  const Repetition& repeated() const { return repeated_; }

  /// Lists the evaluation. Each microbatch passes all chunks before the next one, so messages go in
  /// one direction only.
  std::vector<ListedAction> evaluation() {
    calls_.gather_first();
    if (left_out() > 0) {
      period_ = 1;
      shape_.microbatches = input_.has_stages() ? 3 : 2;  // in a pipeline, only the first gathers
      first_.microbatch = shape_.microbatches - 2;
    }
    for (Size m = 0; m < shape_.microbatches; ++m)
      for (Size chunk = 0; chunk < static_cast<Size>(pass_.chunks.size()); ++chunk)
        for (const PipelineStep step :
             {PipelineStep::start_receive, PipelineStep::finish_receive, PipelineStep::compute,
              PipelineStep::start_send, PipelineStep::finish_send})
          add({step, {PassKind::forward, m, chunk}});
    return std::move(list_.actions);
  }

 private:
  Size size() const { return static_cast<Size>(list_.actions.size()); }
  const MeshShape& mesh() const { return input_.mesh; }

  /// Returns the pass with which the repeated part begins: on stage k the forward pass before the
  /// backward pass number k + 1. So no stage waits in one part for a later part of another stage.
  StagePass first_repeated(const std::vector<PipelineAction>& list) const {
    StagePass forward;
    Size backward = 0;  // passes
    for (const PipelineAction& action : list) {
      if (action.step != PipelineStep::compute || !input_.has_stages()) continue;
      if (action.pass.kind == PassKind::forward) forward = action.pass;
      if (action.pass.kind == kinds_of(shape_)[1] && backward++ == stage_ + 1) return forward;
    }
    return {};
  }

  /// Returns the microbatches that are not listed.
  Size left_out() const { return input_.microbatches - shape_.microbatches; }

  /// Begins and ends the repeated part before the pass `first_` and before the same pass one period
  /// later. Sets the number of the microbatch of the next actions.
  void begin_microbatch(const PipelineAction& action) {
    const bool runs =
        action.step == PipelineStep::finish_receive || action.step == PipelineStep::compute;
    const auto now = size();
    if (runs && left_out() > 0 && action.pass == first_ && repeated_.actions == 0) {
      if (begin_ == none)
        begin_ = now;
      else
        repeated_ = {now - begin_, 1 + left_out() / period_, begin_, period_};
      first_.microbatch += period_;
    }
    list_.microbatch = action.pass.microbatch + (repeated_.actions > 0 ? left_out() : 0);
  }

  void add(const PipelineAction& action) {
    begin_microbatch(action);
    const PipelineStep step = action.step;
    const bool starts = step == PipelineStep::start_receive || step == PipelineStep::start_send;
    const bool sends = step == PipelineStep::start_send || step == PipelineStep::finish_send;
    if (step != PipelineStep::compute)
      return exchange(action.pass, sends, starts ? Phase::start : Phase::finish);
    const Size begin = size();
    add_pass(action.pass);
    passes_.push_back({action.pass, {begin, size() - begin}});
  }

  const ChunkPass& chunk(const StagePass& pass) const { return pass_.chunks[pass.chunk]; }
  void exchange(const StagePass& pass, bool sends, Phase phase) {
    const ChunkPass& of = chunk(pass);
    const bool is_forward = pass.kind == PassKind::forward;
    const std::optional<PlacedPass> other =
        sends ? consumer_of({stage_, pass}, shape_) : producer_of({stage_, pass}, shape_);
    if (!other || other->stage == stage_) return;
    for (const auto& [slot, tag] : sends ? (is_forward ? of.outputs : of.input_gradients)
                                         : (is_forward ? of.inputs : of.output_gradients))
      add(Message{sends, slot, mesh().axes_named({"pipeline"}), other->stage, tag, phase});
  }

  void add(Action action) { list_.add(std::move(action)); }
  void reduce_tied() {
    const auto tied = std::find_if(buckets_.begin(), buckets_.end(),
                                   [](const BucketPlan& bucket) { return bucket.is_tied; });
    add(ReduceTied{tied == buckets_.end() ? none : static_cast<Size>(tied - buckets_.begin()),
                   mesh().axes_named({"pipeline"})});
  }
  void reduce_rows(Size unit) { add(ReduceRows{unit, mesh().axes_named({"model"})}); }

  const std::vector<Action>& actions_of(const StagePass& pass) const {
    if (pass.kind == PassKind::forward) return chunk(pass).forward;
    return pass.kind == PassKind::weight_gradients ? chunk(pass).weights : chunk(pass).backward;
  }

  /// Returns the bucket of the layer that an action computes; none if it computes none or the layer
  /// has no parameters.
  Size bucket_of(const Action& action) const {
    const Compute* const compute = compute_of(action);
    return compute == nullptr ? none : bucket_of_layer_[compute->layer];
  }

  /// Returns the unit with the parameters of a layer.
  Size unit_of(Size layer) const {
    const Size owner = input_.model.layers[layer].tied_to;
    Size u = 0;
    while (units_[u].layers.end() <= (owner < 0 ? layer : owner)) ++u;
    return u;
  }

  /// Copies the input of a pass if the previous chunk, or the next one for gradients, is on this
  /// stage, too: in a V that of the last stage. It takes the place of a message.
  void copy_input(const StagePass& pass) {
    const std::optional<PlacedPass> from = producer_of({stage_, pass}, shape_);
    if (!from || from->stage != stage_) return;
    const bool is_forward = pass.kind == PassKind::forward;
    const ChunkPass &made = chunk(from->pass), &read = chunk(pass);
    for (const auto& [to, tag] : is_forward ? read.inputs : read.output_gradients)
      for (const BoundaryTensor& tensor : is_forward ? made.outputs : made.input_gradients)
        if (tensor.tag == tag) add(Accumulate{tensor.slot, to});
  }

  /// Adds the actions of a pass, with the gathers and reductions of the buckets that it uses.
  void add_pass(const StagePass& of) {
    copy_input(of);
    const bool is_backward = of.kind != PassKind::forward;
    const std::vector<Action>& planned = actions_of(of);
    std::map<Size, std::size_t> last;  // by bucket, its last action that changes gradients
    for (std::size_t i = 0; i < planned.size(); ++i)
      if (!std::holds_alternative<Forward>(planned[i])) last[bucket_of(planned[i])] = i;
    // The reduction of a bucket waits for the first action of the next one, so that calls on
    // activations, for which the next layer waits, come first.
    Size in_use = none, complete = none;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const Size bucket = bucket_of(planned[i]);
      if (bucket != none && bucket != in_use) {
        if (is_backward) reduce_after(std::exchange(complete, none), of);
        in_use = bucket;
        calls_.gather_before(bucket, next_bucket(planned, i), is_backward);
      }
      if (bucket != none && is_backward && last[bucket] == i) complete = bucket;
      auto& shared = shared_[&planned[i]];
      if (!shared) shared = planned[i];
      list_.actions.push_back({*shared, list_.microbatch});
      const auto* backward = std::get_if<Backward>(&planned[i]);
      if (backward == nullptr || backward->gradients == Gradients::of_inputs) continue;
      if (input_.sums_positions_first() && bucket != none)
        add(ReduceRows{unit_of(backward->layer), mesh().axes_named({"context"}), backward->layer});
      if (rows_after_[backward->layer] != none) reduce_rows(rows_after_[backward->layer]);
    }
    if (!is_backward) return;
    reduce_after(complete, of);
    if (!input_.has_stages()) calls_.finish_scatter();
  }

  /// Returns the first other bucket that the actions after action `i` use; none if there is none.
  Size next_bucket(const std::vector<Action>& planned, std::size_t i) const {
    const Size bucket = bucket_of(planned[i]);
    for (; i < planned.size(); ++i)
      if (const Size next = bucket_of(planned[i]); next != none && next != bucket) return next;
    return none;
  }

  /// Adds the reduction of a bucket after its last action in a backward pass. Does nothing if a
  /// pass of another kind or chunk completes the gradient.
  void reduce_after(Size bucket, const StagePass& pass) {
    if (bucket != none && StagePass{pass.kind, 0, pass.chunk} == last_pass_[bucket])
      calls_.reduce_complete(bucket);
  }

  const PlanInput& input_;
  PipelineShape shape_;
  Size stage_;
  const PassPlan& pass_;
  const std::vector<UnitPlan>& units_;
  const std::vector<BucketPlan>& buckets_;
  std::vector<Size> bucket_of_layer_;
  ActionList list_;
  BucketCalls calls_;
  /// The unit whose partial gradients are complete after the backward pass of a layer in each
  /// microbatch, by layer. In a fixed order of sums, ranks of `model` add up before microbatches.
  std::vector<Size> rows_after_;
  std::vector<StagePass> last_pass_;  ///< by bucket, that of microbatch 0 which completes it
  StagePass first_{};                 ///< with which the repeated part, or what follows it, begins
  Size begin_ = none;                 ///< of the repeated part
  Size period_;                       ///< Repetition::period
  Repetition repeated_;
  std::vector<PassSpan> passes_;
  /// The actions that the entries of all microbatches share, by action of a ChunkPass.
  std::map<const Action*, std::optional<SharedAction>> shared_;
};

}  // namespace

PipelineShape listed_passes(const PlanInput& input) {
  PipelineShape shape = input.pipeline();
  if (!input.has_stages()) {
    shape.microbatches = std::min<Size>(shape.microbatches, 2);
  } else if (const Size period = period_of(shape); period > 0 && !input.numerics.reproducible) {
    // Forward passes are ahead of the backward pass by at most 2 p + (v - 1) g, and the first and
    // the last period are not among the repeated ones.
    const Size most = 2 * period + (2 * shape.stages - 1) / shape.virtual_stages + 1,
               more = shape.microbatches - std::max(most, most_listed);
    if (more >= period) shape.microbatches -= more / period * period;
  }
  return shape;
}

StageSchedule make_schedule(const PlanInput& input, const PassPlan& pass,
                            const ParameterLayout& parameters, Size stage,
                            const std::vector<PipelineAction>& list) {
  Scheduler step(input, pass, parameters, stage);
  StageSchedule schedule;
  schedule.actions = step.step(list);
  schedule.passes = step.passes();
  schedule.repeated = step.repeated();
  Scheduler evaluation(input, pass, parameters, stage);
  schedule.evaluation = evaluation.evaluation();
  schedule.evaluation_repeated = evaluation.repeated();
  return schedule;
}

}  // namespace tessera
