// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/pair_tree.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {

/// The gradients of the microbatches of a step, which are summed in a tree if sums have a fixed
/// order (Numerics). Otherwise all microbatches add to the same memory. T: the state type.
template <class T>
class GradientTree {
 public:
  GradientTree(const StatePlan& state, const StateArena<T>& gradients)
      : state_(state), gradients_(gradients) {}

  bool sums_in_tree() const { return state_.gradient_rows > 1; }

  /// Returns the place of the gradient of some elements of a bucket in one microbatch.
  Vector<T> part(Size microbatch, Size bucket, Range elements) const {
    return gradients_.part(bucket, elements, state_.row_of(microbatch));
  }

  /// Adds what can be added now that the elements are complete in this microbatch and in all before
  /// it. After the last microbatch, the first rows of the arena have the nodes of the rank's
  /// grains.
  void complete(Size microbatch, Size bucket, Range elements) const {
    const Range& grains = state_.grains;
    if (microbatch >= grains.count) return;  // no fixed order, or no grain
    join_rows(grains.begin, {grains.begin + microbatch, 1}, [&](Size lower, Size upper) {
      accumulate<T>(Vector<const T>(gradients_.part(bucket, elements, upper)),
                    gradients_.part(bucket, elements, lower));
    });
  }

 private:
  const StatePlan& state_;
  const StateArena<T>& gradients_;
};

}  // namespace tessera
