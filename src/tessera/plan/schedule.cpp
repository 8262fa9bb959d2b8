// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/schedule.hpp>

namespace tessera {
namespace {

using enum ActionKind;

/// Writes the schedule of one step down, action by action.
class Scheduler {
 public:
  Scheduler(const PlanInput& input, const Layouts& layouts, const std::vector<Bucket>& buckets)
      : input_(input),
        layouts_(layouts),
        buckets_(buckets),
        sharding_(sharding_on(input.strategy, input.mesh)),
        has_replicas_(input.mesh.group_size(replica_axes(input.strategy, input.mesh)) > 1),
        layers_(layouts.size()) {}

  std::vector<Action> step() {
    for (microbatch_ = 0; microbatch_ < input_.microbatches; ++microbatch_) pass();
    --microbatch_;
    finish_replicas();
    if (input_.check_finite) add(check_finite);
    if (input_.clips_by_value || input_.clips_by_norm) add(clip);
    add(update);
    for (Size u = 0; sharding_.moments && !sharding_.parameters && u < layers_; ++u) add(gather, u);
    return actions_;
  }

 private:
  void add(ActionKind kind, Size index = 0) { actions_.push_back({kind, index, microbatch_}); }
  void add_if(Transition transition, ActionKind kind, Size index) {
    if (transition != Transition::keep) add(kind, index);
  }
  bool last_microbatch() const { return microbatch_ + 1 == input_.microbatches; }

  void pass() {
    for (Size layer = 0; layer < layers_; ++layer) {
      need(layer, layer + 1 < layers_ ? layer + 1 : none);
      forward_layer(layer);
    }
    add_if(layouts_.to_input(layers_), redistribute_input, layers_);
    add(loss);
    add_if(layouts_.to_gradient(layers_), redistribute_gradient, layers_);
    next_bucket_ = 0;
    for (Size layer = layers_ - 1; layer >= 0; --layer) {
      if (!kept(layer)) need_again(layer);
      prefetch_for_backward(layer);
      backward_layer(layer);
      reduce_unit(layer);
    }
    finish_scatter();
  }

  void forward_layer(Size layer) {
    add_if(layouts_.to_input(layer), redistribute_input, layer);
    add(forward, layer);
    if (layouts_.to_output(layer) == Transition::keep) return;
    add(redistribute_output, layer);
    add(activate, layer);
  }

  void backward_layer(Size layer) {
    if (layouts_.by_rows(layer)) {
      add(activate_backward, layer);
      add(gather_gradient, layer);
    }
    if (layouts_.remake_input(layer)) add(redistribute_input, layer);
    add(backward, layer);
    if (layer > 0) add_if(layouts_.to_gradient(layer), redistribute_gradient, layer);
  }

  /// Whether the unit that the forward pass has gathered is still there for the backward pass.
  bool kept(Size unit) const {
    return !input_.reshard_after_forward || (input_.keep_last_unit && unit == layers_ - 1);
  }

  /// A unit that layer `unit` is about to use, and the one after it.
  void need(Size unit, Size next) {
    if (!sharding_.parameters) return;
    if (in_flight_ == unit) {
      add(finish_gather, unit);
      in_flight_ = none;
    } else {
      add(gather, unit);
    }
    if (input_.prefetch && next != none) start(next);
  }
  void need_again(Size unit) { need(unit, none); }

  void prefetch_for_backward(Size layer) {
    if (sharding_.parameters && input_.prefetch && layer > 0 && !kept(layer - 1)) start(layer - 1);
  }

  void start(Size unit) {
    add(start_gather, unit);
    in_flight_ = unit;
  }

  /// Behind the backward of a layer: its unit, or the bucket that it completes.
  void reduce_unit(Size layer) {
    if (sharding_.gradients || (sharding_.moments && last_microbatch())) {
      if (input_.overlap) {
        finish_scatter();
        add(start_reduce_scatter, layer);
        scattering_ = layer;
      } else {
        add(reduce_scatter, layer);
      }
    } else if (has_replicas_ && input_.overlap && last_microbatch() &&
               buckets_[next_bucket_].first_layer == layer) {
      add(start_reduce, next_bucket_++);
    }
  }

  /// One at a time: a started one ends while the next layer is computed, or at the end of the pass.
  void finish_scatter() {
    if (scattering_ == none) return;
    add(finish_reduce_scatter, scattering_);
    scattering_ = none;
    if (has_replicas_ && last_microbatch()) add(start_reduce, next_bucket_++);
  }

  void finish_replicas() {
    for (Size b = 0; has_replicas_ && b < static_cast<Size>(buckets_.size()); ++b)
      add(input_.overlap ? finish_reduce : reduce, b);
  }

  static constexpr Size none = -1;
  const PlanInput& input_;
  const Layouts& layouts_;
  const std::vector<Bucket>& buckets_;
  Sharding sharding_;
  bool has_replicas_;
  Size layers_;
  Size microbatch_ = 0;
  Size next_bucket_ = 0;
  Size in_flight_ = none;   ///< the unit whose gather has been started
  Size scattering_ = none;  ///< the unit whose reduce-scatter has been started
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> make_schedule(const PlanInput& input, const Layouts& layouts,
                                  const std::vector<Bucket>& buckets) {
  return Scheduler(input, layouts, buckets).step();
}

}  // namespace tessera
