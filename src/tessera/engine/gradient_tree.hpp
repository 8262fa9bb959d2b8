// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

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
      : state_(state), gradients_(gradients) {
    TreeTerms terms;
    for (const Range& run : state.grains_of_experts) terms.nodes.push_back(largest_nodes(run));
    nodes_of_stacks_ = SumTree(std::move(terms)).terms;
  }

  bool sums_in_tree() const { return state_.gradient_rows > 1; }

  /// Returns the place of the gradient of some elements of a bucket in one microbatch.
  Vector<T> part(Size microbatch, Size bucket, Range elements, Size stack = 0) const {
    return gradients_.part(bucket, elements, state_.row_of(microbatch, bucket, stack));
  }

  /// Adds what can be added now that the elements are complete in this microbatch and in all before
  /// it. After the last microbatch, the first rows of the arena have the nodes of the rank's
  /// grains.
  void complete(Size microbatch, Size bucket, Range elements) const {
    const auto row = [&](Size number) { return gradients_.part(bucket, elements, number); };
    const auto add = [&](Size lower, Size upper) { accumulate<T>(row(upper), row(lower)); };
    const std::span<const Range> runs = state_.runs_of(bucket);
    for (std::size_t stack = 0; stack < runs.size(); ++stack) {
      const Range& grains = runs[stack];
      if (microbatch >= grains.count) continue;  // no fixed order, or no grain
      const Size first = static_cast<Size>(stack) * state_.stack_rows;
      join_rows(grains.begin, {grains.begin + microbatch, 1},
                [&](Size lower, Size upper) { add(first + lower, first + upper); });
    }
    if (runs.size() == 1 || microbatch + 1 < state_.microbatches) return;
    Size rows = 0;
    for (const SumTree::Term& term : nodes_of_stacks_) {
      const Size from = term.rank * state_.stack_rows + term.row;
      if (from != rows) Kokkos::deep_copy(ExecSpace(), row(rows), row(from));
      for (Size joins = 0; joins < term.joins; ++joins, --rows) add(rows - 1, rows);
      ++rows;
    }
  }

 private:
  const StatePlan& state_;
  const StateArena<T>& gradients_;
  std::vector<SumTree::Term> nodes_of_stacks_;
};

}  // namespace tessera
