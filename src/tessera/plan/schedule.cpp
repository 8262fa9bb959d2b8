// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/schedule.hpp>

namespace tessera {
namespace {

using enum ActionKind;

/// Writes the schedule of one step down, action by action.
class Scheduler {
 public:
  Scheduler(const PlanInput& input, const PassPlan& pass, const ParameterLayout& parameters)
      : input_(input),
        pass_(pass),
        units_(parameters.units),
        buckets_(parameters.buckets),
        sharding_(sharding_on(input.strategy, input.mesh)),
        has_replicas_(input.mesh.group_size(replica_axes(input.strategy, input.mesh)) > 1) {
    bucket_of_layer_.assign(input.model.layers.size(), none);
    for (const UnitPlan& unit : units_)
      for (Size l = unit.layers.begin; l < unit.layers.end(); ++l)
        if (!input.model.layers[l].parameters.empty()) bucket_of_layer_[l] = unit.bucket;
  }

  std::vector<Action> step() {
    for (microbatch_ = 0; microbatch_ < input_.microbatches; ++microbatch_) pass();
    --microbatch_;
    for (Size b = size() - 1; has_replicas_ && b >= 0; --b)
      add(input_.overlap ? finish_reduce : reduce, b);
    if (input_.mesh.size_of("model") > 1)
      for (Size u = 0; u < static_cast<Size>(units_.size()); ++u)
        if (units_[u].own_rows.count > 0) add(reduce_rows, u);
    if (input_.check_finite) add(check_finite);
    if (input_.clips_by_value || input_.clips_by_norm) add(clip);
    add(update);
    for (Size b = 0; sharding_.moments && !sharding_.parameters && b < size(); ++b) add(gather, b);
    return actions_;
  }

 private:
  Size size() const { return static_cast<Size>(buckets_.size()); }
  void add(ActionKind kind, Size index = 0) { actions_.push_back({kind, index, microbatch_}); }
  bool last_microbatch() const { return microbatch_ + 1 == input_.microbatches; }

  void pass() {
    Size in_use = none;
    bool backwards = false;
    for (const Action& planned : pass_.actions) {
      Action action = planned;
      action.microbatch = microbatch_;
      const bool is_layer = action.kind == forward || action.kind == backward;
      const Size bucket = is_layer ? bucket_of_layer_[action.index] : none;
      if (action.kind == loss) backwards = true;
      if (action.kind == loss) in_use = none;
      if (bucket != none && bucket != in_use) {
        if (backwards) behind(in_use);
        in_use = bucket;
        need(bucket, backwards);
      }
      actions_.push_back(std::move(action));
    }
    behind(in_use);
    finish_scatter();
  }

  /// Whether the parameters that the forward pass has gathered are still there for the backward
  /// pass.
  bool kept(Size bucket) const {
    return !input_.reshard_after_forward || (input_.keep_last_unit && bucket == size() - 1);
  }

  /// Parameters that are about to be used, and with prefetch those after them.
  void need(Size bucket, bool backwards) {
    if (!sharding_.parameters) return;
    if (!backwards || !kept(bucket)) {
      add(in_flight_ == bucket ? finish_gather : gather, bucket);
      if (in_flight_ == bucket) in_flight_ = none;
    }
    if (!input_.prefetch) return;
    const Size next = backwards ? bucket - 1 : bucket + 1;
    if (next < 0 || next == size() || (backwards && kept(next))) return;
    add(start_gather, next);
    in_flight_ = next;
  }

  /// Behind the last backward of a bucket.
  void behind(Size bucket) {
    if (bucket == none) return;
    if (sharding_.gradients || (sharding_.moments && last_microbatch())) {
      if (!input_.overlap) return add(reduce_scatter, bucket);
      finish_scatter();
      add(start_reduce_scatter, bucket);
      scattering_ = bucket;
    } else if (!sharding_.moments && has_replicas_ && input_.overlap && last_microbatch()) {
      add(start_reduce, bucket);
    }
  }

  /// One at a time: a started one ends while the next bucket is computed, or at the end of the
  /// pass.
  void finish_scatter() {
    if (scattering_ == none) return;
    add(finish_reduce_scatter, scattering_);
    if (has_replicas_ && last_microbatch()) add(start_reduce, scattering_);
    scattering_ = none;
  }

  static constexpr Size none = -1;
  const PlanInput& input_;
  const PassPlan& pass_;
  const std::vector<UnitPlan>& units_;
  const std::vector<BucketPlan>& buckets_;
  Sharding sharding_;
  bool has_replicas_;
  std::vector<Size> bucket_of_layer_;
  Size microbatch_ = 0;
  Size in_flight_ = none;   ///< the bucket whose gather has been started
  Size scattering_ = none;  ///< the bucket whose reduce-scatter has been started
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> make_schedule(const PlanInput& input, const PassPlan& pass,
                                  const ParameterLayout& parameters) {
  return Scheduler(input, pass, parameters).step();
}

}  // namespace tessera
