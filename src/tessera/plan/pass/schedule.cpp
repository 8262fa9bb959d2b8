// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include <tessera/plan/pass/schedule.hpp>

namespace tessera {
namespace {

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
        sharding_(sharding_on(input.strategy, input.mesh)),
        period_(period_of(input.pipeline())) {
    bucket_of_layer_.assign(input.model.layers.size(), none);
    for (const UnitPlan& unit : units_)
      for (Size l = unit.layers.begin; l < unit.layers.end(); ++l)
        if (input.model.layers[l].uses_parameters()) bucket_of_layer_[l] = unit.bucket;
    for (std::size_t l = 0; l < bucket_of_layer_.size(); ++l) {
      const Size owner = input.model.layers[l].tied_to;
      if (owner >= 0 && bucket_of_layer_[l] == none) bucket_of_layer_[l] = bucket_of_layer_[owner];
      if (bucket_of_layer_[l] != none) last_used_ = bucket_of_layer_[l];
    }
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
    gather_first();
    first_ = first_repeated(list);
    for (const PipelineAction& action : list) add(action);
    finish_scatter();
    finish_share();
    for (Size b = size() - 1; b >= 0; --b) {
      if (has_updates(b) && !input_.overlap) scatter_share(b);
      if (has_replicas(b)) reduce(b, input_.overlap ? Phase::finish : Phase::whole);
    }
    if (input_.ties_stages()) reduce_tied();
    if (!input_.numerics.reproducible)
      for (Size u = 0; u < static_cast<Size>(units_.size()); ++u)
        if (units_[u].partial_gradients.count > 0) reduce_rows(u);
    if (input_.looks_for_infinities()) add(CheckFinite{{mesh().all_axes()}});
    const AxisSet of_state = state_axes(input_, mesh());
    if (input_.clips_by_norm && input_.numerics.reproducible) add(FindLargest{{of_state}});
    if (input_.clips_by_value || input_.clips_by_norm) add(Clip{{of_state}});
    for (Size b = 0, end = 0; b < size(); b = end) {
      do ++end;
      while (end < size() && !buckets_[end].begins_orthogonalization());
      orthogonalize({b, end - b});
    }
    add(Update{});
    for (Size b = 0; b < size(); ++b) {
      if (has_updates(b)) add(Gather{{b, buckets_[b].updates.axes}});
      if (sharding_.moments && !sharding_.parameters) gather(b);
    }
    return std::move(actions_);
  }

  const std::vector<PassSpan>& passes() const { return passes_; }
  const Repetition& repeated() const { return repeated_; }

  /// Lists the evaluation. Each microbatch passes all chunks before the next one, so messages go in
  /// one direction only.
  std::vector<ListedAction> evaluation() {
    gather_first();
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
    return std::move(actions_);
  }

 private:
  Size size() const { return static_cast<Size>(buckets_.size()); }
  const MeshShape& mesh() const { return input_.mesh; }
  bool has_updates(Size bucket) const {
    return mesh().group_size(buckets_[bucket].updates.axes) > 1;
  }
  bool has_replicas(Size bucket) const { return mesh().group_size(buckets_[bucket].summing()) > 1; }

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
    const auto now = static_cast<Size>(actions_.size());
    if (runs && left_out() > 0 && action.pass == first_ && repeated_.actions == 0) {
      if (begin_ == none)
        begin_ = now;
      else
        repeated_ = {now - begin_, 1 + left_out() / period_, begin_, period_};
      first_.microbatch += period_;
    }
    microbatch_ = action.pass.microbatch + (repeated_.actions > 0 ? left_out() : 0);
  }

