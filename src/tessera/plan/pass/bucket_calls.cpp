// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/plan/pass/bucket_calls.hpp>

namespace tessera {

bool BucketCalls::gathers_first() const {
  return sharding_.parameters && !input_.reshard_after_forward && !input_.has_stages() &&
         input_.microbatches > 1;
}

void BucketCalls::gather_first() {
  for (Size b = 0; gathers_first() && b < size(); ++b) gather(b);
}

/// Returns true if the bucket's parameters stay gathered from the forward to the backward pass.
bool BucketCalls::stays_gathered(Size bucket) const {
  return !input_.reshard_after_forward || (input_.keep_last_unit && bucket == last_used_);
}

void BucketCalls::gather_before(Size bucket, Size next, bool is_backward) {
  if (!sharding_.parameters || gathers_first()) return;
  if (input_.has_stages()) return gather_once(bucket);
  if (!is_backward || !stays_gathered(bucket)) complete_gather(bucket);
  if (!input_.prefetch || next == none || (is_backward && stays_gathered(next))) return;
  const bool apart = buckets_[bucket].is_tied || buckets_[next].is_tied;
  if (apart || (next - bucket) % 2 != 0) start_gather(next);
}

void BucketCalls::gather(Size bucket, Phase phase) {
  list_.add(Gather{{bucket, buckets_[bucket].shares.axes, phase}});
}
void BucketCalls::start_gather(Size bucket) {
  gather(bucket, Phase::start);
  in_flight_ = bucket;
}
void BucketCalls::complete_gather(Size bucket) {
  gather(bucket, in_flight_ == bucket ? Phase::finish : Phase::whole);
  if (in_flight_ == bucket) in_flight_ = none;
}

/// Gathers a bucket at its first use in the step. With a pipeline, forward and backward passes of
/// different microbatches alternate, so all buckets stay gathered to the end.
void BucketCalls::gather_once(Size bucket) {
  if (bucket < gathered_) return;
  complete_gather(bucket);
  gathered_ = bucket + 1;
  if (input_.prefetch && gathered_ < size()) start_gather(gathered_);
}

void BucketCalls::reduce_scatter(Size bucket, Phase phase) {
  list_.add(ReduceScatter{{bucket, buckets_[bucket].shares.axes, phase}});
}
void BucketCalls::scatter_share(Size bucket, Phase phase) {
  list_.add(ReduceScatter{{bucket, buckets_[bucket].updates.axes, phase}});
}
void BucketCalls::reduce(Size bucket, Phase phase) {
  list_.add(Reduce{{bucket, buckets_[bucket].summing(), phase}});
}

void BucketCalls::reduce_complete(Size bucket) {
  if (input_.reduces_every_microbatch() || (sharding_.moments && last_microbatch())) {
    if (!input_.overlap) return reduce_scatter(bucket);
    finish_scatter();
    reduce_scatter(bucket, Phase::start);
    scattering_ = bucket;
  } else if (!sharding_.moments && has_replicas(bucket) && input_.overlap && last_microbatch()) {
    reduce(bucket, Phase::start);
  }
}

void BucketCalls::finish_scatter() {
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
void BucketCalls::finish_share() {
  if (sharing_ == none) return;
  scatter_share(sharing_, Phase::finish);
  if (has_replicas(sharing_)) reduce(sharing_, Phase::start);
  sharing_ = none;
}

void BucketCalls::finish_reductions() {
  finish_scatter();
  finish_share();
  for (Size b = size() - 1; b >= 0; --b) {
    if (has_updates(b) && !input_.overlap) scatter_share(b);
    if (has_replicas(b)) reduce(b, input_.overlap ? Phase::finish : Phase::whole);
  }
}

void BucketCalls::orthogonalize_all() {
  for (Size b = 0, end = 0; b < size(); b = end) {
    do ++end;
    while (end < size() && !buckets_[end].begins_orthogonalization());
    orthogonalize({b, end - b});
  }
}

/// Moves the matrices of some buckets before, and after, all of them are orthogonalized.
void BucketCalls::orthogonalize(Range of) {
  const bool exchanges = input_.muon_layout == MuonLayout::exchange;
  const auto for_buckets = [&](const auto& f) {
    for (Size b = of.begin; b < of.end(); ++b)
      if (!buckets_[b].matrices.empty()) f(b, buckets_[b]);
  };
  const auto move = [&](Size b, AxisSet ranks, Operation operation, bool back = false) {
    if (mesh().group_size(ranks) > 1) list_.add(MoveDirections{{b, ranks}, operation, back});
  };
  for_buckets([&](Size b, const BucketPlan& bucket) {
    list_.add(Orthogonalize{{b, {}, Phase::start}});
    move(b, bucket.updates.axes, Operation::all_gather);
    if (exchanges) move(b, bucket.shares.axes, Operation::all_to_all);
    if (input_.muon_layout == MuonLayout::gather)
      move(b, bucket.shares.axes, Operation::all_gather);
    if (bucket.splits_matrices) move(b, mesh().axes_named({"model"}), Operation::all_gather);
  });
  for_buckets([&](Size b, const BucketPlan&) { list_.add(Orthogonalize{{b, {}}}); });
  for_buckets([&](Size b, const BucketPlan& bucket) {
    if (exchanges) move(b, bucket.shares.axes, Operation::all_to_all, true);
    list_.add(Orthogonalize{{b, {}, Phase::finish}});
  });
}

void BucketCalls::gather_updated() {
  for (Size b = 0; b < size(); ++b) {
    if (has_updates(b)) list_.add(Gather{{b, buckets_[b].updates.axes}});
    if (sharding_.moments && !sharding_.parameters) gather(b);
  }
}

}  // namespace tessera
