// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/base/pair_tree.hpp>

namespace tessera {

/// The terms of sums over the ranks of a communicator that are added in a tree (pair_tree.hpp).
struct TreeTerms {
  /// The nodes that each rank contributes, in the order of places: none, one or several that do not
  /// join. Each is a row, and the View of a call is the first one.
  std::vector<std::vector<Range>> nodes{};
  /// Elements from one row to the next. A result has several rows if the nodes of all ranks
  /// together are no whole tree.
  Size in_stride = 0, out_stride = 0;
};

/// The order of the additions.
struct SumTree {
  struct Term {
    Range node;
    int rank;
    Size row;        ///< among the rows of the rank
    Size joins = 0;  ///< additions of the two topmost rows of the stack once the term lies on it
  };
  TreeTerms of;
  std::vector<Term> terms{};  ///< in the order of places
  Size rows = 0;              ///< of the result
  Size depth = 0;             ///< most rows of the stack

  explicit SumTree(TreeTerms given) : of(std::move(given)) {
    for (int rank = 0; rank < static_cast<int>(of.nodes.size()); ++rank)
      for (Size row = 0; row < rows_of(rank); ++row)
        terms.push_back({of.nodes[rank][row], rank, row});
    std::sort(terms.begin(), terms.end(),
              [](const Term& a, const Term& b) { return a.node.begin < b.node.begin; });
    std::vector<Range> stack;
    for (Term& term : terms) {
      depth = std::max(depth, static_cast<Size>(stack.size()) + 1);
      term.joins = push_node(stack, term.node);
    }
    rows = static_cast<Size>(stack.size());
  }

  Size rows_of(int rank) const { return static_cast<Size>(of.nodes[rank].size()); }
  /// Returns true if two ranks have a term each, which can be added in one order only.
  bool is_pair() const {
    return of.nodes.size() == 2 && rows_of(0) == 1 && rows_of(1) == 1 && rows == 1;
  }
};

}  // namespace tessera
