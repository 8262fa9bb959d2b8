// SPDX-License-Identifier: Apache-2.0
// Kernels on a block of attention scores of some heads: `rows` queries, `cols` keys each. They run
// with one team for each query of each head.
#pragma once

#include <cmath>

#include <tessera/nn/exponential.hpp>
#include <tessera/nn/rows.hpp>

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
  Size heads, rows, cols;
  Size seen;   ///< keys of the block that its first query sees; each next query sees one more
  Math scale;  ///< of the scores in the softmax
  HeadRows<Math> statistics;  ///< largest scaled score, sum of exp(scaled score - largest)

  /// A query of a head, and the columns of the keys that it sees.
  struct Query {
    Size head, i, seen, hidden;
    Size computed;  ///< those of whole vectors, which take no longer than a part of the last one
  };
  KOKKOS_INLINE_FUNCTION Query query(Size number) const {
    constexpr Size lanes = vector_lanes<Math>;
    const Size i = number % rows, all = seen + i;
    const Size n = all < 0 ? 0 : (all < cols ? all : cols);
    const Size computed = (n + lanes - 1) / lanes * lanes;
    return {number / rows, i, n, cols - n, computed < cols ? computed : cols};
  }
};

/// p = exp(scale s - largest), 0 for hidden keys. Updates the statistics and scales the `sums`,
/// (width), of earlier blocks, which have another largest score (Milakov and Gimelshein 2018). p
/// may alias s.
template <class T>
void add_to_softmax(const ScoreBlock<StateOf<T>>& block, const HeadRows<T>& p,
                    const HeadRows<StateOf<T>>& sums, Size width, bool is_first) {
  using Math = StateOf<T>;
  for_rows(
      "tessera::attention_softmax"_label, block.heads * block.rows, block.cols,
      KOKKOS_LAMBDA(const Row& team) {
        using std::exp;
        const auto query = block.query(team.number);
        const Size head = query.head, i = query.i, n = query.seen;
        Math *const in = block.s.row(head, i), *const row = block.statistics.row(head, i),
                    *const sum_of_row = sums.row(head, i);
        T* const out = p.row(head, i);
        const Math factor = block.scale,
                   before = is_first ? -Kokkos::Experimental::infinity_v<Math> : row[0];
        const Math here =
            n == 0 ? before : factor * team.max<Math>(n, [=](Size j) { return in[j]; });
        const Math largest = here > before ? here : before;
        team.for_each(query.computed,
                      [=](Size j) { in[j] = exp_of_nonpositive(factor * in[j] - largest); });
        const Math sum = team.sum<Math>(n, [=](Size j) { return in[j]; });
        const Math shrink = is_first ? Math(0) : exp(before - largest);
        const Math total = (is_first ? Math(0) : row[1] * shrink) + sum;
        team.wait();
        team.once([=]() { row[0] = largest, row[1] = total; });
        if (static_cast<void*>(out) != static_cast<void*>(in))
          team.for_each(n, [=](Size j) { out[j] = in[j]; });
        team.for_each(query.hidden, [=](Size j) { out[n + j] = Math(0); });
        if (!is_first && shrink != Math(1))
          team.for_each(width, [=](Size j) { sum_of_row[j] *= shrink; });
      });
}

/// p = softmax(scale s), ds = scale p (dp - sum_j y_j dy_j) with the output y (width) and its
/// gradient: Dao et al. 2022, algorithm 4. p may alias s, and ds may alias dp.
template <class T>
void score_gradients(const ScoreBlock<StateOf<T>>& block, const HeadRows<StateOf<T>>& dp,
                     const HeadRows<T>& p, const HeadRows<T>& ds, const HeadRows<const T>& y,
                     const HeadRows<const T>& dy, Size width) {
  using Math = StateOf<T>;
  for_rows(
      "tessera::attention_score_gradients"_label, block.heads * block.rows, block.cols,
      KOKKOS_LAMBDA(const Row& team) {
        using std::log;
        const auto query = block.query(team.number);
        const Size head = query.head, i = query.i, n = query.seen;
        const T *const made = y.row(head, i), *const gradient = dy.row(head, i);
        prefetch(y.row(head, i + 8), width);
        const Math mean = team.sum<Math>(width, [=](Size j) {
          return static_cast<Math>(made[j]) * static_cast<Math>(gradient[j]);
        });
        const Math *const row = block.statistics.row(head, i), *const s = block.s.row(head, i),
                          *const in = dp.row(head, i);
        const Math factor = block.scale, shift = row[0] + log(row[1]);
        T *const out_p = p.row(head, i), *const out_ds = ds.row(head, i);
        team.for_each(query.computed, [=](Size j) {
          const Math probability = exp_of_nonpositive(factor * s[j] - shift);
          const Math score_gradient = factor * probability * (in[j] - mean);
          out_p[j] = probability;
          out_ds[j] = score_gradient;
        });
        team.for_each(query.hidden, [=](Size j) { out_p[n + j] = out_ds[n + j] = Math(0); });
      });
}

/// out (rows, width) = in, divided by the sum in the statistics unless these are null. `out` may
/// alias `in`.
template <class T>
void store_rows(Size heads, Size rows, Size width, const HeadRows<StateOf<T>>& in,
                const HeadRows<StateOf<T>>& statistics, const HeadRows<T>& out) {
  using Math = StateOf<T>;
  for_rows(
      "tessera::attention_store"_label, heads * rows, width, KOKKOS_LAMBDA(const Row& team) {
        const Size head = team.number / rows, i = team.number % rows;
        const Math factor =
            statistics.data == nullptr ? Math(1) : Math(1) / statistics.row(head, i)[1];
        const Math* const from = in.row(head, i);
        T* const to = out.row(head, i);
        team.for_each(width, [=](Size j) { to[j] = factor * from[j]; });
      });
}

}  // namespace tessera::detail
