// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the common elements of two ranges; an empty range at the begin of the first if there are
/// none.
constexpr Range intersection(Range a, Range b) {
  const Size begin = a.begin > b.begin ? a.begin : b.begin;
  const Size end = a.end() < b.end() ? a.end() : b.end();
  return begin < end ? Range{begin, end - begin} : Range{a.begin, 0};
}

/// One parameter and its place in the flat buffer of its bucket. The place has the size of the
/// largest block over all ranks of `model`, so buckets are equal on all of them. Replicated
/// elements are then reduced in one order everywhere and stay equal to the bit.
struct ParameterPlan {
  std::string path;
  Size layer = 0;   ///< index in the model
  Size number = 0;  ///< index in the layer
  Shape shape;
  Placement along_model;
  bool sees_own_rows = false;  ///< the gradient is summed over `model`, too
  Range place{};               ///< elements, from the begin of the bucket
  Size bucket = 0;
};

/// The parameters of the consecutive layers with one unit name.
struct UnitPlan {
  std::string name;
  Range parameters{};
  Range layers{};
  Range place{};     ///< elements from the begin of the bucket
  Range own_rows{};  ///< elements whose gradients are summed over `model`, too
  Size bucket = 0;
};

/// A run of units whose gradients are reduced, and whose parameters are gathered, in one call.
/// Strategies shard buckets: each rank keeps one balanced part.
struct BucketPlan {
  Range units{};
  Size elements = 0;
};

/// The parameters of the layers of a stage, in order: units are runs of parameters, buckets are
/// runs of units. Strategies that shard parameters have one unit per bucket. Otherwise the units of
/// a chunk are joined from the last one on, because its gradient is ready first, up to
/// `bucket_bytes`.
struct ParameterLayout {
  std::vector<ParameterPlan> parameters;
  std::vector<UnitPlan> units;
  std::vector<BucketPlan> buckets;
};
ParameterLayout lay_out_parameters(const PlanInput& input, const std::vector<Layout>& layouts,
                                   const std::vector<Range>& chunks);

/// Returns "layer1", or "layer1..layer3" for several units.
std::string name_of(const BucketPlan& bucket, const std::vector<UnitPlan>& units);

/// The places of one bucket in the buffers of a rank, in elements.
struct BucketPlace {
  Range whole;  ///< place among all buckets
  Range share;  ///< the rank's part, from the begin of the bucket; all of it if not sharded
  Size share_begin = 0;     ///< place among all shares of the rank
  Size gathered_begin = 0;  ///< place of the gathered parameters in their buffer
  Size gradient_begin = 0;  ///< place of the bucket's gradient in its buffer
};

/// The buffers of parameters, gradients and moments on a rank.
///
/// A sharded role is kept as one flat buffer of shares: a balanced split of each bucket. Any other
/// role is kept as one flat buffer of whole buckets. Gathered parameters and gradients of whole
/// buckets take turns in a buffer of their own: two consecutive buckets live at the same time, so
/// one lies at the begin of the buffer and the other at its end.
struct StatePlan {
  Sharding sharding;
  bool reduces_every_microbatch = false;  ///< as PlanInput says
  bool has_copies = false;                ///< as PlanInput says
  std::vector<BucketPlace> buckets;
  Size whole = 0;             ///< elements of all buckets
  Size shares = 0;            ///< elements of all shares
  Size gathered = 0;          ///< buffer of gathered parameters
  Size bucket_gradients = 0;  ///< buffer of gradients of whole buckets
  Size incoming = 0;          ///< a share that is added to that of earlier microbatches
  Size arriving = 0;          ///< shares that arrive from other ranks during a started reduction

  /// Returns true if a rank keeps only the parameters that it updates. If layers read
  /// copies in the compute type, this depends on the sharding of moments.
  bool parameters_in_shares() const { return has_copies ? sharding.moments : sharding.parameters; }
  Size parameters() const { return parameters_in_shares() ? shares : whole; }
  Size copies() const { return !has_copies ? 0 : sharding.parameters ? shares : whole; }
  Size gradients() const { return sharding.gradients ? shares : whole; }
  Size moments() const { return sharding.moments ? shares : whole; }
  /// Returns the place of `part`, elements of a bucket, in a flat buffer of shares (`sharded`) or
  /// of whole buckets. Empty at 0 if the rank keeps none of them.
  Range kept(Size bucket, Range part, bool sharded) const;
  /// Returns the place in the buffer of gradients of those elements of `part` that the rank
  /// updates.
  Range owned_gradients(Size bucket, Range part) const;
  /// Returns the bucket's place in the buffer of gradients that outlives a microbatch.
  Range gradient(Size bucket) const;
};

/// Makes the plan of the rank with index `shard` of the `shards` ranks that share a replica.
StatePlan plan_state(const PlanInput& input, const std::vector<BucketPlan>& buckets, Size shards,
                     Size shard);

}  // namespace tessera
