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
    if (microbatch == 0 || !sums_in_tree()) return gradients_.part(bucket, elements);
    const Size begin = level_of_node(microbatch) * state_.whole +
                       state_.buckets[bucket].whole.begin + elements.begin;
    return alias_vector(levels_.data() + begin, elements.count);
  }

  /// Adds what can be added now that the elements are complete in this microbatch and in all before
  /// it. After the last microbatch, the arena of gradients has the sum.
  void complete(Size microbatch, Size bucket, Range elements) const {
    if (!sums_in_tree()) return;
    join_complete_nodes({microbatch, 1}, [&](Size to, Size from) {
      accumulate<T>(Vector<const T>(part(from, bucket, elements)), part(to, bucket, elements));
    });
  }

 private:
  const StatePlan& state_;
  const StateArena<T>& gradients_;
  Vector<T> levels_;
};

}  // namespace tessera
