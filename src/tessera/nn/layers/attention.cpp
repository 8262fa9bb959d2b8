// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/attention_kernels.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string attention_softmax_label = "tessera::attention_softmax";
const std::string attention_scores_label = "tessera::attention_score_gradients";
const std::string attention_store_label = "tessera::attention_store";

// Queries and keys of a block of scores: a block and its operands fit the second cache of a core. A
// device needs larger products.
constexpr Size query_block = on_host ? 64 : 1024, key_block = on_host ? 512 : 4096;

std::vector<Layout> attention_layouts() { return {alike(by_columns)}; }

/// q, k, v and the output of each head are on one rank.
bool whole_heads(const LayerSpec& layer) {
  return layer.in == 3 * layer.out && layer.out % layer.groups.columns == 0;
}

Size heads_of(const LayerSpec& layer) { return layer.out / layer.groups.columns; }

/// A block of scores of a sample, by rows of q and of k, v. Blocks without a visible key are left
/// out, and so are the keys behind the last visible one.
struct AttentionBlock {
  Range queries, keys;
  Size seen;      ///< ScoreBlock::seen
  bool is_first;  ///< the first block of these queries
  bool is_last;
};

/// Calls f(block) for the blocks of a sample with `t` positions, the last queries first, so that
/// the first blocks have all keys.
template <class F>
void for_each_block(Size t, const F& f) {
  for (Size q = (t - 1) / query_block * query_block; q >= 0; q -= query_block) {
    const Range queries{q, std::min(query_block, t - q)};
    for (Size k = 0; k < queries.end(); k += key_block) {
      const Size end = std::min(k + key_block, queries.end());
      f(AttentionBlock{queries, {k, end - k}, q + 1 - k, k == 0, end == queries.end()});
    }
  }
}

LayerProducts attention_products(const LayerSpec& layer, Size samples) {
  const Size d = layer.groups.columns, heads = samples * heads_of(layer);
  LayerProducts products;
  const auto add = [](std::vector<GemmShape>& all, const GemmShape& one) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const GemmShape& other) {
      return other.m == one.m && other.n == one.n && other.k == one.k;
    });
    same == all.end() ? all.push_back(one) : void(same->times += one.times);
  };
  for_each_block(layer.positions, [&](const AttentionBlock& block) {
    const Size m = block.queries.count, n = block.keys.count;
    const GemmShape scores{m, n, d, heads}, values{m, d, n, heads}, keys{n, d, m, 2 * heads};
    for (const GemmShape& one : {scores, values}) {
      add(products.forward, one);
      add(products.backward, one);
    }
    add(products.backward, keys);
  });
  return products;
}

/// Returns the elements of a square and of the sums of a head (Attention::square, Attention::sums).
Size square_size(Size t) { return std::min(query_block, t) * std::min(key_block, t); }
Size attention_scratch(const LayerSpec& layer) {
  const Size t = layer.positions;
  return 3 * square_size(t) + 3 * t * layer.groups.columns;
}

template <class T>
class Attention {
 public:
  using State = StateOf<T>;
  using Scores = detail::ScoreBlock<State>;

  explicit Attention(const LayerCall<T>& call)
      : call_(call),
        t_(call.layer.positions),
        d_(call.layer.groups.columns),
        scale_(1 / std::sqrt(static_cast<State>(d_))) {}

  void forward() const {
    for_heads([&](Size sample, Size head) {
      const Matrix<T> output = columns(call_.output, sample, head);
      const Matrix<State> sums = sums_of(output, 0);
      for_each_block(t_, [&](const AttentionBlock& block) {
        const Scores scores = scores_of(sample, head, block);
        const Matrix<T> p = probabilities(block);
        const Matrix<State> sum = rows(sums, block.queries);
        for_each_row(attention_softmax_label, block.queries.count, block.keys.count,
                     detail::AddToSoftmax<T>{scores, p.data(), sum.data(), d_, stride_of(sum),
                                             block.is_first});
        call_.gemm(Trans::no, Trans::no, p, input(sample, head, 2, block.keys),
                   block.is_first ? 0 : 1, sum);
        if (block.is_last) store(sum, rows(output, block.queries), &scores);
      });
    });
  }

  /// dv = p^T dy, dp = dy v^T, dq = ds k, dk = ds^T q. The blocks of the last queries overwrite the
  /// gradients of all keys, the others add to them.
  void backward() const {
    for_heads([&](Size sample, Size head) {
      const auto gradient = [&](Size part) {
        return columns(call_.input_gradients[0], sample, 3 * head + part);
      };
      const Matrix<State> dq = sums_of(gradient(0), 0), dk = sums_of(gradient(1), 1),
                          dv = sums_of(gradient(2), 2);
      for_each_block(t_, [&](const AttentionBlock& block) {
        const Matrix<const T> dy =
            rows(columns(call_.output_gradient, sample, head), block.queries);
        const auto [p, ds] = score_gradients(sample, head, block, dy);
        const State adds = block.queries.end() == t_ ? 0 : 1;
        call_.gemm(Trans::yes, Trans::no, p, dy, adds, rows(dv, block.keys));
        call_.gemm(Trans::yes, Trans::no, ds, input(sample, head, 0, block.queries), adds,
                   rows(dk, block.keys));
        call_.gemm(Trans::no, Trans::no, ds, input(sample, head, 1, block.keys),
                   block.is_first ? 0 : 1, rows(dq, block.queries));
      });
      store(dq, gradient(0)), store(dk, gradient(1)), store(dv, gradient(2));
    });
  }