  void add(const PipelineAction& action) {
    begin_microbatch(action);
    const PipelineStep step = action.step;
    const bool starts = step == PipelineStep::start_receive || step == PipelineStep::start_send;
    const bool sends = step == PipelineStep::start_send || step == PipelineStep::finish_send;
    if (step != PipelineStep::compute)
      return exchange(action.pass, sends, starts ? Phase::start : Phase::finish);
    const Size begin = static_cast<Size>(actions_.size());
    add_pass(action.pass);
    passes_.push_back({action.pass, {begin, static_cast<Size>(actions_.size()) - begin}});
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

  void add(Action action) { actions_.push_back({std::move(action), microbatch_}); }
  void gather(Size bucket, Phase phase = Phase::whole) {
    add(Gather{{bucket, buckets_[bucket].shares.axes, phase}});
  }
  void reduce_scatter(Size bucket, Phase phase = Phase::whole) {
    add(ReduceScatter{{bucket, buckets_[bucket].shares.axes, phase}});
  }
  void scatter_share(Size bucket, Phase phase = Phase::whole) {
    add(ReduceScatter{{bucket, buckets_[bucket].updates.axes, phase}});
  }
  void reduce(Size bucket, Phase phase) {
    add(Reduce{{bucket, buckets_[bucket].summing(), phase}});
  }
  /// Orthogonalizes the matrices of some buckets: moves all of them before and after that, so that
  /// their owners do not wait for each other.
  void orthogonalize(Range of) {
    const bool exchanges = input_.muon_layout == MuonLayout::exchange;
    const auto for_buckets = [&](const auto& f) {
      for (Size b = of.begin; b < of.end(); ++b)
        if (!buckets_[b].matrices.empty()) f(b, buckets_[b]);
    };
    const auto move = [&](Size b, AxisSet ranks, Operation operation, bool back = false) {
      if (mesh().group_size(ranks) > 1) add(MoveDirections{{b, ranks}, operation, back});
    };
    for_buckets([&](Size b, const BucketPlan& bucket) {
      add(Orthogonalize{{b, {}, Phase::start}});
      move(b, bucket.updates.axes, Operation::all_gather);
      if (exchanges) move(b, bucket.shares.axes, Operation::all_to_all);
      if (input_.muon_layout == MuonLayout::gather)
        move(b, bucket.shares.axes, Operation::all_gather);
      if (bucket.splits_matrices) move(b, mesh().axes_named({"model"}), Operation::all_gather);
    });
    for_buckets([&](Size b, const BucketPlan&) { add(Orthogonalize{{b, {}}}); });
    for_buckets([&](Size b, const BucketPlan& bucket) {
      if (exchanges) move(b, bucket.shares.axes, Operation::all_to_all, true);
      add(Orthogonalize{{b, {}, Phase::finish}});
    });
  }
  void reduce_tied() {
    const auto tied = std::find_if(buckets_.begin(), buckets_.end(),
                                   [](const BucketPlan& bucket) { return bucket.is_tied; });
    add(ReduceTied{tied == buckets_.end() ? none : static_cast<Size>(tied - buckets_.begin()),
                   mesh().axes_named({"pipeline"})});
  }
  void reduce_rows(Size unit) { add(ReduceRows{unit, mesh().axes_named({"model"})}); }

  bool last_microbatch() const { return microbatch_ + 1 == input_.microbatches; }

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
        gather_before(bucket, next_bucket(planned, i), is_backward);
      }
      if (bucket != none && is_backward && last[bucket] == i) complete = bucket;
      auto& shared = shared_[&planned[i]];
      if (!shared) shared = planned[i];
      actions_.push_back({*shared, microbatch_});
      const auto* backward = std::get_if<Backward>(&planned[i]);
      if (backward == nullptr || backward->gradients == Gradients::of_inputs) continue;
      if (input_.sums_positions_first() && bucket != none)
        add(ReduceRows{unit_of(backward->layer), mesh().axes_named({"context"}), backward->layer});
      if (rows_after_[backward->layer] != none) reduce_rows(rows_after_[backward->layer]);
    }
    if (!is_backward) return;
    reduce_after(complete, of);
    if (!input_.has_stages()) finish_scatter();
  }

  /// Returns the first other bucket that the actions after action `i` use; none if there is none.
  Size next_bucket(const std::vector<Action>& planned, std::size_t i) const {
    const Size bucket = bucket_of(planned[i]);
    for (; i < planned.size(); ++i)
      if (const Size next = bucket_of(planned[i]); next != none && next != bucket) return next;
    return none;
  }

  /// Returns true if the bucket's parameters stay gathered from the forward to the backward pass.
  bool stays_gathered(Size bucket) const {
    return !input_.reshard_after_forward || (input_.keep_last_unit && bucket == last_used_);
  }

  /// Returns true if several microbatches use parameters that stay gathered.
  bool gathers_first() const {
    return sharding_.parameters && !input_.reshard_after_forward && !input_.has_stages() &&
           input_.microbatches > 1;
  }
  /// Gathers all buckets before the first of these microbatches, which is one of the repeated ones.
  void gather_first() {
    for (Size b = 0; gathers_first() && b < size(); ++b) gather(b);
  }

  /// Adds the gather of a bucket before its use. With `prefetch`, also starts the gather of the
  /// next bucket, if that lies at the other end of the buffer of gathered parameters (StatePlan).
  void gather_before(Size bucket, Size next, bool is_backward) {
    if (!sharding_.parameters || gathers_first()) return;
    if (input_.has_stages()) return gather_once(bucket);
    if (!is_backward || !stays_gathered(bucket)) complete_gather(bucket);
    if (!input_.prefetch || next == none || (is_backward && stays_gathered(next))) return;
    const bool apart = buckets_[bucket].is_tied || buckets_[next].is_tied;
    if (apart || (next - bucket) % 2 != 0) start_gather(next);
  }

  void start_gather(Size bucket) {
    gather(bucket, Phase::start);
    in_flight_ = bucket;
  }
  void complete_gather(Size bucket) {
    gather(bucket, in_flight_ == bucket ? Phase::finish : Phase::whole);
    if (in_flight_ == bucket) in_flight_ = none;
  }

  /// Adds the gather of a bucket at its first use in the step. With a pipeline, forward and
  /// backward passes of different microbatches alternate, so all buckets stay gathered to the end.
  void gather_once(Size bucket) {
    if (bucket < gathered_) return;
    complete_gather(bucket);
    gathered_ = bucket + 1;
    if (input_.prefetch && gathered_ < size()) start_gather(gathered_);
  }

  /// Adds the reduction of a bucket after its last action in a backward pass. Does nothing if a
  /// pass of another kind or chunk completes the gradient.
  void reduce_after(Size bucket, const StagePass& pass) {
    if (bucket == none || StagePass{pass.kind, 0, pass.chunk} != last_pass_[bucket]) return;
    if (input_.reduces_every_microbatch() || (sharding_.moments && last_microbatch())) {
      if (!input_.overlap) return reduce_scatter(bucket);
      finish_scatter();
      reduce_scatter(bucket, Phase::start);
      scattering_ = bucket;
    } else if (!sharding_.moments && has_replicas(bucket) && input_.overlap && last_microbatch()) {
      reduce(bucket, Phase::start);
    }
  }

  /// Adds the finish of the started reduce-scatter, if there is one. At most one is in flight:
  /// there is one scratch, and the buffer of whole gradients has room for this bucket and the next
  /// one.
  void finish_scatter() {
    if (scattering_ == none) return;
    const Size bucket = std::exchange(scattering_, none);
    reduce_scatter(bucket, Phase::finish);
    if (has_updates(bucket) && last_microbatch()) {
      finish_share();
      scatter_share(bucket, Phase::start);
      sharing_ = bucket;
    } else if (has_replicas(bucket) && last_microbatch()) {
      reduce(bucket, Phase::start);
    }
  }
  /// The same of a share.
  void finish_share() {
    if (sharing_ == none) return;
    scatter_share(sharing_, Phase::finish);
    if (has_replicas(sharing_)) reduce(sharing_, Phase::start);
    sharing_ = none;
  }

  static constexpr Size none = -1;
  const PlanInput& input_;
  PipelineShape shape_;
  Size stage_;
  const PassPlan& pass_;
  const std::vector<UnitPlan>& units_;
  const std::vector<BucketPlan>& buckets_;
  Sharding sharding_;
  std::vector<Size> bucket_of_layer_;
  Size last_used_ = none;  ///< bucket of the stage's last layer with parameters
  /// The unit whose partial gradients are complete after the backward pass of a layer in each
  /// microbatch, by layer. In a fixed order of sums, ranks of `model` add up before microbatches.
  std::vector<Size> rows_after_;
  std::vector<StagePass> last_pass_;  ///< by bucket, that of microbatch 0 which completes it
  Size microbatch_ = 0;
  Size gathered_ = 0;       ///< number of buckets that gather_once() has gathered
  Size in_flight_ = none;   ///< bucket with a started gather
  Size scattering_ = none;  ///< bucket with a started reduce-scatter
  Size sharing_ = none;     ///< bucket with a started one of a share
  std::vector<ListedAction> actions_;
  StagePass first_{};  ///< with which the repeated part, or what follows it, begins
  Size begin_ = none;  ///< of the repeated part
  Size period_;        ///< Repetition::period
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
