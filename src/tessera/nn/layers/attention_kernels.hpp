// SPDX-License-Identifier: Apache-2.0
// Kernels on a block of attention scores of some heads: `rows` queries, `cols` keys each. They run
// with one team for each query of each head.
#pragma once

#include <cmath>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/exponential.hpp>

namespace tessera::detail {

/// A pointer to the elements of a row of the first head, and the distances to the next ones.
template <class E>
struct HeadRows {
  E* data;
  Size stride;  ///< from one row to the next
  Size next;    ///< from one head to the next

  KOKKOS_INLINE_FUNCTION E* row(Size head, Size i) const { return data + head * next + i * stride; }
};

/// The block: scores s = q k^T, not scaled, and the statistics of its rows.
template <class Math>
struct ScoreBlock {
  HeadRows<Math> s;
  Size rows, cols;
  Size seen;   ///< keys of the block that its first query sees; each next query sees one more
  Math scale;  ///< of the scores in the softmax
  HeadRows<Math> statistics;  ///< largest scaled score, sum of exp(scaled score - largest)

  KOKKOS_INLINE_FUNCTION Size seen_by(Size row) const {
    const Size n = seen + row;
    return n < 0 ? 0 : (n < cols ? n : cols);
  }
  /// Returns the columns of the vectors that hold the first n: a vector takes no longer than a part
  /// of it.
  KOKKOS_INLINE_FUNCTION Size in_vectors(Size n) const {
    constexpr Size lanes = vector_lanes<Math>;
    const Size all = (n + lanes - 1) / lanes * lanes;
    return all < cols ? all : cols;
  }
};

/// p = exp(scale s - largest), 0 for hidden keys. Updates the statistics and scales the sums of
/// earlier blocks, which have another largest score (Milakov and Gimelshein 2018). p may alias s.
template <class T>
struct AddToSoftmax {
  using Math = StateOf<T>;
  ScoreBlock<Math> block;
  HeadRows<T> p;
  HeadRows<Math> sums;  ///< of earlier blocks
  Size width;
  bool is_first;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    using std::exp;
    const Size head = team.league_rank() / block.rows, i = team.league_rank() % block.rows;
    const Size n = block.seen_by(i), hidden = block.cols - n;
    Math *const in = block.s.row(head, i), *const row = block.statistics.row(head, i);
    T* const out = p.row(head, i);
    const Math factor = block.scale,
               before = is_first ? -Kokkos::Experimental::infinity_v<Math> : row[0];
    const Math here =
        n == 0 ? before
               : factor * reduce_lanes<Kokkos::Max, Math>(team, n, [=](Size j) { return in[j]; });
    const Math largest = here > before ? here : before;
    const Size computed = block.in_vectors(n);
    for_each_lane(Kokkos::TeamVectorRange(team, computed), computed,
                  [=](Size j) { in[j] = exp_of_nonpositive(factor * in[j] - largest); });
    const Math sum = reduce_lanes<Kokkos::Sum, Math>(team, n, [=](Size j) { return in[j]; });
    const Math shrink = is_first ? Math(0) : exp(before - largest);
    const Math total = (is_first ? Math(0) : row[1] * shrink) + sum;
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [=]() { row[0] = largest, row[1] = total; });
    if (static_cast<void*>(out) != static_cast<void*>(in))
      for_each_lane(Kokkos::TeamVectorRange(team, n), n, [=](Size j) { out[j] = in[j]; });
    for_each_lane(Kokkos::TeamVectorRange(team, hidden), hidden,
                  [=](Size j) { out[n + j] = Math(0); });
    if (is_first || shrink == Math(1)) return;
    Math* const sum_of_row = sums.row(head, i);
    for_each_lane(Kokkos::TeamVectorRange(team, width), width,
                  [=](Size j) { sum_of_row[j] *= shrink; });
  }
};

/// p = softmax(scale s), ds = scale p (dp - sum_j y_j dy_j): Dao et al. 2022, algorithm 4. p may
/// alias s, and ds may alias dp.
template <class T>
struct ScoreGradients {
  using Math = StateOf<T>;
  ScoreBlock<Math> block;
  HeadRows<Math> dp;
  HeadRows<T> p, ds;
  HeadRows<const T> y, dy;  ///< the output and its gradient
  Size width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    using std::log;
    const Size head = team.league_rank() / block.rows, i = team.league_rank() % block.rows;
    const Size n = block.seen_by(i), hidden = block.cols - n;
    const T *const made = y.row(head, i), *const gradient = dy.row(head, i);
    prefetch(y.row(head, i + 8), width);
    const Math mean = reduce_lanes<Kokkos::Sum, Math>(team, width, [=](Size j) {
      return static_cast<Math>(made[j]) * static_cast<Math>(gradient[j]);
    });
    const Math *const row = block.statistics.row(head, i), *const s = block.s.row(head, i);
    const Math *const in = dp.row(head, i), factor = block.scale, shift = row[0] + log(row[1]);
    T *const out_p = p.row(head, i), *const out_ds = ds.row(head, i);
    const Size computed = block.in_vectors(n);
    for_each_lane(Kokkos::TeamVectorRange(team, computed), computed, [=](Size j) {
      const Math probability = exp_of_nonpositive(factor * s[j] - shift);
      const Math score_gradient = factor * probability * (in[j] - mean);
      out_p[j] = probability;
      out_ds[j] = score_gradient;
    });
    for_each_lane(Kokkos::TeamVectorRange(team, hidden), hidden,
                  [=](Size j) { out_p[n + j] = out_ds[n + j] = Math(0); });
  }
};

/// out = in, divided by the sum in the statistics unless these are null. `out` may alias `in`.
template <class T>
struct StoreRows {
  using Math = StateOf<T>;
  HeadRows<Math> in, statistics;
  HeadRows<T> out;
  Size rows, width;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size head = team.league_rank() / rows, i = team.league_rank() % rows;
    const Math factor = statistics.data == nullptr ? Math(1) : Math(1) / statistics.row(head, i)[1];
    const Math* const from = in.row(head, i);
    T* const to = out.row(head, i);
    for_each_lane(Kokkos::TeamVectorRange(team, width), width,
                  [=](Size j) { to[j] = factor * from[j]; });
  }
};

}  // namespace tessera::detail