 private:
  template <class F>
  void for_heads(const F& f) const {
    for (Size sample = 0; sample < call_.samples && t_ > 0; ++sample)
      for (Size head = 0; head < heads_of(call_.layer); ++head) f(sample, head);
  }

  /// Computes q k^T of a block in square 0.
  Scores scores_of(Size sample, Size head, const AttentionBlock& block) const {
    const Matrix<State> s = square<State>(0, block);
    call_.gemm(Trans::no, Trans::yes, input(sample, head, 0, block.queries),
               input(sample, head, 1, block.keys), 0, s);
    const Matrix<State> statistics =
        rows(block_of(call_.saved, {sample * t_, t_}, {2 * head, 2}), block.queries);
    return {s.data(), block.keys.count,  block.seen,
            scale_,   statistics.data(), stride_of(statistics)};
  }

  /// Returns p and the gradients of the scores.
  std::pair<Matrix<const T>, Matrix<const T>> score_gradients(Size sample, Size head,
                                                              const AttentionBlock& block,
                                                              const Matrix<const T>& dy) const {
    const Scores scores = scores_of(sample, head, block);
    const Matrix<State> dp = square<State>(1, block);
    call_.gemm(Trans::no, Trans::yes, dy, input(sample, head, 2, block.keys), 0, dp);
    const Matrix<T> p = probabilities(block);
    Matrix<T> ds = square<T>(1, block);  // overwrites dp
    if constexpr (is_half_v<T>)
      ds = alias_matrix(p.data() + square_size(t_), block.queries.count, block.keys.count);
    const Matrix<const T> y = rows(columns(call_.output, sample, head), block.queries);
    for_each_row(attention_scores_label, block.queries.count, block.keys.count,
                 detail::ScoreGradients<T>{scores, dp.data(), p.data(), ds.data(), y.data(),
                                           dy.data(), d_, stride_of(y)});
    return {p, ds};
  }

  /// Writes the sums of rows in another type or, with `scores`, their quotients by the sums of the
  /// softmax.
  void store(const Matrix<State>& sums, const Matrix<T>& to, const Scores* scores = nullptr) const {
    if (std::is_same_v<T, State> && scores == nullptr) return;  // sums_of() returned `to`
    for_each_row(attention_store_label, static_cast<Size>(to.extent(0)), d_,
                 detail::StoreRows<T>{
                     sums.data(), stride_of(sums), scores == nullptr ? nullptr : scores->statistics,
                     scores == nullptr ? 0 : scores->stride, to.data(), stride_of(to), d_});
  }

  template <class E>
  static Size stride_of(const Matrix<E>& m) {
    return static_cast<Size>(m.stride_0());
  }
  template <class E>
  Matrix<E> rows(const Matrix<E>& of, Range range) const {
    return block_of(of, range, {0, static_cast<Size>(of.extent(1))});
  }
  /// Returns the block (positions, d) of a sample and of the number-th group of d columns.
  template <class E>
  Matrix<E> columns(const Matrix<E>& of, Size sample, Size group) const {
    return block_of(of, {sample * t_, t_}, {group * d_, d_});
  }
  /// Returns rows of q (part 0), k (1) or v (2).
  Matrix<const T> input(Size sample, Size head, Size part, Range range) const {
    return rows(columns(call_.inputs[0], sample, 3 * head + part), range);
  }
  /// Returns memory for the unrounded elements of a head's matrix: itself or, with a 16-bit compute
  /// type, sums (positions, d) in scratch memory.
  Matrix<State> sums_of(const Matrix<T>& matrix, Size number) const {
    if constexpr (is_half_v<T>)
      return alias_matrix(call_.scratch.data() + 3 * square_size(t_) + number * t_ * d_, t_, d_);
    else
      return matrix;
  }
  /// Returns one of three blocks of scratch memory. 0: scores, then probabilities; 1: gradients; 2:
  /// probabilities and gradients of a 16-bit compute type.
  template <class E>
  Matrix<E> square(Size number, const AttentionBlock& block) const {
    return alias_matrix(reinterpret_cast<E*>(call_.scratch.data() + number * square_size(t_)),
                        block.queries.count, block.keys.count);
  }
  Matrix<T> probabilities(const AttentionBlock& block) const {
    return square<T>(is_half_v<T> ? 2 : 0, block);
  }

  const LayerCall<T>& call_;
  Size t_, d_;
  State scale_;
};

constexpr LayerRow attention_row{
    .name = "attention",
    .split_layouts = attention_layouts,
    .fits = whole_heads,
    .mixes_positions = true,
    .products = attention_products,
    .scratch = attention_scratch,
    .reads_inputs = always,
    .reads_output = always,
    .saved_columns = [](const LayerSpec& layer) { return 2 * heads_of(layer); },
    .forward = [](const auto& call) { Attention(call).forward(); },
    .backward = [](const auto& call) { Attention(call).backward(); }};

}  // namespace

LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width) {
  LayerSpec layer{&attention_row, std::move(name),        std::move(unit),
                  {qkv},          3 * heads * head_width, heads * head_width};
  layer.groups = {head_width, "heads", "model.transformer.heads", heads};
  return layer;
}

}  // namespace tessera
