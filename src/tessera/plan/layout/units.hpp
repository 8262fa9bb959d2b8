// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What two ranges share; if nothing, empty at the begin of the first.
constexpr Range intersection(Range a, Range b) {
  const Size begin = a.begin > b.begin ? a.begin : b.begin;
  const Size end = a.end() < b.end() ? a.end() : b.end();
  return begin < end ? Range{begin, end - begin} : Range{a.begin, 0};
}

/// One parameter, and its place in the flat memory of its bucket. The place is as large as the
/// largest block of all ranks of `model`, so that buckets are equal on all of them: what is whole
/// along `model` is then reduced in one order everywhere and stays equal to the bit.
struct ParameterPlan {
  std::string path;
  Size layer = 0;   ///< of the model
  Size number = 0;  ///< among the layer's parameters
  Shape shape;
  Placement along_model;
  bool sees_own_rows = false;  ///< the gradient is a sum over `model`, too
  Range place{};               ///< elements from the begin of the bucket
  Size bucket = 0;
};

/// The parameters of one layer, or of the few that share a name.
struct UnitPlan {
  std::string name;
  Range parameters{};
  Range layers{};
  Range place{};     ///< elements from the begin of the bucket
  Range own_rows{};  ///< those of them whose gradients are sums over `model`, too
  Size bucket = 0;
};

/// A run of units whose gradients are reduced, and whose parameters are gathered, in one call. A
/// bucket is what strategies shard: each rank keeps one balanced part of it.
struct BucketPlan {
  Range units{};
  Size elements = 0;
};

/// The parameters of the layers of a stage: in their order, so units are runs of parameters and
/// buckets runs of units. Strategies that gather parameters have one unit in a bucket; else the
/// units of a chunk join from the back, where gradients are ready first, as long as a bucket stays
/// within `bucket_bytes`.
struct ParameterLayout {
  std::vector<ParameterPlan> parameters;
  std::vector<UnitPlan> units;
  std::vector<BucketPlan> buckets;
};
ParameterLayout lay_out_parameters(const PlanInput& input, const std::vector<Layout>& layouts,
                                   const std::vector<Range>& chunks);

/// "layer1", or "layer1..layer3"
std::string name_of(const BucketPlan& bucket, const std::vector<UnitPlan>& units);

/// One bucket in the buffers of a rank; in elements.
struct BucketPlace {
  Range whole;           ///< among all buckets
  Range share;           ///< the own part of the bucket, from its begin; all of it if not sharded
  Size share_begin = 0;  ///< where the share lies among all shares of the rank
  Size gathered_begin = 0;  ///< where the gathered parameters lie in their buffer
  Size gradient_begin = 0;  ///< where the gradient of the whole bucket lies in its buffer
};

/// Where a rank keeps parameters, gradients and moments.
///
/// What is sharded is kept as one flat buffer of shares, the balanced split of each bucket; what is
/// not, as one flat buffer of whole buckets. Sharded parameters are gathered into, and sharded
/// gradients computed in, buffers that buckets use in turn: of two neighbours, which live at the
/// same time, one lies at the buffer's begin and the other at its end.
struct StatePlan {
  Sharding sharding;
  bool reduces_every_microbatch = false;  ///< as PlanInput says
  bool has_copies = false;                ///< as PlanInput says
  std::vector<BucketPlace> buckets;
  Size whole = 0;             ///< elements of all buckets
  Size shares = 0;            ///< elements of all shares
  Size gathered = 0;          ///< buffer of gathered parameters
  Size bucket_gradients = 0;  ///< buffer of gradients of whole buckets
  Size incoming = 0;  ///< share of a gradient that is to be added to those of microbatches before
  Size arriving = 0;  ///< the other ranks' shares of a gradient whose reduction has been started

  /// With copies for layers to use, a rank keeps of the parameters themselves what it updates.
  bool parameters_in_shares() const { return has_copies ? sharding.moments : sharding.parameters; }
  Size parameters() const { return parameters_in_shares() ? shares : whole; }
  Size copies() const { return !has_copies ? 0 : sharding.parameters ? shares : whole; }
  Size gradients() const { return sharding.gradients ? shares : whole; }
  Size moments() const { return sharding.moments ? shares : whole; }
  /// What of `part`, elements of a bucket, the rank keeps: in a flat buffer of shares or of whole
  /// buckets. Empty at 0 if nothing.
  Range kept(Size bucket, Range part, bool sharded) const;
  /// What of `part`, elements of a bucket, the rank updates: its place in the buffer of gradients.
  Range owned_gradients(Size bucket, Range part) const;
  /// A bucket's place in the buffer of gradients that outlives a microbatch.
  Range gradient(Size bucket) const;
};

/// `shard` of `shards`: the rank's place among the ranks that share a replica.
StatePlan plan_state(const PlanInput& input, const std::vector<BucketPlan>& buckets, Size shards,
                     Size shard);

}  // namespace tessera
