// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/gradient_tree.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The collective calls on buckets of parameters and gradients. A started call runs until the
/// action that finishes it. At most one all-gather, one reduce-scatter of a bucket, one of a share,
/// and one all-reduce per bucket are in flight. The communicators and the plan must outlive this
/// object. T: the compute type.
template <class T>
class BucketTraffic {
 public:
  using State = StateOf<T>;

  /// `used` are the parameters that layers read and that ranks gather. Allocates the buffers of
  /// reductions.
  BucketTraffic(const Plan& plan, Size rank, const PlanCommunicators& communicators,
                const StateArena<T>& used, const StateArena<State>& gradients,
                const GradientTree<State>& tree);

  /// All-gathers a bucket's parameters from the shares of the ranks, or a share of them from what
  /// ranks update.
  void gather(const Gather& move);
  /// Sums a bucket's gradient; the rank keeps its share of the sum, or, of the sum of shares, what
  /// it updates. The gradient of the loss already contains the division by the number of samples.
  /// If gradients are reduced in every microbatch, adds the share to the sum of the earlier
  /// microbatches.
  void reduce_scatter(const ReduceScatter& move, Size microbatch);
  /// All-reduces the gradient of what the rank updates of a bucket over the replicas.
  void reduce(const Reduce& move);
  /// All-reduces the gradient of a tied unit between the first and the last stage.
  void reduce_tied(const ReduceTied& move) const;
  /// Sums UnitPlan::partial_gradients over `model`: the rank's share of them, at the end of a step,
  /// or all of them in one microbatch, if sums have a fixed order.
  void reduce_rows(const ReduceRows& move, Size microbatch) const;

  /// Returns the number of calls that are started and not yet finished.
  Size in_flight() const { return in_flight_; }
  /// Lets MPI make progress on these calls.
  void poll();

 private:
  bool adds(Size microbatch) const { return microbatch > 0 && state_.reduces_every_microbatch; }
  bool moves_share(const BucketMove& move) const {
    return stage_.parameters.buckets[move.bucket].moves_share(move.ranks);
  }
  Vector<State> scattered(Size bucket, Size microbatch) const;
  void add_incoming(Size bucket, Size microbatch) const;
  void clear_padding(Size bucket) const;
  void started(Request& request, Request&& call);
  void finish(Request& request);

  const StagePlan& stage_;
  StatePlan state_;
  const PlanCommunicators& communicators_;
  std::vector<Communicator> scatters_, sums_;  ///< by bucket, of sums in a fixed order
  StateArena<T> used_;
  StateArena<State> gradients_;
  const GradientTree<State>& tree_;
  bool in_fixed_order_;
  Vector<State> incoming_;         ///< StatePlan::incoming
  Vector<State> scatter_scratch_;  ///< StatePlan::scatter_scratch
  Vector<State> share_scratch_;    ///< StatePlan::share_scratch
  std::vector<std::vector<Range>>
      padding_;  ///< by bucket, the elements that belong to no parameter
  Request gather_, scatter_, share_scatter_;
  std::vector<Request> reductions_;  ///< by bucket
  Size in_flight_ = 0;
};

}  // namespace tessera
