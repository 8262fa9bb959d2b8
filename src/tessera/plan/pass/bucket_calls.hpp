// SPDX-License-Identifier: Apache-2.0
// The calls on the parameters and gradients of buckets in a schedule.
#pragma once

#include <utility>
#include <vector>

#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The list of a stage's actions, as far as it is made.
struct ActionList {
  std::vector<ListedAction> actions;
  Size microbatch = 0;  ///< of the next actions

  void add(Action action) { actions.push_back({std::move(action), microbatch}); }
};

/// Lists the calls on the buckets of one stage, once: gathers before parameters are used,
/// reductions after gradients are complete, and those of the update.
class BucketCalls {
 public:
  static constexpr Size none = -1;  ///< no bucket

  /// `last_used`: bucket of the stage's last layer with parameters. All arguments must outlive this
  /// object.
  BucketCalls(const PlanInput& input, const std::vector<BucketPlan>& buckets, Size last_used,
              ActionList& list)
      : input_(input),
        buckets_(buckets),
        last_used_(last_used),
        sharding_(sharding_on(input.strategy, input.mesh)),
        list_(list) {}

  /// Gathers all buckets before the first of several microbatches that use parameters which stay
  /// gathered. It is one of the repeated ones.
  void gather_first();

  /// Gathers a bucket before its use. With `prefetch`, also starts the gather of the `next` bucket,
  /// if that lies at the other end of the buffer of gathered parameters (StatePlan).
  void gather_before(Size bucket, Size next, bool is_backward);

  /// Reduces the gradient of a bucket, which the microbatch has completed, or starts that.
  void reduce_complete(Size bucket);

  /// Finishes the started reduce-scatter, if there is one. At most one is in flight: there is one
  /// scratch, and the buffer of whole gradients has room for this bucket and the next one.
  void finish_scatter();

  /// Finishes what is in flight, and makes the reductions that wait for all passes.
  void finish_reductions();

  /// Orthogonalizes the directions of matrices, of several buckets at once where their owners would
  /// wait for each other.
  void orthogonalize_all();

  /// Gathers what the update has changed.
  void gather_updated();

 private:
  Size size() const { return static_cast<Size>(buckets_.size()); }
  const MeshShape& mesh() const { return input_.mesh; }
  bool last_microbatch() const { return list_.microbatch + 1 == input_.microbatches; }
  bool has_updates(Size bucket) const {
    return mesh().group_size(buckets_[bucket].updates.axes) > 1;
  }
  bool has_replicas(Size bucket) const { return mesh().group_size(buckets_[bucket].summing()) > 1; }
  bool gathers_first() const;
  bool stays_gathered(Size bucket) const;

  void gather(Size bucket, Phase phase = Phase::whole);
  void start_gather(Size bucket);
  void complete_gather(Size bucket);
  void gather_once(Size bucket);
  void reduce_scatter(Size bucket, Phase phase = Phase::whole);
  void scatter_share(Size bucket, Phase phase = Phase::whole);
  void reduce(Size bucket, Phase phase);
  void finish_share();
  void orthogonalize(Range of);

  const PlanInput& input_;
  const std::vector<BucketPlan>& buckets_;
  Size last_used_;
  Sharding sharding_;
  ActionList& list_;
  Size gathered_ = 0;       ///< number of buckets that gather_once() has gathered
  Size in_flight_ = none;   ///< bucket with a started gather
  Size scattering_ = none;  ///< bucket with a started reduce-scatter
  Size sharing_ = none;     ///< bucket with a started one of a share
};

}  // namespace tessera
