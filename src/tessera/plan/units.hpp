// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/nn/model_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What two ranges share; if nothing, empty at the begin of the first.
constexpr Range intersection(Range a, Range b) {
  const Size begin = a.begin > b.begin ? a.begin : b.begin;
  const Size end = a.end() < b.end() ? a.end() : b.end();
  return begin < end ? Range{begin, end - begin} : Range{a.begin, 0};
}

/// One unit, a layer's parameters on one rank, in that rank's buffers; in elements.
struct UnitPlan {
  Range whole;              ///< among all units of the rank
  Range share;              ///< the own part of the unit, from its begin; all of it if not sharded
  Size share_begin = 0;     ///< where the share lies among all shares of the rank
  Size gathered_begin = 0;  ///< where the gathered parameters lie in their buffer
  Size gradient_begin = 0;  ///< where the gradient of the whole unit lies in its buffer
};

/// Where a rank keeps parameters, gradients and moments.
///
/// What is sharded is kept as one flat buffer of shares, the balanced split of each unit; what is
/// not, as one flat buffer of whole units. Sharded parameters are gathered into, and sharded
/// gradients computed in, buffers that units use in turn: of two neighbours, which live at the same
/// time, one lies at the buffer's begin and the other at its end.
struct StatePlan {
  Sharding sharding;
  std::vector<UnitPlan> units;
  Size whole = 0;           ///< elements of all units
  Size shares = 0;          ///< elements of all shares
  Size gathered = 0;        ///< buffer of gathered parameters
  Size unit_gradients = 0;  ///< buffer of gradients of whole units
  Size incoming = 0;  ///< share of a gradient that is to be added to those of microbatches before

  Size parameters() const { return sharding.parameters ? shares : whole; }
  Size gradients() const { return sharding.gradients ? shares : whole; }
  Size moments() const { return sharding.moments ? shares : whole; }
  /// A unit's place in the buffer of gradients that outlives a microbatch.
  Range gradient(Size unit) const;
  /// What the rank updates: its shares, or everything.
  Size owned() const { return moments(); }
};

/// `local`: the model as the rank holds it; `shard` of `shards`: its place among the ranks that
/// share a replica.
StatePlan plan_state(const PlanInput& input, const ModelSpec& local, Size shards, Size shard);

/// Elements of parameters that count for this rank when something is summed over all ranks that
/// split parameters, each element once: its shares, without what ranks with another coordinate
/// along `model` count. Ranges of the flat buffer of gradients, in order.
/// `model_coordinate`: the rank's; `split`: per layer, whether kernel and bias are sharded along
/// `model`.
struct SplitAlongModel {
  bool kernel = false;
  bool bias = false;
};
std::vector<Range> unique_gradients(const StatePlan& state, const ModelSpec& local,
                                    const std::vector<SplitAlongModel>& split,
                                    Size model_coordinate);

}  // namespace tessera
