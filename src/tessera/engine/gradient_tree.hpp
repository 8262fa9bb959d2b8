// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/alias.hpp>
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
      : state_(state),
        gradients_(gradients),
        levels_(
            allocate_zeros<T>("tessera::gradient_levels", state.gradient_levels * state.whole)) {}

  bool sums_in_tree() const { return levels_.extent(0) > 0; }

  /// Returns the place of the gradient of some elements of a bucket in one microbatch.
  Vector<T> part(Size microbatch, Size bucket, Range elements) const {
    return row(sums_in_tree() ? nodes_in({0, microbatch}) : 0, bucket, elements);
  }

  /// Adds what can be added now that the elements are complete in this microbatch and in all before
  /// it. After the last microbatch, the arena of gradients has the sum.
  void complete(Size microbatch, Size bucket, Range elements) const {
    if (!sums_in_tree()) return;
    join_rows(0, {microbatch, 1}, [&](Size lower, Size upper) {
      accumulate<T>(Vector<const T>(row(upper, bucket, elements)), row(lower, bucket, elements));
    });
  }

 private:
  Vector<T> row(Size number, Size bucket, Range elements) const {
    if (number == 0) return gradients_.part(bucket, elements);
    const Size begin = (number - 1) * state_.whole + state_.buckets[bucket].whole.begin;
    return alias_vector(levels_.data() + begin + elements.begin, elements.count);
  }

  const StatePlan& state_;
  const StateArena<T>& gradients_;
  Vector<T> levels_;
};

}  // namespace tessera
