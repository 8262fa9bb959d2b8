// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/comm/sum_tree.hpp>
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
        second_use_(allocate_zeros<T>("tessera::gradients_of_second_use", state.second_use)),
        nodes_of_stacks_(state.buckets.size()) {
    for (std::size_t b = 0; b < nodes_of_stacks_.size(); ++b) {
      TreeTerms terms;
      for (const Range& run : state.runs_of(static_cast<Size>(b)))
        terms.nodes.push_back(largest_nodes(run));
      nodes_of_stacks_[b] = SumTree(std::move(terms)).terms;
    }
  }

  bool sums_in_tree() const { return state_.gradient_rows > 1; }

  /// Returns the place of the gradient of some elements of a bucket in one microbatch.
  Vector<T> part(Size microbatch, Size bucket, Range elements, Size stack = 0) const {
    return row(bucket, elements, state_.row_of(microbatch, bucket, stack));
  }

  /// Adds what can be added now that the elements are complete in this microbatch and in all before
  /// it. `use`: by a later layer (BucketPlan::uses), which comes first. After the last microbatch,
  /// the first rows of the arena have the nodes of the rank's grains.
  void complete(Size microbatch, Size bucket, Range elements, Size use = 0) const {
    const auto row = [&](Size number) { return this->row(bucket, elements, number); };
    const auto add = [&](Size lower, Size upper) { accumulate<T>(row(upper), row(lower)); };
    const std::span<const Range> runs = state_.runs_of(bucket);
    const Size stacks = state_.buckets[bucket].stacks;
    for (Size stack = use * stacks; stack < (use + 1) * stacks; ++stack) {
      const Range& grains = runs[stack];
      if (microbatch >= grains.count) continue;  // no fixed order, or no grain
      const Size first = state_.first_row(bucket, stack);
      join_rows(grains.begin, {grains.begin + microbatch, 1},
                [&](Size lower, Size upper) { add(first + lower, first + upper); });
    }
    if (runs.size() == 1 || use > 0 || microbatch + 1 < state_.microbatches) return;
    Size rows = 0;
    for (const SumTree::Term& term : nodes_of_stacks_[bucket]) {
      Size top = state_.first_row(bucket, term.rank) + term.row;
      for (Size joins = 0; joins < term.joins; ++joins) add(rows - 1, top), top = --rows;
      if (top != rows) Kokkos::deep_copy(ExecSpace(), row(rows), row(top));
      ++rows;
    }
  }

 private:
  Vector<T> row(Size bucket, Range elements, Size number) const {
    if (number < state_.gradient_rows) return gradients_.part(bucket, elements, number);
    const Size before = (number - state_.gradient_rows) * state_.buckets[bucket].whole.count;
    return alias_vector(second_use_.data() + before + elements.begin, elements.count);
  }

  const StatePlan& state_;
  const StateArena<T>& gradients_;
  Vector<T> second_use_;                                     ///< StatePlan::second_use
  std::vector<std::vector<SumTree::Term>> nodes_of_stacks_;  ///< by bucket
};

}  // namespace tessera
