// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/bucket_traffic.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {

template <class T>
BucketTraffic<T>::BucketTraffic(const Plan& plan, Size rank, const PlanCommunicators& communicators,
                                const StateArena<T>& used, const StateArena<State>& gradients,
                                const GradientTree<State>& tree)
    : stage_(plan.stage(rank)),
      state_(plan.state(rank)),
      communicators_(communicators),
      used_(used),
      gradients_(gradients),
      tree_(tree),
      in_fixed_order_(plan.input.numerics.reproducible),
      incoming_(allocate_vector<State>("tessera::incoming_gradients", state_.incoming)),
      scatter_scratch_(
          allocate_vector<State>("tessera::reduce_scatter_scratch", state_.scatter_scratch)),
      share_scratch_(
          allocate_vector<State>("tessera::reduce_scatter_scratch", state_.share_scratch)),
      padding_(state_.buckets.size()),
      reductions_(state_.buckets.size()) {
  for (const BucketPlan& bucket : stage_.parameters.buckets) {
    if (!in_fixed_order_) break;
    const auto in_tree = [&](AxisSet axes, Size in_stride) {
      return communicators[axes].in_tree(
          {gradient_nodes(plan.input, bucket, axes, rank), in_stride, state_.gradients()});
    };
    scatters_.push_back(in_tree(bucket.shares.axes, state_.whole_gradients()));
    sums_.push_back(in_tree(bucket.updates.axes | bucket.summing(), state_.gradients()));
  }
  for (const ParameterPlan& parameter : stage_.parameters.parameters) {
    const Size elements = num_elements(plan.piece(rank, parameter).extent);
    if (const Size rest = parameter.place.count - elements; rest > 0)
      padding_[parameter.bucket].push_back({parameter.place.begin + elements, rest});
  }
}

template <class T>
void BucketTraffic<T>::gather(const Gather& move) {
  if (move.phase == Phase::finish) return finish(gather_);
  const Communicator& ranks = communicators_[move.ranks];
  const BucketPlace& place = state_.buckets[move.bucket];
  const bool of_share = moves_share(move);
  const auto share = used_.kept(move.bucket, of_share ? place.owned : place.share),
             whole = of_share ? used_.kept(move.bucket, place.share) : used_.whole(move.bucket);
  if (move.phase == Phase::start) return started(gather_, ranks.iall_gather(share, whole));
  const Region region("tessera::gather");
  ranks.all_gather(share, whole);
}

template <class T>
void BucketTraffic<T>::reduce_scatter(const ReduceScatter& move, Size microbatch) {
  const Size bucket = move.bucket;
  const bool of_share = moves_share(move), in_place = of_share || !state_.sharding.gradients;
  Request& scatter = of_share ? share_scatter_ : scatter_;
  if (move.phase == Phase::finish) {
    finish(scatter);
    if (!of_share) add_incoming(bucket, microbatch);
    return;
  }
  const Communicator& ranks =
      in_fixed_order_ ? (of_share ? sums_ : scatters_)[bucket] : communicators_[move.ranks];
  const Vector<State> share = scattered(bucket, microbatch),
                      whole = of_share ? scattered(bucket, 0) : gradients_.whole(bucket);
  if (!of_share) clear_padding(bucket);
  if (move.phase == Phase::start) {
    const Scratch room{of_share ? share_scratch_ : scatter_scratch_};
    return started(scatter, in_place
                                ? ranks.ireduce_scatter(whole, ReduceOp::sum, room)
                                : ranks.ireduce_scatter(whole, share, ReduceOp::sum, {}, room));
  }
  const Region region("tessera::reduce_scatter");
  if (in_place) return ranks.reduce_scatter(whole);
  ranks.reduce_scatter(whole, share);
  add_incoming(bucket, microbatch);
}

template <class T>
void BucketTraffic<T>::reduce(const Reduce& move) {
  Request& reduction = reductions_[move.bucket];
  if (move.phase == Phase::finish) return finish(reduction);
  const Communicator& ranks = in_fixed_order_ ? sums_[move.bucket] : communicators_[move.ranks];
  const Vector<State> gradient = gradients_.kept(move.bucket, state_.buckets[move.bucket].owned);
  if (move.phase == Phase::start) return started(reduction, ranks.iall_reduce(gradient));
  ranks.all_reduce(gradient);
}

template <class T>
void BucketTraffic<T>::reduce_tied(const ReduceTied& move) const {
  if (move.bucket >= 0)
    communicators_.first_and_last_stage().all_reduce(
        gradients_.kept(move.bucket, state_.buckets[move.bucket].owned));
}

template <class T>
void BucketTraffic<T>::reduce_rows(const ReduceRows& move, Size microbatch) const {
  const UnitPlan& unit = stage_.parameters.units[move.unit];
  if (in_fixed_order_) {
    communicators_[move.ranks].all_reduce(
        tree_.part(microbatch, unit.bucket, unit.partial_gradients));
    return tree_.complete(microbatch, unit.bucket, unit.partial_gradients);
  }
  const Range own = state_.owned_gradients(unit.bucket, unit.partial_gradients);
  if (own.count > 0) communicators_[move.ranks].all_reduce(gradients_.range(own));
}

/// Returns the target of a reduce-scatter: the share in the flat buffer or, if that holds the sum
/// of earlier microbatches, the buffer `incoming_`.
template <class T>
auto BucketTraffic<T>::scattered(Size bucket, Size microbatch) const -> Vector<State> {
  const Vector<State> share = gradients_.kept(bucket, state_.buckets[bucket].share);
  if (!adds(microbatch)) return share;
  return alias_vector(incoming_.data(), static_cast<Size>(share.extent(0)));
}

template <class T>
void BucketTraffic<T>::add_incoming(Size bucket, Size microbatch) const {
  if (state_.sharding.gradients && adds(microbatch))
    accumulate<State>(Vector<const State>(scattered(bucket, microbatch)), scattered(bucket, 0));
}

/// Sets the padding of a bucket's gradient to zero, in all rows. Other buckets in the same buffer,
/// and reductions in place, leave values there.
template <class T>
void BucketTraffic<T>::clear_padding(Size bucket) const {
  for (const Range& range : padding_[bucket])
    for (Size row = 0; row < state_.gradient_rows; ++row)
      Kokkos::deep_copy(ExecSpace(), gradients_.part(bucket, range, row), State(0));
}

template <class T>
void BucketTraffic<T>::started(Request& request, Request&& call) {
  request = std::move(call);
  ++in_flight_;
}

template <class T>
void BucketTraffic<T>::finish(Request& request) {
  request.wait();
  --in_flight_;
}

template <class T>
void BucketTraffic<T>::poll() {
  gather_.test();
  scatter_.test();
  share_scatter_.test();
  for (Request& request : reductions_) request.test();
}

TESSERA_INSTANTIATE_CLASS(BucketTraffic);

}  // namespace tessera
